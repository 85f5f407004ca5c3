"""Layers from a compilation's placements, the costs of its operations, and what lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.analysis.cost.origins import by_owner
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
    operations = by_owner(cost.operations, report)
    made = [
        _layer(
            placement,
            operations.get((placement.subgraph, placement.index), ()),
            cost.cycles,
            alive,
        )
        for placement in report.placements
    ]
    for device, kind in OF_NO_OPERATOR.items():
        if unowned := operations.get(device):
            nobody = OperatorPlacement(-1, kind, "", device, 0, 0)
            made.append(_layer(nobody, unowned, cost.cycles, alive))
    return tuple(made)


def _alive(memory: MemoryReport | None) -> Callable[[int], int | None]:
    """Return a function that tells how many bytes of SRAM are alive at an operation."""
    if memory is None:
        return lambda operation: None
    areas = [area.live_bytes for area in memory.areas if area.memory == SRAM]

    def of(operation: int) -> int:
        return sum(live[operation] for live in areas if operation < len(live))

    return of


def _layer(
    placement: OperatorPlacement,
    operations: Sequence[OperationCost],
    whole_cycles: int,
    alive: Callable[[int], int | None],
) -> Layer:
    cycles = sum(operation.cycles for operation in operations)
    share = cycles / whole_cycles if whole_cycles else 0.0
    causes = added(operation.causes for operation in operations)
    at_work = [bytes_ for operation in operations if (bytes_ := alive(operation.index)) is not None]
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
        sram_bytes=max(at_work, default=None),
        shape=placement.shape or _shape(operations),
        operations=tuple(operation.index for operation in operations),
        subgraph=placement.subgraph,
    )


def _utilisation(macs: int, operations: Sequence[OperationCost]) -> float:
    """Return MACs over the array's, in the time from an operation's start to its end."""
    capacity = sum(
        operation.macs_per_cycle * (operation.end_cycles - operation.start_cycles)
        for operation in operations
    )
    return macs / capacity if capacity else 0.0


def _shape(operations: Sequence[OperationCost]) -> str:
    """Return the shape of the operation that has most to do."""
    kernels = [operation for operation in operations if operation.shape]
    return (
        max(kernels, key=lambda operation: (operation.macs, operation.cycles)).shape
        if kernels
        else ""
    )
