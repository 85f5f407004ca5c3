"""List accelerators, system configurations, memory modes and operators."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, paragraph, size, table
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.targets.ethos_u.config import Accelerator
    from mizzen.targets.ethos_u.legal.rule import Rule
    from mizzen.targets.ethos_u.vela_ini import Sections

GROUPS = ("System_Config", "Memory_Mode")
SUMMARY = "what each NPU supports, from Mizzen's own tables"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="vela.ini whose system configurations and memory modes are listed "
        "(default: every bundled one)",
    )
    parser.add_argument(
        "--operator",
        metavar="TYPE",
        help="only what an operator must keep to for the NPU, for instance CONV_2D",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """List what there is."""
    if options.operator is not None:
        return _operator_answer(options.operator.upper(), console)
    from mizzen.targets.ethos_u.config import ACCELERATORS
    from mizzen.targets.ethos_u.vela_ini import bundled_files, read_files

    files = [options.config] if options.config else bundled_files()
    by_file = {name: read_files([name]) for name in files}
    document = {
        "accelerators": [_accelerator_data(row) for row in ACCELERATORS.values()],
        "files": {name: _file_data(sections) for name, sections in by_file.items()},
        "operators": operators(),
        "rules": [{**_rule_data(rule), "operators": sorted(rule.operators)} for rule in rules()],
        "inferred": inferred_paths(),
    }
    parts = [_accelerator_text(list(ACCELERATORS.values()), console), _default_text(console)]
    for name, sections in by_file.items():
        parts += _file_text(name, sections, console)
    parts.append(_operators_text(console))
    parts.append(_inferred_text(console))
    return Answer(document, "\n\n".join(parts))


def operators() -> dict[str, tuple[str, ...]]:
    """Give the operators that an NPU has a form of, each with the families that have it."""
    from mizzen.targets.ethos_u.legal.rule import OPERATORS

    return {kind: tuple(arch.value for arch in archs) for kind, archs in OPERATORS.items()}


def rules(kind: str | None = None) -> list[Rule]:
    """Give the rules for operators, or for one, those for few operators before general ones."""
    from mizzen.targets.ethos_u.legal import RULES

    found = [rule for rule in RULES if kind is None or kind in rule.operators]
    return sorted(found, key=lambda rule: len(rule.operators))


def _operator_answer(kind: str, console: Console) -> Answer:
    import difflib

    known = operators()
    if kind not in known:
        close = difflib.get_close_matches(kind, known, n=1)
        help = f"did you mean {close[0]}?" if close else "`mizzen targets` lists them"
        raise fail("E204", f"--operator must be a type that an NPU has, not {kind!r}", help=help)
    parts = [f"{kind}\n{fields([('NPU', ', '.join(known[kind]))], width=console.width)}"]
    for rule in rules(kind):
        rows = [
            ("NPU", ", ".join(arch.value for arch in rule.archs)),
            ("must have", rule.limit),
            ("help", rule.help),
            ("rule", rule.source),
        ]
        parts.append(f"{kind}: {rule.id}\n{fields(rows, width=console.width)}")
    return Answer(_operator_data(kind), "\n\n".join(parts))


def _operator_data(kind: str) -> dict[str, object]:
    return {
        "type": kind,
        "npus": operators()[kind],
        "rules": [_rule_data(rule) for rule in rules(kind)],
    }


def _rule_data(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "npus": [arch.value for arch in rule.archs],
        "limit": rule.limit,
        "help": rule.help,
        "source": rule.source,
    }


def _operators_text(console: Console) -> str:
    known = operators()
    parts: list[str] = []
    for families in dict.fromkeys(known.values()):
        kinds = ", ".join(kind for kind in known if known[kind] == families)
        text = paragraph(kinds, width=console.width, indent="  ")
        parts.append(f"Operators for {', '.join(families)}\n{text}")
    return "\n\n".join([*parts, "`mizzen targets --operator TYPE` gives an operator's limits."])


def inferred_paths() -> list[dict[str, object]]:
    """Give what the simulator executes by inference, not by the example of a compiled network."""
    from mizzen.targets.ethos_u.sim.inferred import INFERRED

    return [
        {"code": row.code, "npus": [arch.value for arch in row.families], "what": row.what}
        for row in INFERRED
    ]


def _inferred_text(console: Console) -> str:
    from mizzen.targets.ethos_u.sim.inferred import INFERRED

    cells = [
        (row.code, ", ".join(arch.value.removeprefix("Ethos-") for arch in row.families), row.what)
        for row in INFERRED
    ]
    headings = ("note", "NPUs", "meaning inferred, not seen in a compiled network")
    return "In the simulator\n" + table(cells, width=console.width, headings=headings)


def _simulated(row: Accelerator) -> bool:
    from mizzen.diagnostics import MizzenError
    from mizzen.targets.ethos_u.program import HardwareId
    from mizzen.targets.ethos_u.sim.hardware import hardware_of

    try:
        hardware_of(HardwareId(row.config_word, 0))
    except MizzenError:
        return False
    return True


def _accelerator_data(row: Accelerator) -> dict[str, object]:
    return {
        "name": row.name,
        "macs": row.macs,
        "cores": row.cores,
        "shram_kib": row.shram_kib,
        "system_config": row.family.system_config,
        "memory_mode": row.family.memory_mode,
        "simulated": _simulated(row),
    }


def _accelerator_text(rows: list[Accelerator], console: Console) -> str:
    cells = [
        (
            row.name,
            str(row.macs),
            str(row.cores),
            "-" if row.shram_kib is None else f"{row.shram_kib} KiB",
            "compiles, runs" if _simulated(row) else "compiles",
        )
        for row in rows
    ]
    headings = ("accelerator", "MACs/cycle", "cores", "buffer", "Mizzen")
    return "Accelerators\n" + table(cells, width=console.width, headings=headings, right=(1, 2, 3))


def _default_text(console: Console) -> str:
    from mizzen.targets.ethos_u.config import FAMILIES

    cells = [(arch.value, row.system_config, row.memory_mode) for arch, row in FAMILIES.items()]
    headings = ("NPU", "system configuration", "memory mode")
    return "Taken when not asked for\n" + table(cells, width=console.width, headings=headings)


def _file_data(sections: Sections) -> dict[str, object]:
    return {
        group.lower() + "s": {
            name: {key: entry.value for key, entry in sections.resolve(full).entries.items()}
            for full, name in _names(sections, group)
        }
        for group in GROUPS
    }


def _names(sections: Sections, group: str) -> list[tuple[str, str]]:
    """Give the full and the short names of the sections of a group."""
    prefix = group + "."
    return [(name, name[len(prefix) :]) for name in sections.names() if name.startswith(prefix)]


def _file_text(file: str, sections: Sections, console: Console) -> list[str]:
    def rows(group: str, keys: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [
            (name, *(_value(sections, full, key) for key in keys))
            for full, name in _names(sections, group)
        ]

    systems = rows("System_Config", ("core_clock", "axi0_port", "axi1_port"))
    modes = rows(
        "Memory_Mode", ("const_mem_area", "arena_mem_area", "cache_mem_area", "arena_cache_size")
    )
    parts: list[str] = []
    if systems:
        headings = ("system configuration", "clock", "Axi0", "Axi1")
        text = table(systems, width=console.width, headings=headings, right=(1,))
        parts.append(f"System configurations of {file}\n{text}")
    if modes:
        headings = ("memory mode", "constants", "arena", "cache", "SRAM for the cache")
        text = table(modes, width=console.width, headings=headings)
        parts.append(f"Memory modes of {file}\n{text}")
    return parts


def _value(sections: Sections, section: str, key: str) -> str:
    """Give a value for people: clocks in MHz, sizes in KiB, a dash for what is not given."""
    entry = sections.resolve(section).get(key)
    if entry is None:
        return "-"
    if key == "arena_cache_size" and entry.value.isdecimal():
        return size(int(entry.value))
    if key == "core_clock":
        return _megahertz(entry.value)
    return entry.value


def _megahertz(text: str) -> str:
    try:
        return f"{float(text) / 1e6:g} MHz"
    except ValueError:
        return text
