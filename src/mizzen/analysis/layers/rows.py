"""Layers from a compilation's placements, the costs of its operations, and what lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.analysis.layers.advice import advice
from mizzen.diagnostics import Device
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.compilation import SRAM
from mizzen.report.cost import CostReport, OperationCost, added
from mizzen.report.layers import Layer
from mizzen.report.memory import MemoryReport

OF_NO_OPERATOR = {Device.NPU: "transfers", Device.CPU: "conversions"}
"""Kinds of layers that are no operator's: what the NPU moves for several of them, and what brings
numbers into the form that the NPU takes, or back."""


def layers(
    report: CompileReport, cost: CostReport, memory: MemoryReport | None = None
) -> tuple[Layer, ...]:
    """Return the operators of a model with what they cost and need, in the model's order.

    What belongs to no operator is a last row for each device, so that the rows' cycles add up to
    the inference's.
    """
    alive = _alive(memory)
    operations: dict[tuple[str, int] | Device, list[OperationCost]] = {}
    known = {(row.subgraph, row.index) for row in report.placements}
    titles = {report.model: ""} | {row.model: row.subgraph for row in report.subgraphs}
    elsewhere = "another subgraph" if report.subgraph else ""
    for row in cost.operations:
        owner: tuple[str, int] | Device = row.device
        if row.origin is not None and row.origin.operator is not None:
            place = titles.get(row.origin.model or "", elsewhere), row.origin.operator
            owner = place if place in known else owner
        operations.setdefault(owner, []).append(row)
    rows = [
        _layer(
            placement,
            operations.get((placement.subgraph, placement.index), ()),
            cost.cycles,
            alive,
        )
        for placement in report.placements
    ]
    for device, kind in OF_NO_OPERATOR.items():
        if found := operations.get(device):
            nobody = OperatorPlacement(-1, kind, "", device, 0, 0)
            rows.append(_layer(nobody, found, cost.cycles, alive))
    return tuple(rows)


def _alive(memory: MemoryReport | None) -> Callable[[int], int | None]:
    """Return what says how many bytes of SRAM are alive at an operation."""
    if memory is None:
        return lambda operation: None
    areas = [row.live_bytes for row in memory.areas if row.memory == SRAM]

    def of(operation: int) -> int:
        return sum(row[operation] for row in areas if operation < len(row))

    return of


def _layer(
    placement: OperatorPlacement,
    operations: Sequence[OperationCost],
    whole_cycles: int,
    alive: Callable[[int], int | None],
) -> Layer:
    cycles = sum(row.cycles for row in operations)
    share = cycles / whole_cycles if whole_cycles else 0.0
    causes = added(row.causes for row in operations)
    at_work = [found for row in operations if (found := alive(row.index)) is not None]
    return Layer(
        index=placement.index if placement.index >= 0 else None,
        kind=placement.kind,
        name=placement.name,
        device=placement.device,
        macs=placement.macs,
        cycles=cycles,
        share=share,
        causes=causes,
        utilisation=_utilisation(placement.macs, operations),
        compiler_cycles=_compiler_cycles(operations),
        sram_bytes=max(at_work, default=None),
        shape=_shape(operations),
        operations=tuple(row.index for row in operations),
        advice=advice(operations, causes, share),
        subgraph=placement.subgraph,
    )


def _utilisation(macs: int, operations: Sequence[OperationCost]) -> float:
    """Return MACs over the array's, in the time from an operation's start to its end."""
    capacity = sum(row.macs_per_cycle * (row.end_cycles - row.start_cycles) for row in operations)
    return macs / capacity if capacity else 0.0


def _compiler_cycles(operations: Sequence[OperationCost]) -> int | None:
    said = [row.compiler_cycles for row in operations if row.compiler_cycles is not None]
    return sum(said) if said else None


def _shape(operations: Sequence[OperationCost]) -> str:
    """Return the shape of the operation that has most to do."""
    kernels = [row for row in operations if row.shape]
    return max(kernels, key=lambda row: (row.macs, row.cycles)).shape if kernels else ""
