"""Performance data as JSON, byte for byte as the library prints it.

Ref: Ethos-N driver stack 23.02, `Support.cpp` (`PrintNetworkPerformanceDataJson`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mizzen.targets.ethos_n.timing.cycles import PerformanceData
from mizzen.targets.ethos_n.timing.statistics import ParentIds, Pass, Statistics, Traffic

Figures = Mapping[str, int | str]


def as_json(data: PerformanceData, indent_tabs: int = 0) -> str:
    """Print performance data, indented by tabs, with a newline at its end."""
    return "".join(f"{line}\n" for line in _indented(_lines(data), indent_tabs))


def _indented(lines: Iterator[str], tabs: int) -> Iterator[str]:
    return ("\t" * tabs + line for line in lines)


def _lines(data: PerformanceData) -> Iterator[str]:
    yield "{"
    yield '\t"Stream":'
    yield "\t["
    for at, (row, figures) in enumerate(data.passes, 1):
        yield from _separated(_pass_lines(row, figures), at == len(data.passes), tabs=2)
    yield "\t],"
    yield '\t"Issues":'
    issues = {str(key): f'"{text}"' for key, text in sorted(data.issues.items())}
    yield from _indented(_object(issues), 1)
    yield "}"


def _separated(lines: Iterator[str], is_last: bool, tabs: int) -> Iterator[str]:
    """Indent the lines of a value, with a comma behind it unless it is the last."""
    *before, end = _indented(lines, tabs)
    yield from before
    yield end if is_last else f"{end},"


def _object(figures: Figures) -> Iterator[str]:
    yield "{"
    for at, (name, figure) in enumerate(figures.items(), 1):
        yield f'\t"{name}": {figure}' + ("" if at == len(figures) else ",")
    yield "}"


def _pass_lines(row: Pass, figures: Statistics) -> Iterator[str]:
    yield "{"
    yield f'\t"OperationIds": [ {", ".join(map(str, row.operation_ids))} ],'
    yield f'\t"ParentIds": {_parents(row.parents)},'
    parts = _parts(figures)
    for at, (name, part) in enumerate(parts.items(), 1):
        yield f'\t"{name}":'
        yield from _separated(_object(part), at == len(parts), tabs=1)
    yield "}"


def _parents(parents: ParentIds) -> str:
    inner = ",".join(f" {row if isinstance(row, int) else _parents(row)}" for row in parents)
    return f"[{inner} ]" if inner else "[]"


def _parts(figures: Statistics) -> dict[str, Figures]:
    """Return the figures by the library's names, in its order."""
    saved = f"{figures.weights.compression_savings:.6g}"
    return {
        "Input": _traffic(figures.input),
        "Output": _traffic(figures.output),
        "Weights": {**_traffic(figures.weights.traffic), "CompressionSavings": saved},
        "Mce": {"Operations": figures.mce.operations, "CycleCount": figures.mce.cycles},
        "Ple": {
            "NumOfPatches": figures.ple.patches,
            "Operation": int(figures.ple.operation),
        },
    }


def _traffic(traffic: Traffic) -> Figures:
    return {
        "DramParallelBytes": traffic.dram_parallel_bytes,
        "DramNonParallelBytes": traffic.dram_non_parallel_bytes,
        "SramBytes": traffic.sram_bytes,
        "NumCentralStripes": traffic.central_stripes,
        "NumBoundaryStripes": traffic.boundary_stripes,
        "NumReloads": traffic.reloads,
    }
