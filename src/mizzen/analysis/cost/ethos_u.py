"""The operations of an Ethos-U stream as rows of a cost report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mizzen.analysis.cost.rounding import whole_parts, whole_steps
from mizzen.diagnostics import Device, Origin
from mizzen.report.cost import Bound, OperationCost, Purpose, Span, Traffic, Unit
from mizzen.targets.ethos_u.judge.timing import (
    Cause,
    Held,
    KernelWork,
    Timed,
    TransferWork,
    WorkKind,
    estimate,
)
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Memory, Port
from mizzen.targets.ethos_u.machine.program import Program

TRANSFER = "OP_DMA_START"
"""Transfers serve several operators, and belong to none."""

MEMORY_BOUNDS = {
    Memory.SRAM: Bound.SRAM,
    Memory.DRAM: Bound.DRAM,
    Memory.ON_CHIP_FLASH: Bound.FLASH,
    Memory.OFF_CHIP_FLASH: Bound.FLASH,
}


def ethos_u_operations(
    program: Program, configuration: EthosUConfiguration
) -> tuple[list[OperationCost], list[Span]]:
    """Return the operations of a stream, timed in a system, and when units are at work."""
    timed = estimate(program, configuration)
    cycles = whole_steps(operation.cycles for operation in timed)
    operations = [
        _row(operation, index, count, configuration)
        for index, (operation, count) in enumerate(zip(timed, cycles, strict=True))
    ]
    operations = list(_of_operators(operations))
    spans = [span for index, operation in enumerate(timed) for span in _spans(operation, index)]
    total = sum(cycles)
    return operations, [_within(span, total) for span in spans]


def _of_operators(operations: Sequence[OperationCost]) -> Iterator[OperationCost]:
    """Return operations, kernels of no known operator as ones of the next that has one.

    The compiler makes several operations of some operators, and says of the last whose it is.
    """
    owners: list[Origin | None] = []
    known: Origin | None = None
    for operation in reversed(operations):
        if (
            operation.name != TRANSFER
            and operation.origin is not None
            and operation.origin.operator is not None
        ):
            known = operation.origin
        owners.append(known)
    for operation, owner in zip(operations, reversed(owners), strict=True):
        if (
            operation.name == TRANSFER
            or owner is None
            or operation.origin is None
            or operation.origin.operator is not None
        ):
            yield operation
        else:
            yield replace(operation, origin=replace(owner, command=operation.origin.command))


def _row(
    timed: Timed, index: int, cycles: int, configuration: EthosUConfiguration
) -> OperationCost:
    return OperationCost(
        step=0,
        index=index,
        name=timed.work.name,
        device=Device.NPU,
        origin=timed.work.origin,
        start_cycles=round(timed.start),
        end_cycles=round(timed.end),
        cycles=cycles,
        causes=whole_parts(_bounds(timed, configuration), cycles),
        macs=timed.work.macs if isinstance(timed.work, KernelWork) else 0,
        macs_per_cycle=configuration.accelerator.macs,
        shape=_shape(timed.work),
        detail=_detail(timed.work),
        traffic=tuple(_traffic(timed)),
        vela_cycles=timed.vela_cycles,
    )


def _bounds(timed: Timed, configuration: EthosUConfiguration) -> Mapping[Bound, float]:
    bounds: dict[Bound, float] = {}
    for (cause, port), share in timed.causes.items():
        bound = _bound(cause, port, configuration)
        bounds[bound] = bounds.get(bound, 0.0) + share
    return bounds


def _bound(cause: Cause, port: Port | None, configuration: EthosUConfiguration) -> Bound:
    if cause is Cause.MEMORY and port is not None:
        return MEMORY_BOUNDS[configuration.memory(port)]
    return Bound[cause.name]


def _traffic(timed: Timed) -> Iterator[Traffic]:
    sums: dict[tuple[str, str, Purpose], tuple[int, int]] = {}
    for use in timed.uses:
        key = use.bus.memory.value, use.bus.port.value, _purpose(use.held)
        read, written = sums.get(key, (0, 0))
        sums[key] = read + use.read_bytes, written + use.written_bytes
    for key, both in sums.items():
        yield Traffic(*key, *both)


def _purpose(held: Held) -> Purpose:
    return Purpose[held.name]


def _size(shape: tuple[int, int, int]) -> str:
    return "x".join(map(str, shape))


def _shape(work: KernelWork | TransferWork) -> str:
    if isinstance(work, TransferWork):
        return f"{work.destination.bytes_:,} bytes"
    taken = " and ".join(_size(item.map.shape) for item in work.blocks.inputs)
    return f"{taken} -> {_size(work.blocks.shape)}" if taken else f"-> {_size(work.blocks.shape)}"


def _detail(work: KernelWork | TransferWork) -> str:
    if isinstance(work, TransferWork):
        return ""
    parts = [f"block {_size(work.blocks.block)}"]
    if work.mode:
        parts.append(work.mode)
    if work.kind is WorkKind.CONVOLUTION:
        parts.append("kernel first" if work.part_kernel else "depth first")
    if work.kind not in (WorkKind.ELEMENTWISE, WorkKind.RESIZE):
        parts.append(f"{sum(work.subkernels)} kernel elements")
    if work.blockdep:
        parts.append(f"BLOCKDEP {work.blockdep}")
    return ", ".join(parts)


def _spans(timed: Timed, index: int) -> Iterator[Span]:
    if timed.stages is None:
        yield Span(Unit.DMA, index, round(timed.start), round(timed.end))
        return
    stages = timed.stages
    start = timed.end - stages.drain_cycles - stages.main_cycles
    for unit, busy, first in (
        (Unit.MAC, stages.mac_cycles, start),
        (Unit.WEIGHTS, stages.decode_cycles, start),
        (Unit.OUTPUT, stages.output_cycles, max(start, timed.end - stages.main_cycles)),
    ):
        if busy:
            yield Span(unit, index, round(first), round(min(first + max(busy, 1.0), timed.end)))


def _within(span: Span, total: int) -> Span:
    start, end = min(max(span.start_cycles, 0), total), min(max(span.end_cycles, 0), total)
    return Span(span.unit, span.operation, start, max(start, end))
