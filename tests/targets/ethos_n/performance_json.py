"""Performance data as JSON, byte for byte as the library prints it.

Ref: Ethos-N driver stack 23.02, `Support.cpp` (`PrintNetworkPerformanceDataJson`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mizzen.targets.ethos_n.timing import Estimated, as_data


def as_json(rows: Estimated) -> str:
    """Print performance data, with a newline at its end."""
    return "".join(f"{line}\n" for line in _lines(as_data(rows)))


def _indented(lines: Iterator[str], tabs: int) -> Iterator[str]:
    return ("\t" * tabs + line for line in lines)


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    yield "{"
    yield '\t"Stream":'
    yield "\t["
    passes = data["Stream"]
    for at, row in enumerate(passes, 1):
        yield from _separated(_pass_lines(row), at == len(passes), tabs=2)
    yield "\t],"
    yield '\t"Issues":'
    yield from _indented(_object(data["Issues"]), 1)
    yield "}"


def _separated(lines: Iterator[str], is_last: bool, tabs: int) -> Iterator[str]:
    """Indent the lines of a value, with a comma behind it unless it is the last."""
    *before, end = _indented(lines, tabs)
    yield from before
    yield end if is_last else f"{end},"


def _object(figures: Mapping[str, float]) -> Iterator[str]:
    yield "{"
    for at, (name, figure) in enumerate(figures.items(), 1):
        yield f'\t"{name}": {figure if isinstance(figure, int) else f"{figure:.6g}"}' + (
            "" if at == len(figures) else ","
        )
    yield "}"


def _pass_lines(row: Mapping[str, Any]) -> Iterator[str]:
    yield "{"
    yield f'\t"OperationIds": [ {", ".join(map(str, row["OperationIds"]))} ],'
    yield f'\t"ParentIds": {_parents(row["ParentIds"])},'
    parts = {name: part for name, part in row.items() if isinstance(part, dict)}
    for at, (name, part) in enumerate(parts.items(), 1):
        yield f'\t"{name}":'
        yield from _separated(_object(part), at == len(parts), tabs=1)
    yield "}"


def _parents(parents: Sequence[Any]) -> str:
    inner = ",".join(f" {row if isinstance(row, int) else _parents(row)}" for row in parents)
    return f"[{inner} ]" if inner else "[]"
