"""What the Ethos-U accelerators support, from the target's tables."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.compiler.support import Cell, Support, SupportRule, SupportTable, SupportText
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.lower import kinds_of
from mizzen.targets.ethos_u.judge.sim.hardware import hardware_of
from mizzen.targets.ethos_u.judge.sim.inferred import INFERRED
from mizzen.targets.ethos_u.legal.tflite import OPERATORS, RULES
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, TRAITS, Accelerator
from mizzen.targets.ethos_u.machine.program import HardwareId
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED, Sections, read_files

GROUPS = ("System_Config", "Memory_Mode")
SYSTEM_KEYS = ("core_clock", "axi0_port", "axi1_port")
MODE_KEYS = ("const_mem_area", "arena_mem_area", "cache_mem_area", "arena_cache_size")


def support(config: str | None) -> Support:
    """Return the tables; `config` names a `vela.ini` in place of the bundled ones. E213 to E217."""
    files = [config or BUNDLED]
    by_file = {name: read_files([name]) for name in files}
    operators = {kind: tuple(arch.value for arch in archs) for kind, archs in OPERATORS.items()}
    configurations = [part for name, row in by_file.items() for part in _file_parts(name, row)]
    return Support(
        operators=operators,
        rules=tuple(rules()),
        accelerators=tuple(_accelerator_data(row) for row in ACCELERATORS.values()),
        inferred=tuple(
            {"code": row.code, "npus": [arch.value for arch in row.archs], "what": row.what}
            for row in INFERRED
        ),
        parts=(
            _accelerators(),
            _defaults(),
            *configurations,
            *_operators(operators),
            *_ruled(),
            _inferred(),
        ),
        files={name: _file_data(sections) for name, sections in by_file.items()},
    )


def rules() -> Iterator[SupportRule]:
    """Return the rules, those for few operators before general ones."""
    for rule in sorted(RULES, key=lambda rule: len(rule.kinds)):
        npus = tuple(arch.value for arch in rule.on)
        yield SupportRule(rule.id, npus, rule.limit, rule.help, rule.source, rule.kinds)


def _accelerator_data(row: Accelerator) -> dict[str, object]:
    return {
        "name": row.name,
        "macs": row.macs,
        "cores": row.cores,
        "shram_kib": row.shram_kib,
        "system_config": row.traits.system_config,
        "memory_mode": row.traits.memory_mode,
        "simulated": _is_simulated(row),
    }


def _is_simulated(row: Accelerator) -> bool:
    try:
        hardware_of(HardwareId(row.config_word, 0))
    except MizzenError:
        return False
    return True


def _accelerators() -> SupportTable:
    return SupportTable(
        "Accelerators",
        ("accelerator", "MACs/cycle", "cores", "buffer", "Mizzen"),
        tuple(
            (
                row.name,
                str(row.macs),
                str(row.cores),
                "-" if row.shram_kib is None else f"{row.shram_kib} KiB",
                "compiles, runs" if _is_simulated(row) else "compiles",
            )
            for row in ACCELERATORS.values()
        ),
        right=(1, 2, 3),
    )


def _defaults() -> SupportTable:
    rows = tuple((arch.value, row.system_config, row.memory_mode) for arch, row in TRAITS.items())
    headings = ("NPU", "system configuration", "memory mode")
    return SupportTable("Defaults", headings, rows)


def _operators(operators: dict[str, tuple[str, ...]]) -> Iterator[SupportText]:
    for families in dict.fromkeys(operators.values()):
        kinds = ", ".join(kind for kind, found in operators.items() if found == families)
        yield SupportText(f"Operators for {', '.join(families)}", kinds)


def _ruled() -> Iterator[SupportText]:
    """Say which of TOSA's operations our own rules take, and which of them on U85 alone."""
    everywhere, on_u85 = kinds_of(Arch.U55), kinds_of(Arch.U85)
    for title, kinds in (
        ("TOSA's operations that Mizzen's rules take", everywhere),
        (f"TOSA's operations that they take on {Arch.U85.value} alone", on_u85 - everywhere),
    ):
        yield SupportText(title, ", ".join(sorted(kinds)))


def _inferred() -> SupportTable:
    rows = tuple(
        (row.code, ", ".join(arch.value.removeprefix("Ethos-") for arch in row.archs), row.what)
        for row in INFERRED
    )
    headings = ("note", "NPUs", "meaning inferred, not seen in a compiled network")
    return SupportTable("In the simulator", headings, rows)


def _file_data(sections: Sections) -> dict[str, object]:
    return {
        group.lower() + "s": {
            name: {key: entry.value for key, entry in sections.resolve(full).entries.items()}
            for full, name in _names(sections, group)
        }
        for group in GROUPS
    }


def _names(sections: Sections, group: str) -> list[tuple[str, str]]:
    """Return the full and the short names of the sections of a group."""
    prefix = group + "."
    return [(name, name[len(prefix) :]) for name in sections.names() if name.startswith(prefix)]


def _file_parts(file: str, sections: Sections) -> Iterator[SupportTable]:
    systems, modes = (
        tuple(
            (name, *(_value(sections, full, key) for key in keys))
            for full, name in _names(sections, group)
        )
        for group, keys in zip(GROUPS, (SYSTEM_KEYS, MODE_KEYS), strict=True)
    )
    if systems:
        headings = ("system configuration", "clock", "Axi0", "Axi1")
        yield SupportTable(f"System configurations of {file}", headings, systems, right=(1,))
    if modes:
        headings = ("memory mode", "constants", "arena", "cache", "SRAM for the cache")
        yield SupportTable(f"Memory modes of {file}", headings, modes)


def _value(sections: Sections, section: str, key: str) -> Cell:
    """Return a value for people: clocks in MHz, sizes in bytes, a dash for what is not given."""
    entry = sections.resolve(section).get(key)
    if entry is None:
        return "-"
    if key == "arena_cache_size" and entry.value.isdecimal():
        return int(entry.value)
    if key == "core_clock":
        return _megahertz(entry.value)
    return entry.value


def _megahertz(text: str) -> str:
    try:
        return f"{float(text) / 1e6:g} MHz"
    except ValueError:
        return text
