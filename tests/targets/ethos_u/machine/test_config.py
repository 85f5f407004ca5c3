"""Configurations: the tables, files with inheritance, and every refusal word for word."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, TRAITS, Memory, Optimise, Port
from mizzen.targets.ethos_u.machine.program import HardwareId
from mizzen.targets.ethos_u.machine.system_config import (
    memory_modes,
    resolve,
    system_configs,
    usable_memory_modes,
)
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED, read_files

OWN = """\
; a board
[System_Config.Board]
core_clock = 250e6
axi0_port: Sram
axi1_port: OffChipFlash
SRAM_CLOCK_SCALE = 0.5
Sram_burst_length = 16
Sram_read_latency = 8
Sram_write_latency = 9
OffChipFlash_clock_scale = 0.25
OffChipFlash_burst_length = 64
OffChipFlash_read_latency = 70
OffChipFlash_write_latency = 0

[System_Config.Faster]
inherit = System_Config.Board
core_clock = 500e6

[Memory_Mode.Mine]
const_mem_area = Axi1
arena_mem_area = Axi0
cache_mem_area = Axi0
arena_cache_size = 65536
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.ini"
    path.write_text(OWN)
    return path


def refusal(accelerator: str = "ethos-u55-128", **keywords: object) -> str:
    with pytest.raises(MizzenError) as caught:
        resolve(accelerator, **keywords)  # pyright: ignore[reportArgumentType] - keywords under test
    return str(caught.value)


def test_the_table_has_every_accelerator_once() -> None:
    assert len(ACCELERATORS) == 11
    for arch, macs in driver.MACS.items():
        assert tuple(row.macs for row in ACCELERATORS.values() if row.arch is arch) == macs


@pytest.mark.parametrize("name", ACCELERATORS)
def test_the_config_word_says_what_the_row_says(name: str) -> None:
    row = ACCELERATORS[name]
    said = driver.configuration(HardwareId(row.config_word, 0))
    assert said.accelerator == row.name
    assert (said.arch, said.macs, said.shram_kib) == (row.arch, row.macs, row.shram_kib)
    assert row.macs_per_core * row.cores == row.macs


@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_accelerator_has_a_default_pair(name: str) -> None:
    found = resolve(name)
    family = ACCELERATORS[name].traits
    assert (found.system.name, found.mode.name) == (family.system_config, family.memory_mode)
    assert found.files == (BUNDLED,)
    assert not found.warnings
    settings = {row.name: row.source for row in found.settings}
    assert settings["system_config"] == settings["memory_mode"] == "default"


def test_names_are_taken_in_any_case() -> None:
    found = resolve("Ethos-U55-128", optimise="size")
    assert found.accelerator.name == "ethos-u55-128"
    assert found.optimise is Optimise.SIZE


def test_the_numbers_of_a_bundled_system() -> None:
    found = resolve("ethos-u65-512")
    assert found.system.core_clock_hz == 1e9
    assert found.memory(Port.AXI0) is Memory.SRAM
    assert found.memory(Port.AXI1) is Memory.DRAM
    dram = found.system.behind(Port.AXI1)
    assert (dram.clock_scale, dram.burst_bytes) == (0.234375, 128)
    assert (dram.read_latency_cycles, dram.write_latency_cycles) == (500, 250)
    assert (dram.max_reads, dram.max_writes, dram.ports) == (24, 12, 1)
    # The file's own comment: SRAM 16 GB/s, DRAM 3.75 GB/s.
    assert found.bandwidth_bytes_per_second(Port.AXI0) == 16e9
    assert found.bandwidth_bytes_per_second(Port.AXI1) == 3.75e9


def test_a_mode_inherits_and_overrides() -> None:
    found = resolve("ethos-u65-256", memory_mode="Dedicated_Sram_512KB")
    assert (found.mode.constants, found.mode.arena, found.mode.cache) == (
        Port.AXI1,
        Port.AXI1,
        Port.AXI0,
    )
    assert found.mode.spills
    assert found.arena_cache_size_bytes == 524288
    sources = {row.name: row.source for row in found.settings}
    assert sources["arena_mem_area"] == "Arm/vela.ini [Memory_Mode.Dedicated_Sram_512KB]"
    assert sources["arena_cache_size"] == "Arm/vela.ini [Memory_Mode.Dedicated_Sram_512KB]"


def test_an_own_file_in_any_spelling_of_the_syntax(own: Path) -> None:
    found = resolve("ethos-u55-64", config=own, system_config="Faster", memory_mode="Mine")
    assert found.system.core_clock_hz == 500e6
    assert found.system.axi0.clock_scale == 0.5
    assert found.system.axi0.write_latency_cycles == 9
    assert found.arena_cache_size_bytes == 65536
    assert not found.warnings


def test_a_file_may_begin_with_a_mark_of_utf_8(own: Path) -> None:
    entries = read_files([str(own)]).entries
    own.write_bytes(b"\xef\xbb\xbf" + own.read_bytes().lstrip())
    assert read_files([str(own)]).entries == entries
    own.write_bytes(b"\xef\xbb\xbf" + own.read_bytes().removeprefix(b"\xef\xbb\xbf; a board\n"))
    assert read_files([str(own)]).entries == entries


def test_several_files_are_one_and_the_later_holds(own: Path, tmp_path: Path) -> None:
    patch = tmp_path / "patch.ini"
    patch.write_text("[System_Config.Board]\ncore_clock=100e6\n")
    found = resolve(
        "ethos-u55-64",
        config=[own, patch, BUNDLED],
        system_config="Board",
        memory_mode="Shared_Sram",
    )
    assert found.system.core_clock_hz == 100e6
    (clock,) = [row for row in found.settings if row.name == "core_clock"]
    assert clock.source == f"{patch} [System_Config.Board]"
    (port,) = [row for row in found.settings if row.name == "axi0_port"]
    assert port.source == f"{own} [System_Config.Board]"


def test_a_path_of_two_parts_may_be_a_file_of_ones_own(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boards").mkdir()
    own.rename(tmp_path / "boards" / "own.ini")
    monkeypatch.chdir(tmp_path)
    found = resolve(
        "ethos-u55-64", config="boards/own.ini", system_config="Board", memory_mode="Mine"
    )
    assert found.system.name == "Board"


def test_an_asked_for_arena_replaces_the_modes() -> None:
    found = resolve("ethos-u65-256", arena_cache_size=100_000)
    assert found.arena_cache_size_bytes == 100_000
    assert found.mode.arena_cache_size_bytes == 393216
    rows = [row for row in found.settings if row.name == "arena_cache_size"]
    assert [(row.value, row.source) for row in rows] == [(100_000, "asked for")]


def test_without_a_size_the_arena_is_all_a_port_reaches() -> None:
    assert resolve("ethos-u55-32").arena_cache_size_bytes == 1 << 32
    assert resolve("ethos-u85-128").arena_cache_size_bytes == 1 << 40


def test_a_configuration_is_ready_for_json() -> None:
    document = json.loads(json.dumps(resolve("ethos-u55-128").as_dict(), allow_nan=False))
    assert document["accelerator"] == "ethos-u55-128"
    assert document["system_config"] == "Ethos_U55_High_End_Embedded"
    assert document["memory_mode"] == "Shared_Sram"
    assert document["optimise"] == "Performance"
    values = {row["name"]: row["value"] for row in document["settings"]}
    assert values["core_clock"] == 5e8
    assert values["Sram_ports_used"] == 1
    assert values["const_mem_area"] == "Axi1"


def test_what_the_bundled_file_holds() -> None:
    sections = read_files([BUNDLED])
    assert len(system_configs(sections)) == 11
    assert memory_modes(sections)[:3] == ["Sram_Only", "Shared_Sram", "Dedicated_Sram"]


def test_the_systems_are_those_of_velas_file() -> None:
    spec = find_spec("ethosu")
    if spec is None:
        pytest.skip("no ethos-u-vela, whose file this is about")
    (folder,) = spec.submodule_search_locations or [""]
    ours, theirs = read_files([BUNDLED]), read_files([f"{folder}/config_files/{BUNDLED}"])
    assert ours.names() == theirs.names()
    for name in ours.names():
        said = [
            {key: entry.value for key, entry in sections.resolve(name).entries.items()}
            for sections in (ours, theirs)
        ]
        assert said[0] == said[1]


@pytest.mark.parametrize("name", ACCELERATORS)
def test_usable_modes_are_those_that_resolve(name: str) -> None:
    found = resolve(name)
    sections = read_files([BUNDLED])
    usable = usable_memory_modes(sections, found.accelerator, found.system)
    for mode in memory_modes(sections):
        if mode in usable:
            assert resolve(name, memory_mode=mode).mode.name == mode
        else:
            with pytest.raises(MizzenError):
                resolve(name, memory_mode=mode)
    assert ("Dedicated_Sram" in usable) == ACCELERATORS[name].traits.second_port_writes


def test_families_and_vela_agree_on_bus_and_addresses() -> None:
    """The legacy Python core computes both from the accelerator's name."""
    from ethosu.vela.architecture_features import Accelerator, create_default_arch

    for row in ACCELERATORS.values():
        if row.name.startswith("ethos-u85"):
            continue
        theirs = create_default_arch(Accelerator(row.name))
        family = TRAITS[row.arch]
        assert theirs.max_address_offset == family.largest_address
        assert theirs.ncores == row.cores
        assert theirs.shram.total_banks * row.cores == row.shram_kib


def test_an_unknown_accelerator() -> None:
    every = (
        "ethos-u55-32, ethos-u55-64, ethos-u55-128, ethos-u55-256, ethos-u65-256, ethos-u65-512, "
        "ethos-u85-128, ethos-u85-256, ethos-u85-512, ethos-u85-1024 or ethos-u85-2048"
    )
    assert refusal("ethos-u55-12") == (
        f"error[E210]: the accelerator must be {every}, not 'ethos-u55-12'\n"
        "  help did you mean ethos-u55-128?"
    )
    assert refusal("n78") == f"error[E210]: the accelerator must be {every}, not 'n78'"


def test_an_unknown_system_configuration() -> None:
    assert refusal(system_config="Ethos_U55_HighEnd_Embedded") == (
        "error[E211]: the system configuration must be Ethos_U55_Deep_Embedded or "
        "Ethos_U55_High_End_Embedded, not 'Ethos_U55_HighEnd_Embedded'\n"
        "  help did you mean Ethos_U55_High_End_Embedded?"
    )


def test_an_unknown_memory_mode() -> None:
    assert refusal(memory_mode="Shared_SRAM ") == (
        "error[E212]: the memory mode must be Sram_Only or Shared_Sram, not 'Shared_SRAM '\n"
        "  help did you mean Shared_Sram?"
    )


@pytest.mark.parametrize("mode", ["Dedicated_Sram", "Dedicated_Sram_256KB"])
def test_dedicated_sram_on_u55(mode: str) -> None:
    assert refusal(memory_mode=mode) == (
        "error[E218]: the memory mode must keep what ethos-u55-128 writes on Axi0, but "
        f"{mode} has feature maps on Axi1, which Ethos-U55 can only read\n"
        "  rule Ethos-U55 technical reference manual: AXI M1 is a read-only port\n"
        "  help with ethos-u55-128 and Ethos_U55_High_End_Embedded, choose Sram_Only or Shared_Sram"
    )


def test_feature_maps_in_flash() -> None:
    message = refusal(
        "ethos-u65-256", system_config="Ethos_U65_Embedded", memory_mode="Dedicated_Sram"
    )
    assert message == (
        "error[E218]: the memory mode must have feature maps in Sram or Dram, but Dedicated_Sram "
        "has them in OffChipFlash with Ethos_U65_Embedded\n"
        "  rule Vela 5.2.0, architecture_features.py: memory areas of a memory mode\n"
        "  help with ethos-u65-256 and Ethos_U65_Embedded, choose Sram_Only or Shared_Sram"
    )


def test_a_cache_in_dram(own: Path) -> None:
    own.write_text(
        OWN.replace("axi0_port: Sram", "axi0_port: Dram")
        .replace("SRAM_CLOCK", "Dram_CLOCK")
        .replace("Sram_", "Dram_")
    )
    message = refusal(config=own, system_config="Board", memory_mode="Mine")
    assert message == (
        "error[E218]: the memory mode must have its cache in Sram, but Mine has them in Dram with "
        "Board\n"
        "  rule Vela 5.2.0, architecture_features.py: memory areas of a memory mode\n"
        "  help with ethos-u55-128 and Board, choose one that the files hold (they hold none)"
    )


def test_a_missing_file() -> None:
    assert refusal(config="boards/vela.ini", system_config="A", memory_mode="B") == (
        "error[E213]: the configuration file boards/vela.ini must be readable: no such file or "
        "directory\n"
        "  help give the path of a file, or Arm/vela.ini, which Mizzen knows"
    )


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert refusal(config=tmp_path, system_config="A", memory_mode="B") == (
        f"error[E213]: the configuration file {tmp_path} must be readable: is a directory\n"
        "  help give the path of a file, or Arm/vela.ini, which Mizzen knows"
    )


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("core_clock=1\n", ", line 1", "it must follow a [section]"),
        ("[A]\n[B]\n[A]\n", ", line 3", "[A] is there twice"),
        ("[A]\nx=1\nX=2\n", ", line 3", "x is there twice in [A]"),
        ("[A]\nnonsense\n", ", line 2", "it must be `key=value` or [section]"),
    ],
)
def test_a_malformed_file(own: Path, text: str, place: str, reason: str) -> None:
    own.write_text(text)
    assert refusal(config=own, system_config="A", memory_mode="B") == (
        f"error[E214]: {own}{place}: a configuration file must be well-formed, but {reason}"
    )


def test_a_file_of_something_else(own: Path) -> None:
    own.write_bytes(b"\x1c\x00\x00\x00TFL3\xff\xfe")
    assert refusal(config=own, system_config="A", memory_mode="B") == (
        f"error[E214]: {own} must be a vela.ini file, but is no text"
    )
    own.write_bytes(b";" * (2 << 20))
    assert refusal(config=own, system_config="A", memory_mode="B") == (
        f"error[E214]: {own} must be a vela.ini file, but is over a MiB long"
    )


def test_inheritance_from_nowhere(own: Path) -> None:
    own.write_text(OWN.replace("inherit = System_Config.Board", "inherit = System_Config.Bord"))
    assert refusal(config=own, system_config="Faster", memory_mode="Mine") == (
        f"error[E215]: {own} [System_Config.Faster]: inherit must name a section of the files, "
        "not 'System_Config.Bord'\n"
        "  help did you mean System_Config.Board?"
    )


def test_inheritance_in_a_circle(own: Path) -> None:
    own.write_text(
        OWN.replace("core_clock = 250e6", "core_clock = 250e6\ninherit=System_Config.Faster")
    )
    assert refusal(config=own, system_config="Faster", memory_mode="Mine") == (
        f"error[E216]: {own} [System_Config.Board]: inheritance must end, but goes "
        "System_Config.Faster -> System_Config.Board -> System_Config.Faster"
    )


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("250e6", "fast", "core_clock must be a number above 0, up to 1.09951e+12, not 'fast'"),
        ("250e6", "nan", "core_clock must be a number above 0, up to 1.09951e+12, not 'nan'"),
        ("250e6", "-1", "core_clock must be a number above 0, up to 1.09951e+12, not '-1'"),
        (
            "axi0_port: Sram",
            "axi0_port: SRAM",
            "axi0_port must be Sram, Dram, OnChipFlash or OffChipFlash, not 'SRAM'",
        ),
        ("= 16", "= 16 ; bytes", "Sram_burst_length must be a whole number from 1 to "
         "1099511627776, not '16 ; bytes'"),
        ("= 70", "= 0x46", "OffChipFlash_read_latency must be a whole number from 0 to "
         "1099511627776, not '0x46'"),
        ("= 70", "= 1099511627777", "OffChipFlash_read_latency must be a whole number from 0 to "
         "1099511627776, not '1099511627777'"),
        ("250e6", "1e300", "core_clock must be a number above 0, up to 1.09951e+12, not '1e300'"),
    ],
)  # fmt: skip
def test_a_value_that_is_none(own: Path, before: str, after: str, message: str) -> None:
    own.write_text(OWN.replace(before, after))
    assert refusal(config=own, system_config="Board", memory_mode="Mine") == (
        f"error[E217]: {own} [System_Config.Board]: {message}"
    )


def test_a_mode_with_values_that_are_none(own: Path) -> None:
    own.write_text(OWN.replace("arena_mem_area = Axi0", "arena_mem_area = Axi2"))
    assert refusal(config=own, system_config="Board", memory_mode="Mine") == (
        f"error[E217]: {own} [Memory_Mode.Mine]: arena_mem_area must be Axi0 or Axi1, not 'Axi2'"
    )
    own.write_text(OWN.replace("65536", "0"))
    assert refusal(config=own, system_config="Board", memory_mode="Mine") == (
        f"error[E217]: {own} [Memory_Mode.Mine]: arena_cache_size must be a whole number from 1 to "
        "1099511627776, not '0'"
    )


def test_a_system_without_ports(own: Path) -> None:
    own.write_text(OWN.replace("axi1_port: OffChipFlash\n", ""))
    assert refusal(config=own, system_config="Board", memory_mode="Mine") == (
        f"error[E217]: {own} [System_Config.Board]: axi1_port must be given, as Sram, Dram, "
        "OnChipFlash or OffChipFlash"
    )


def test_an_own_file_needs_names(own: Path) -> None:
    assert refusal(config=own, system_config="Board") == (
        "error[E219]: with a configuration file of one's own, a memory mode must be named too\n"
        "  rule Vela 5.2.0 refuses a configuration file beside default names\n"
        "  help the files hold Board or Faster; Mine"
    )


def test_the_bundled_file_needs_no_names() -> None:
    assert resolve("ethos-u55-128", config=BUNDLED).mode.name == "Shared_Sram"


def test_an_unknown_strategy() -> None:
    assert refusal(optimise="Speed") == (
        "error[E220]: optimise must be Performance or Size, not 'Speed'"
    )


@pytest.mark.parametrize("size", [0, -1, 1 << 33])
def test_an_impossible_arena(size: int) -> None:
    assert refusal(arena_cache_size=size) == (
        "error[E221]: the arena cache size must be 1 to 4294967296 bytes on ethos-u55-128, "
        f"not {size}"
    )


def test_an_operator_type_that_is_none() -> None:
    assert refusal(ignore_ops=["SOFT MAX"]) == (
        "error[E222]: an operator type to keep on the CPU must be letters, digits and "
        "underscores, not 'SOFT MAX'"
    )
    assert resolve("ethos-u55-32", ignore_ops=["add", "ADD", " softmax"]).ignore_ops == (
        "ADD",
        "SOFTMAX",
    )


def warnings(accelerator: str, **keywords: object) -> list[str]:
    found = resolve(accelerator, **keywords)  # pyright: ignore[reportArgumentType] - as above
    return [row.render() for row in found.warnings]


def test_a_system_of_another_family_is_doubtful() -> None:
    assert warnings("ethos-u55-128", system_config="Ethos_U65_Mid_End") == [
        "warning[W211]: the system configuration Ethos_U65_Mid_End is for Ethos-U65, and "
        "ethos-u55-128 is an Ethos-U55: cycles are estimated for that system\n"
        "  help for Ethos-U55, choose Ethos_U55_Deep_Embedded or Ethos_U55_High_End_Embedded"
    ]


def test_keys_left_out_are_doubtful(own: Path) -> None:
    own.write_text(OWN.replace("core_clock = 250e6\n", "").replace("Sram_read_latency = 8\n", ""))
    found = warnings("ethos-u55-128", config=own, system_config="Board", memory_mode="Mine")
    assert found == [
        "warning[W217]: Board and Mine leave out core_clock, Sram_read_latency: defaults that no "
        "memory has are taken, and the estimates suffer\n"
        "  help add them to the file"
    ]


def test_an_arena_that_has_no_effect_is_doubtful() -> None:
    assert warnings("ethos-u55-128", optimise="Size", arena_cache_size=4096) == [
        "warning[W221]: with Shared_Sram, an arena cache size has no effect on optimising for "
        "size\n"
        "  help optimise for performance to plan within it"
    ]
    assert not warnings("ethos-u65-256", optimise="Size", arena_cache_size=4096)


def test_no_number_is_infinite() -> None:
    for name in ACCELERATORS:
        for row in resolve(name).settings:
            assert not isinstance(row.value, float) or math.isfinite(row.value)
