"""What lies between a network and its commands, as `inspect --between` shows it.

Each form is text; a form that is much like the one before is shown by the lines that differ.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import show_options, system_options
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, size, table
from mizzen.diagnostics import Origin, fail

if TYPE_CHECKING:
    from mizzen.compiler.ethos_u.stages import Network, Part, Stage, Stages
    from mizzen.compiler.source import Extents
    from mizzen.targets.ethos_u.generator.operations import Schedule

OF_ARTIFACTS = ("listing", "hazards", "why")
OF_NETWORKS = ("config", "system_config", "memory_mode", "arena_cache_size", "shape")
"""Options that say nothing about the other kind of file."""

INDENT = "  "
SAME, BEFORE, AFTER = "  ", "- ", "+ "
"""How lines of two forms begin: in both, only in the first, only in the second."""


def require_artifact(options: argparse.Namespace) -> None:
    """Refuse options that say how to compile a network where there is none. E200."""
    _refuse(options, OF_NETWORKS, "is for a network, with --between")


def between(options: argparse.Namespace, console: Console) -> Answer:
    """Show a network in the forms that were asked for. E200 for a stage that there is not."""
    from mizzen.compiler.ethos_u.stages import own_configuration, stages

    _refuse(options, OF_ARTIFACTS, "is for artifacts, without --between")
    asked = _asked(options.between)
    chosen = show_options(system_options(options), options.artifact, console)
    configuration = own_configuration(chosen.configuration)
    with console.progress(f"going through {options.artifact}"):
        network = _network(options.artifact, chosen.shapes)
        made = stages(network, configuration, asked[-1])
    if network.subgraphs > 1:
        console.note(f"  shown is the main one of {network.subgraphs} subgraphs")
    document = {
        "model": Path(options.artifact).name,
        "accelerator": configuration.accelerator.name,
        **_document(made, asked),
    }
    return Answer(document, "\n\n".join(_texts(made, asked, console)))


def _refuse(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Refuse options that say nothing about the file. E200."""
    given = next((name for name in names if getattr(options, name)), None)
    if given is not None:
        option = f"--{given.replace('_', '-')}"
        raise fail(
            "E200", f"the command line is wrong: {option} {why}", help="mizzen inspect --help"
        )


def _asked(text: str) -> list[Stage]:
    """Return the stages that an option names, in their order. E200 for others."""
    from mizzen.compiler.ethos_u.stages import Stage

    names = [name.strip() for name in text.split(",")]
    stages = {stage.value: stage for stage in Stage}
    for name in names:
        if name not in stages:
            raise fail(
                "E200",
                f"the command line is wrong: --between takes {', '.join(stages)}, not {name!r}",
                help="mizzen inspect --help",
            )
    return [stage for name, stage in stages.items() if name in names]


def _network(path: str, shapes: Extents) -> Network:
    """Read a file as a graph of integers. Raises E1xx as the front-ends do."""
    from mizzen.compiler.compile import PYTORCH, front_end_of, source_of
    from mizzen.compiler.ethos_u.stages import Network, network_of, readable

    source = source_of(path)
    if front_end_of(source) is not PYTORCH:
        return network_of(source, shapes)
    from mizzen.compiler.torch.exported import load_exported
    from mizzen.torch.lowering import integer_graph

    return Network(readable(integer_graph(load_exported(source.data, source.name), source.stem)))


def _texts(made: Stages, asked: Sequence[Stage], console: Console) -> Iterator[str]:
    """Yield the graph if what it is lowered to is asked for, what is refused, and each part."""
    from mizzen.compiler.ethos_u.stages import Stage
    from mizzen.graph import print_graph

    if Stage.LOWER in asked:
        heading = f"Graph: {count(len(made.graph.sorted()), 'operation')}"
        yield _form(heading, print_graph(made.graph).splitlines())
    if made.refusals:
        refused = [(str(origin), reason) for origin, reason in _refused(made)]
        lines = table(refused, width=console.width)
        yield f"Refused: no rule takes these operators for the NPU\n{lines}"
    for number, part in enumerate(made.parts, 1):
        if made.refusals:
            yield f"Part {number} of {len(made.parts)}: {_operators(part)}"
        yield from _part(part, asked)


def _part(part: Part, asked: Sequence[Stage]) -> Iterator[str]:
    from mizzen.compiler.ethos_u.stages import Stage

    before = str(part.lowered).splitlines()
    if Stage.LOWER in asked:
        operations = count(len(part.lowered.operations), "operation")
        yield _form(f"Lowered: {operations} of the NPU", before)
    if part.arranged is not None and Stage.ARRANGE in asked:
        after = str(part.arranged).splitlines()
        heading = f"Arranged: {count(len(part.arranged.operations), 'operation')}"
        if Stage.LOWER not in asked:
            yield _form(heading, after)
        elif before == after:
            yield f"{heading}, as lowered"
        else:
            lines, differing = _compared(before, after)
            yield _form(f"{heading}, {count(differing, 'line')} changed", lines)
    if part.schedule is not None:
        yield _form(_scheduled(part.schedule), str(part.schedule).splitlines())


def _scheduled(schedule: Schedule) -> str:
    """Return a schedule's heading."""
    from mizzen.targets.ethos_u.machine.program import RegionIndex

    regions = " and ".join(
        f"{size(size_bytes)} of {RegionIndex(region).name}"
        for region, size_bytes in sorted(schedule.region_bytes.items())
    )
    return f"Scheduled: {count(len(schedule.items), 'step')}, {regions}"


def _form(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((heading, *(INDENT + line for line in lines)))


def _compared(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], int]:
    """Return the lines that differ, with how many stand between them, and their number.

    A line that is only further in, as those of a chain are, is as before.
    """
    lines: list[str] = []
    differing = 0
    before, after = ([line.strip() for line in form] for form in (before, after))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, stop, other_start, other_stop in matcher.get_opcodes():
        if kind == "equal":
            lines.append(f"{SAME}... {count(stop - start, 'line')} as before")
            continue
        lines += _side_by_side(before[start:stop], after[other_start:other_stop])
        differing += max(stop - start, other_stop - other_start)
    return lines, differing


def _side_by_side(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield lines that differ, those of one tensor together."""
    own = {_tensor(line) for line in after}
    yield from (BEFORE + line for line in before if _tensor(line) not in own)
    waiting = list(before)
    for line in after:
        matching = [other for other in waiting if _tensor(other) == _tensor(line)]
        yield from (BEFORE + other for other in matching)
        yield AFTER + line
        waiting = [other for other in waiting if other not in matching]


def _tensor(line: str) -> str:
    """Return the tensor that a line is about, without its part."""
    return re.split(r" = |[@\[]", line, maxsplit=1)[0]


def _refused(made: Stages) -> list[tuple[Origin, str]]:
    """Return the operators that no rule takes, once each, with the reason."""
    refused = [
        (refusal.operation.origin or Origin(kind=refusal.operation.kind), refusal.reason)
        for refusal in made.refusals
    ]
    return list(dict.fromkeys(refused))


def _operators(part: Part) -> str:
    """Return which operators of the network a part is made of."""
    named = _operator_numbers(part)
    if not named:
        return count(len(part.operations), "operation")
    return f"{count(len(named), 'operator')}, {_ranges(named)}"


def _operator_numbers(part: Part) -> list[int]:
    """Return the numbers of the network's operators that a part is made of."""
    origins = [operation.origin for operation in part.operations if operation.origin is not None]
    return sorted({origin.operator for origin in origins if origin.operator is not None})


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as ``0..3, 7``."""
    ends: list[tuple[int, int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1] = ends[-1][0], number
        else:
            ends.append((number, number))
    return ", ".join(str(one) if one == other else f"{one}..{other}" for one, other in ends)


def _document(made: Stages, asked: Sequence[Stage]) -> dict[str, object]:
    from mizzen.compiler.ethos_u.stages import Stage
    from mizzen.graph import print_graph

    graph = {"graph": print_graph(made.graph).splitlines()} if Stage.LOWER in asked else {}
    refused = [
        {"operator": origin.operator, "kind": origin.kind, "reason": reason}
        for origin, reason in _refused(made)
    ]
    return {
        **graph,
        "refused": refused,
        "parts": [_part_data(part, asked) for part in made.parts],
    }


def _part_data(part: Part, asked: Sequence[Stage]) -> dict[str, object]:
    forms = {"lower": part.lowered, "arrange": part.arranged, "schedule": part.schedule}
    names = {stage.value for stage in asked}
    return {
        "operators": _operator_numbers(part),
        **{name: str(form).splitlines() for name, form in forms.items() if name in names},
    }
