"""Options by name, as TVM's target has them."""

from __future__ import annotations

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import Strategy
from mizzen.targets.ethos_n.config import (
    FLAGS,
    NAMES,
    VARIANTS,
    BlockConfig,
    CompilationOptions,
    Profile,
    parse_options,
)


def test_defaults_are_tvms() -> None:
    found = parse_options({})
    assert found.configuration.variant.arm_name == "Ethos-N78_1TOPS_2PLE_RATIO"
    assert found.configuration.sram_bytes == 0
    assert found.configuration.options == CompilationOptions()
    assert found.inline


def test_another_default() -> None:
    variant = VARIANTS["ethos-n78-8tops-2ple"]
    assert parse_options({}, variant).configuration.variant is variant
    found = parse_options({"tops": "4"}, variant)
    assert found.configuration.variant is VARIANTS["ethos-n78-4tops-2ple"]


def test_every_option() -> None:
    found = parse_options(
        {
            "variant": "N78",
            "tops": "4",
            "ple_ratio": "4",
            "sram_size": str(16 * 64 * 1024),
            "strategy0": "false",
            "strategy7": "0",
            "block_config_32x8": "False",
            "enable_intermediate_compression": "0",
            "disable_winograd": "true",
            "inline_non_compute_intensive_partitions": "false",
            "dump_ram": "false",
            "debug_dir": ".",
            "support_library": "25.03",
        }
    )
    configuration, options = found.configuration, found.configuration.options
    assert configuration.variant.name == "ethos-n78-4tops-4ple"
    assert configuration.capabilities.sram_bytes == 1 << 20
    assert Strategy.STRATEGY_0 not in options.strategies
    assert Strategy.STRATEGY_7 not in options.strategies
    assert len(options.strategies) == 4
    assert BlockConfig(32, 8) not in options.block_configs
    assert not options.intermediate_compression
    assert not options.winograd
    assert not found.inline
    assert configuration.release is Profile.V25_03
    assert parse_options({}).configuration.release is Profile.V23_02


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_changes_something(name: str) -> None:
    changed = parse_options({name: str(not FLAGS[name]).lower()})
    assert changed != parse_options({})
    assert parse_options({name: str(FLAGS[name]).lower()}) == parse_options({})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"strategy2": "true"},
            f"error[E993]: an option must be one of {', '.join(NAMES)}, not 'strategy2'\n"
            "  help did you mean strategy7?",
        ),
        (
            {"zzz": "1"},
            f"error[E993]: an option must be one of {', '.join(NAMES)}, not 'zzz'",
        ),
        (
            {"disable_winograd": "yes"},
            "error[E994]: option disable_winograd must be true or false, and is 'yes'",
        ),
        ({"tops": "-1"}, "error[E994]: option tops must be a whole number, and is '-1'"),
        (
            {"sram_size": "1.5"},
            "error[E994]: option sram_size must be a whole number, and is '1.5'",
        ),
        (
            {"support_library": "24.08"},
            "error[E994]: option support_library must be 23.02 or 25.03, and is '24.08'",
        ),
        ({"variant": "n77"}, "error[E994]: option variant must be n78, and is 'n77'"),
        (
            {"dump_ram": "true"},
            "error[E994]: option dump_ram must be false, which is all that Mizzen has, and is "
            "'true'",
        ),
    ],
)
def test_what_is_no_option(options: dict[str, str], text: str) -> None:
    with pytest.raises(MizzenError) as error:
        parse_options(options)
    assert str(error.value) == text


def test_variants_and_memories_that_there_are_not() -> None:
    with pytest.raises(MizzenError, match=r"E910.*ethos-n78-3tops-2ple"):
        parse_options({"tops": "3"})
    with pytest.raises(MizzenError, match="E911"):
        parse_options({"sram_size": "12345"})
