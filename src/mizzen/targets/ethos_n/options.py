"""Options by name, as Apache TVM's target ``ethos-n`` has them, as a configuration.

Ref: Apache TVM v0.14.0, Ethos-N: `EthosnCompilerConfigNode` (``relay.ext.ethos-n.options``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Strategy
from mizzen.targets.ethos_n.config import (
    BLOCK_CONFIGS,
    CHOOSABLE_STRATEGIES,
    VARIANTS,
    BlockConfig,
    CompilationOptions,
    Variant,
    VariantConfiguration,
    find_variant,
)

STRATEGIES: dict[str, Strategy] = {
    row.name.lower().replace("_", ""): row for row in CHOOSABLE_STRATEGIES
}
BLOCKS: dict[str, BlockConfig] = {f"block_config_{row}": row for row in BLOCK_CONFIGS}
COMPRESSION = "enable_intermediate_compression"
NO_WINOGRAD = "disable_winograd"
INLINE = "inline_non_compute_intensive_partitions"

ABSENT: dict[str, str] = {
    "dump_ram": "false",
    "initial_sram_dump": "false",
    "debug_dir": ".",
    "experimental_compiler": "false",
}
"""Options of which Mizzen has the default only: the simulator shows memory itself, and there is
one compiler."""

FLAGS: dict[str, bool] = {
    **dict.fromkeys(STRATEGIES, True),
    **dict.fromkeys(BLOCKS, True),
    COMPRESSION: True,
    NO_WINOGRAD: False,
    INLINE: True,
}
"""Options that are true or false, with their defaults."""

NAMES = ("variant", "sram_size", "tops", "ple_ratio", *FLAGS, *ABSENT)
"""All options."""

PRODUCT = "n78"
DEFAULT = VARIANTS["ethos-n78-1tops-2ple"]
TRUE, FALSE = ("true", "1"), ("false", "0")
VARIANT_NAME = re.compile(r"ethos-n78-(\d+)tops-(\d+)ple")


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What the options say.

    inline  whether regions without a compute-intensive operator go back to the CPU
    """

    configuration: VariantConfiguration
    inline: bool = True


def parse_options(options: Mapping[str, str], default: Variant = DEFAULT) -> TargetOptions:
    """Read options; what is left out is as in TVM, or as the default variant has it.

    E993 for an unknown option, E994 for a value that the option cannot have; E910 for a variant
    that there is not, E911 for its SRAM.
    """
    for name in options:
        if name not in NAMES:
            close = difflib.get_close_matches(name, NAMES, n=1)
            raise fail(
                "E993",
                f"an option must be one of {', '.join(NAMES)}, not {name!r}",
                help=f"did you mean {close[0]}?" if close else None,
            )
    for name, only in ABSENT.items():
        if options.get(name, only).lower() != only:
            raise _wrong(name, options[name], f"{only}, which is all that Mizzen has")
    flags = {name: _flag(name, options, value) for name, value in FLAGS.items()}
    configuration = VariantConfiguration(
        _variant(options, default),
        _number("sram_size", options.get("sram_size", "0")),
        CompilationOptions(
            strategies=frozenset(row for name, row in STRATEGIES.items() if flags[name]),
            block_configs=frozenset(row for name, row in BLOCKS.items() if flags[name]),
            intermediate_compression=flags[COMPRESSION],
            winograd=not flags[NO_WINOGRAD],
        ),
    )
    _ = configuration.capabilities  # E911 now, not when somebody first asks.
    return TargetOptions(configuration, flags[INLINE])


def _variant(options: Mapping[str, str], default: Variant) -> Variant:
    product = options.get("variant", PRODUCT)
    if product.lower() != PRODUCT:
        raise _wrong("variant", product, PRODUCT)
    found = VARIANT_NAME.fullmatch(default.name)
    assert found is not None
    tops = _number("tops", options.get("tops", found[1]))
    ples = _number("ple_ratio", options.get("ple_ratio", found[2]))
    return find_variant(f"ethos-n78-{tops}tops-{ples}ple")


def _flag(name: str, options: Mapping[str, str], default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in (*TRUE, *FALSE):
        raise _wrong(name, text, "true or false")
    return text.lower() in TRUE


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _wrong(name, text, "a whole number")
    return int(text)


def _wrong(name: str, text: str, wanted: str) -> Exception:
    return fail("E994", f"option {name} must be {wanted}, and is {text!r}")
