"""Compile and check TOSA networks: whoever wrote one has decided that all of it is for the NPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.artifact import Artifact
from mizzen.backends.backend import Waiting
from mizzen.backends.ethos_n.configuration import InForce
from mizzen.backends.ethos_n.regions import COMPILER, ContainerCode, EthosNRegions
from mizzen.diagnostics import Reason, fail
from mizzen.flatbuffer.tosa import ENDING
from mizzen.graph import Graph, Operation
from mizzen.partition import Extracted, Place
from mizzen.placing import place
from mizzen.regions import Refusal, areas_of, performance_of
from mizzen.report import CompileReport
from mizzen.tosa_compilation import CONSTANTS, index_of, placements_of, read_tosa


def compile_tosa(
    data: bytes, name: str, configuration: InForce, waiting: Waiting | None
) -> Artifact:
    """Compile a file's network.

    E15x, E80x, E158 and E223 as for every TOSA network, E995 for operators that the NPU does not
    take.
    """
    graph = _read(data, name, configuration)
    compiler = EthosNRegions(configuration.target, configuration.inline)
    legal = compiler.legality(graph)
    refused = {row: found[0] for row in _computing(graph) if (found := legal(row))}
    if refused:
        raise _refused(refused, configuration)
    code = compiler.compile(Extracted(graph, tuple(graph.inputs), tuple(graph.outputs)), waiting)
    if isinstance(code, Refusal):
        rows = {row: code.reasons.get(row.group or 0) for row in graph}
        raise _refused({row: why for row, why in rows.items() if why}, configuration)
    report = _report(graph, name, configuration, [code], {})
    stem = name.removesuffix(ENDING)
    return Artifact(code.network, f"{stem}_ethosn.tflite", report, [dict(code.origins)])


def check_tosa(
    data: bytes, name: str, configuration: InForce, waiting: Waiting | None
) -> CompileReport:
    """Place a file's operators; cycles and memory are of those that the NPU takes."""
    graph = _read(data, name, configuration)
    compiler = EthosNRegions(configuration.target, configuration.inline)
    legal = compiler.legality(graph)
    placed = place(graph, legal, lambda operation: False, compiler, waiting)
    codes = [placed.code[row.groups] for row in placed.partition.regions if row.place is Place.NPU]
    refused = {
        row.group: row.reasons for row in placed.partition.groups.values() if row.place is Place.CPU
    }
    by_index = {index_of(row): refused[row.group] for row in graph if row.group in refused}
    used = [code for code in codes if isinstance(code, ContainerCode)]
    return _report(graph, name, configuration, used, by_index)


def _read(data: bytes, name: str, configuration: InForce) -> Graph:
    """Read a network, each of whose operators is a group."""
    graph = read_tosa(data, name, configuration.ignore_ops)
    for group, operation in enumerate(graph.sorted()):
        operation.group = group
    return graph


def _computing(graph: Graph) -> list[Operation]:
    return [row for row in graph.sorted() if row.kind not in CONSTANTS]


def _refused(refused: Mapping[Operation, Reason], configuration: InForce) -> Exception:
    operation, reason = next(iter(refused.items()))
    others = "" if len(refused) == 1 else f" (and {len(refused) - 1} others)"
    return fail(
        "E995",
        f"{configuration.target.variant.name} must run every operator of a TOSA network, and does "
        f"not take {operation.kind}{others}: {reason.message}",
        origin=operation.origin,
        rule=reason.source or None,
        help=reason.help or "`mizzen check` says which operators it takes",
    )


def _report(
    graph: Graph,
    name: str,
    configuration: InForce,
    codes: Sequence[ContainerCode],
    refused: Mapping[int | None, tuple[Reason, ...]],
) -> CompileReport:
    areas = areas_of([code.costs for code in codes])
    groups = {group: cycles for code in codes for group, cycles in code.cycles.items()}
    cycles = {index_of(row): groups.get(row.group or 0, 0) for row in _computing(graph)}
    return CompileReport(
        model=name,
        configuration=configuration.as_dict(),
        compiler=COMPILER,
        placements=tuple(placements_of(graph, cycles, refused)),
        arena_bytes=max((area.used_bytes for area in areas if area.name == "arena"), default=0),
        flash_bytes=sum(len(code.network) for code in codes),
        areas=areas,
        memories=(),
        cycles=sum(code.costs.cycles for code in codes),
        npu_cycles=sum(code.costs.npu_cycles for code in codes),
        performance=performance_of([code.costs for code in codes]),
        origins=tuple(dict(code.origins) for code in codes),
    )
