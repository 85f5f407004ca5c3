"""The operations of an Ethos-U stream as rows of a cost report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mizzen.analysis.cost.rounding import whole_parts, whole_steps
from mizzen.diagnostics import Device, Origin
from mizzen.report.cost import Bound, OperationCost, Purpose, Span, Traffic, Unit
from mizzen.targets.ethos_u.judge.timing import (
    INPUT_DEPTH,
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
    cycles = whole_steps(row.cycles for row in timed)
    rows = [
        _row(row, index, count, configuration)
        for index, (row, count) in enumerate(zip(timed, cycles, strict=True))
    ]
    rows = list(_of_operators(rows))
    spans = [span for index, row in enumerate(timed) for span in _spans(row, index)]
    total = sum(cycles)
    return rows, [_within(span, total) for span in spans]


def _of_operators(rows: Sequence[OperationCost]) -> Iterator[OperationCost]:
    """Return operations, kernels of no known operator as ones of the next that has one.

    The compiler makes several operations of some operators, and says of the last whose it is.
    """
    owners: list[Origin | None] = []
    known: Origin | None = None
    for row in reversed(rows):
        if row.name != TRANSFER and row.origin is not None and row.origin.operator is not None:
            known = row.origin
        owners.append(known)
    for row, owner in zip(rows, reversed(owners), strict=True):
        if (
            row.name == TRANSFER
            or owner is None
            or row.origin is None
            or row.origin.operator is not None
        ):
            yield row
        else:
            yield replace(row, origin=replace(owner, command=row.origin.command))


def _row(row: Timed, index: int, cycles: int, configuration: EthosUConfiguration) -> OperationCost:
    return OperationCost(
        step=0,
        index=index,
        name=row.work.name,
        device=Device.NPU,
        origin=row.work.origin,
        start_cycles=round(row.start),
        end_cycles=round(row.end),
        cycles=cycles,
        causes=whole_parts(_bounds(row, configuration), cycles),
        macs=row.work.macs if isinstance(row.work, KernelWork) else 0,
        macs_per_cycle=configuration.accelerator.macs,
        shape=_shape(row.work),
        detail=_detail(row.work),
        channels=_channels(row.work),
        paid_channels=_paid_channels(row.work),
        traffic=tuple(_traffic(row)),
        compiler_cycles=row.vela_cycles,
    )


def _bounds(row: Timed, configuration: EthosUConfiguration) -> Mapping[Bound, float]:
    found: dict[Bound, float] = {}
    for (cause, port), share in row.causes.items():
        bound = _bound(cause, port, configuration)
        found[bound] = found.get(bound, 0.0) + share
    return found


def _bound(cause: Cause, port: Port | None, configuration: EthosUConfiguration) -> Bound:
    if cause is Cause.MEMORY and port is not None:
        return MEMORY_BOUNDS[configuration.memory(port)]
    return Bound[cause.name]


def _traffic(row: Timed) -> Iterator[Traffic]:
    sums: dict[tuple[str, str, Purpose], tuple[int, int]] = {}
    for use in row.uses:
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
    taken = " and ".join(_size(row.map.shape) for row in work.blocks.inputs)
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


def _channels(work: KernelWork | TransferWork) -> tuple[int, int] | None:
    if isinstance(work, TransferWork) or work.kind is not WorkKind.CONVOLUTION:
        return None
    return work.channels, work.blocks.shape[2]


def _paid_channels(work: KernelWork | TransferWork) -> tuple[int, int] | None:
    """Return the channels of whole steps of the array."""
    found = _channels(work)
    if found is None or isinstance(work, TransferWork):
        return None
    steps = (INPUT_DEPTH if work.part_kernel else work.slab, work.cores * work.microblock[2])
    taken, given = (-(-count // step) * step for count, step in zip(found, steps, strict=True))
    return taken, given


def _spans(row: Timed, index: int) -> Iterator[Span]:
    if row.stages is None:
        yield Span(Unit.DMA, index, round(row.start), round(row.end))
        return
    stages = row.stages
    start = row.end - stages.drain_cycles - stages.main_cycles
    for unit, busy, first in (
        (Unit.MAC, stages.mac_cycles, start),
        (Unit.WEIGHTS, stages.decode_cycles, start),
        (Unit.OUTPUT, stages.output_cycles, max(start, row.end - stages.main_cycles)),
    ):
        if busy:
            yield Span(unit, index, round(first), round(min(first + max(busy, 1.0), row.end)))


def _within(span: Span, total: int) -> Span:
    start, end = min(max(span.start_cycles, 0), total), min(max(span.end_cycles, 0), total)
    return Span(span.unit, span.operation, start, max(start, end))
