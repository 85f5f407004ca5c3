"""How long an operation takes in a simulation of the machine's units, of many blocks at once.

Blocks go through input, array, output and writing, each unit at work on another block, so that the
slowest decides; what all readers and writers have on a bus is a bound of its own. Filling and
draining are told apart: how much of them shows depends on the operations before and after.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_u.generator.operations import BRICK
from mizzen.targets.ethos_u.generator.schedule.blocks import Blocks, up
from mizzen.targets.ethos_u.generator.schedule.cost.extents import Axis, along
from mizzen.targets.ethos_u.generator.schedule.cost.rates import (
    NARROWEST_ARRAY_MACS,
    POOL_SLOTS,
    Cycles,
    Ints,
    jobs_of,
    output_rate,
    pause_cycles,
    steps_of,
    unit_of,
)
from mizzen.targets.ethos_u.generator.schedule.cost.traffic import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import (
    EVERY_CHANNEL,
    HAS_WEIGHTS,
    SUBKERNEL,
    Facts,
    Kind,
)
from mizzen.targets.ethos_u.generator.shared_buffer.cores import BUFFERS
from mizzen.targets.ethos_u.judge.timing.machine import Bus, Machine
from mizzen.targets.ethos_u.judge.timing.rates import BIAS_BYTES, BIAS_PREFETCH_BYTES, SLOTS
from mizzen.targets.ethos_u.judge.timing.stages import IN_FLIGHT
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode
from mizzen.targets.ethos_u.machine.config import Port

SIZES = 8
"""That blocks may have: whole or at the end along each axis."""
_AT_END = np.array([[[bool(ends & bit) for bit in (4, 2, 1)]] for ends in range(SIZES)])


@dataclass(frozen=True, slots=True)
class Events:
    """Cycles of each block.

    fetch  until the array has its first input
    units  until the last block has left array and output, if buses are free
    drain  until the last bytes are written
    ports  for which each bus is needed
    blocks how many there are
    """

    fetch: Cycles
    units: Cycles
    drain: Cycles
    ports: dict[Port, Cycles]
    blocks: Ints

    @property
    def main(self) -> Cycles:
        """Cycles from the first input to the last block's leaving, without transfers beside."""
        busiest = self.units
        for cycles in self.ports.values():
            busiest = np.maximum(busiest, cycles)
        return busiest


@dataclass(frozen=True, slots=True)
class _Moved:
    """Bytes of a map that all blocks move, those of the largest, and the length of its runs."""

    bus: Bus
    bytes_: Cycles
    block_bytes: Cycles
    run_bytes: Cycles


def events(
    facts: Facts, blocks: Blocks, part_kernel: bool, traffic: Traffic, machine: Machine
) -> Events:
    """Return the cycles of an operation with each of the blocks."""
    counts = -(-np.array(facts.shape) // blocks)
    jobs = jobs_of(facts, part_kernel)
    reads = [_read(facts, index, blocks, stored, machine)
             for index, stored in enumerate(traffic.reads)]  # fmt: skip
    wrote = _wrote(facts, blocks, counts, traffic.write, machine)
    ports, fetch = _reading(reads, jobs)
    share = wrote.block_bytes / np.minimum(blocks[:, 0], facts.shape[0]) / wrote.bytes_
    shared, alone = _use(wrote, reads=False)
    ports.add(wrote.bus.port, shared, alone)
    if traffic.constants is not None:
        _constants(facts, counts, traffic.constants, ports)
    latency = max((moved.bus.read_latency_cycles for moved in reads), default=0)
    moves = _Moves(
        fetch_latency=latency,
        fetch=fetch,
        write_latency=wrote.bus.write_latency_cycles,
        write=alone * share,
        jobs=jobs,
    )
    units, short = _units(facts, blocks, part_kernel, traffic, machine, moves)
    return Events(
        fetch=latency + fetch,
        units=units,
        drain=short + moves.write_latency + moves.write,
        ports=ports.cycles(),
        blocks=np.prod(counts, axis=1),
    )


@dataclass(slots=True)
class _Moves:
    """What the largest block moves: latencies and cycles of its jobs and of its last rows."""

    fetch_latency: float
    fetch: Cycles
    write_latency: float
    write: Cycles
    jobs: int


class _Ports:
    """What readers and writers have on each bus: all together, or the slowest alone."""

    def __init__(self) -> None:
        self._together: dict[Port, Cycles] = {}
        self._slowest: dict[Port, Cycles] = {}

    def add(self, port: Port, shared: Cycles, alone: Cycles) -> None:
        """Add a reader or writer."""
        self._together[port] = self._together.get(port, 0.0) + shared
        self._slowest[port] = np.maximum(self._slowest.get(port, 0.0), alone)

    def cycles(self) -> dict[Port, Cycles]:
        """Return the cycles for which each bus is needed."""
        return {
            port: np.maximum(cycles, self._slowest[port]) for port, cycles in self._together.items()
        }


def _reading(reads: list[_Moved], jobs: int) -> tuple[_Ports, Cycles]:
    """Return what the inputs have on the buses, and a job's cycles on the slowest."""
    ports = _Ports()
    fetch: defaultdict[Port, Cycles] = defaultdict(lambda: np.zeros(1))
    for moved in reads:
        shared, alone = _use(moved, reads=True)
        ports.add(moved.bus.port, shared, alone)
        share = moved.block_bytes / np.maximum(1, moved.bytes_)
        fetch[moved.bus.port] = fetch[moved.bus.port] + alone * share / jobs
    slowest = np.zeros(1)
    for cycles in fetch.values():
        slowest = np.maximum(slowest, cycles)
    return ports, slowest


def _constants(facts: Facts, counts: Ints, constants: Constants, ports: _Ports) -> None:
    times = counts[:, 0] * counts[:, 1]
    for bytes_ in constants.streams_bytes:
        if bytes_:
            run = np.full(len(counts), float(bytes_))
            moved = _Moved(
                bus=constants.bus,
                bytes_=(times * bytes_).astype(np.float64),
                block_bytes=run,
                run_bytes=run,
            )
            shared, alone = _use_run(moved, run, reads=True)
            ports.add(constants.bus.port, shared, alone)


def _use(moved: _Moved, *, reads: bool) -> tuple[Cycles, Cycles]:
    """Return the cycles for which nothing else has the bus, and those if it is alone on it."""
    run = np.where(moved.bytes_ > moved.run_bytes, moved.run_bytes, np.inf)
    return _use_run(moved, run, reads=reads)


def _use_run(moved: _Moved, run: Cycles, *, reads: bool) -> tuple[Cycles, Cycles]:
    bus = moved.bus
    shared = bus.bytes_per_cycle * np.minimum(1.0, np.maximum(run, 1.0) / bus.burst_bytes)
    outstanding = bus.reads if reads else bus.writes
    latency = bus.read_latency_cycles if reads else bus.write_latency_cycles
    alone = shared
    if outstanding and latency:
        alone = np.minimum(shared, bus.outstanding_share * outstanding * bus.chunk_bytes / latency)
    return moved.bytes_ / shared, moved.bytes_ / alone


def _read(facts: Facts, index: int, blocks: Blocks, stored: Stored, machine: Machine) -> _Moved:
    """Return what is read of an input."""
    shape, beat = facts.inputs[index], machine.beat_bytes
    times = len(facts.subkernels)
    axes = [_axis(facts, shape, axis, times) for axis in range(3)]
    counts = -(-np.array(facts.shape) // blocks)
    size = stored.element_bytes
    sides = [tuple(np.unique(blocks[:, axis]).tolist()) for axis in range(3)]
    down = along(axes[0], sides[0], 0, beat)
    across = along(axes[1], sides[1], 0, beat)
    tall, wide, deep = blocks.T
    every = facts.kind in EVERY_CHANNEL or shape[2] == 1
    if every:
        depth_total, depth_most = shape[2] * counts[:, 2], np.full(len(blocks), shape[2])
    else:
        depth_total = np.full(len(blocks), shape[2])
        depth_most = np.minimum(deep, shape[2])
    if stored.bricks:
        bricks = up(shape[2], BRICK) * counts[:, 2] if every else _bricks(shape[2], deep)
        brick_total = bricks * BRICK * size
        brick_most = up(depth_most, BRICK) * BRICK * size
        total = down.total[tall] * across.total[wide] * brick_total
        block = down.most[tall] * across.most[wide] * brick_most
        run = BRICK * size * across.most[wide]
        return _moved(stored, total * times, block * times, run)
    return _row_major(stored, axes[1], sides[1], blocks, down.total[tall], down.most[tall],
                      across.total[wide], across.most[wide], (depth_total, depth_most),
                      counts[:, 2], times, beat, every=every)  # fmt: skip


def _bricks(channels: int, deep: Ints) -> Ints:
    """Return the bricks that the blocks along the depth touch in all."""
    bricks = np.zeros(len(deep), np.int64)
    depths: list[int] = np.unique(deep).tolist()
    for depth in depths:
        starts = range(0, channels, depth)
        bricks[deep == depth] = sum(
            up(min(start + depth, channels), BRICK) - start // BRICK for start in starts
        )
    return bricks


def _row_major(
    stored: Stored,
    axis: Axis,
    sides: tuple[int, ...],
    blocks: Blocks,
    rows_total: Ints,
    rows_most: Ints,
    columns_total: Ints,
    columns_most: Ints,
    depth: tuple[Ints, Ints],
    slices: Ints,
    times: int,
    beat: int,
    *,
    every: bool,
) -> _Moved:
    size, (total, most) = stored.element_bytes, depth
    pixel = most * size
    # Runs of whole rows of a block, where nothing lies between its columns.
    together = (abs(stored.stride_x) == pixel) & (every | (slices == 1))
    unit = abs(stored.stride_x)
    runs = along(axis, sides, unit, beat)
    wide = blocks[:, 1]
    beats_most = up(pixel, beat) * beat
    beats_total = _pixel_beats(total, most, slices, size, beat)
    return _moved(
        stored,
        times * np.where(together, rows_total * runs.total[wide] * slices,
                         rows_total * columns_total * beats_total),
        times * np.where(together, rows_most * runs.most[wide],
                         rows_most * columns_most * beats_most),
        np.where(together, runs.most[wide], beats_most),
    )  # fmt: skip


def _pixel_beats(total: Ints, most: Ints, slices: Ints, size: int, beat: int) -> Ints:
    """Return the beats of a pixel's channels, all slices of it together."""
    whole_slices = total == most * slices
    last = np.where(whole_slices, most, total - most * (slices - 1))
    whole = up(most * size, beat) * beat
    return whole * (slices - 1) + up(last * size, beat) * beat


def _moved(stored: Stored, total: Ints, block: Ints, run: Ints) -> _Moved:
    return _Moved(
        bus=stored.bus,
        bytes_=total.astype(np.float64),
        block_bytes=block.astype(np.float64),
        run_bytes=run.astype(np.float64),
    )


def _axis(facts: Facts, shape: tuple[int, int, int], axis: int, times: int) -> Axis:
    size, extent = facts.shape[axis], shape[axis]
    if axis == 2 or facts.kind is Kind.ELEMENTWISE:
        broadcast = extent == 1 and size > 1
        return Axis(
            size=size, extent=extent, stride=0 if broadcast else 1, span=1, pad=0, factor=1, most=0
        )
    factor = 1 if facts.upscale is UpscaleMode.NONE else 2
    most = min(facts.kernel[axis], SUBKERNEL) if times > 1 else 0
    stride, span, pad = facts.strides[axis], facts.kernel[axis], facts.pads[axis]
    return Axis(
        size=size, extent=extent, stride=stride, span=span, pad=pad, factor=factor, most=most
    )


def _wrote(facts: Facts, blocks: Blocks, counts: Ints, stored: Stored, machine: Machine) -> _Moved:
    """Return what is written."""
    (height, width, depth), size = facts.shape, stored.element_bytes
    tall, wide, deep = blocks.T
    beat = machine.beat_bytes
    deepest, widest = np.minimum(deep, depth), np.minimum(wide, width)
    tallest = np.minimum(tall, height)
    if stored.bricks:
        bricks = _bricks(depth, deep)
        total = height * width * bricks * BRICK * size
        block = tallest * widest * up(deepest, BRICK) * BRICK * size
        return _moved(stored, total, block, BRICK * size * widest)
    axis = Axis(size=width, extent=width, stride=1, span=1, pad=0, factor=1, most=0)
    sides = tuple(np.unique(wide).tolist())
    return _row_major(
        stored, axis, sides, blocks, np.full(len(blocks), height), tallest,
        np.full(len(blocks), width), widest, (np.full(len(blocks), depth), deepest),
        counts[:, 2], 1, beat, every=False,
    )  # fmt: skip


def _units(
    facts: Facts,
    blocks: Blocks,
    part_kernel: bool,
    traffic: Traffic,
    machine: Machine,
    moves: _Moves,
) -> tuple[Cycles, Cycles]:
    """Return the cycles of all blocks, and what the last one adds after the slower unit."""
    rate = output_rate(facts, machine.accelerator, simple=True)
    constants = traffic.constants
    bias = BIAS_BYTES * constants.bus.read_latency_cycles / BIAS_PREFETCH_BYTES if constants else 0
    whole = np.prod(np.minimum(blocks, facts.shape), axis=1)
    sides, number = _sizes(facts, blocks)
    elements = np.prod(sides, axis=1)
    output = np.maximum(rate * elements, bias * sides[:, 2])
    busy = _busy(facts, sides, part_kernel, machine)
    share = elements.reshape(number.shape) / whole
    fetch = (moves.jobs * (moves.fetch_latency + moves.fetch * share)).ravel()
    write = (moves.write_latency + moves.write * share).ravel()
    turn = np.maximum((fetch + busy) / BUFFERS, (fetch + busy + output + write) / IN_FLIGHT)
    each = np.maximum(np.maximum(busy, output), turn).reshape(number.shape)
    slower = np.minimum(busy, output).reshape(number.shape)
    last = SIZES - 1 - np.argmax(number[::-1] > 0, axis=0)
    return (number * each).sum(axis=0), slower[last, np.arange(len(blocks))]


def _sizes(facts: Facts, blocks: Blocks) -> tuple[Blocks, Ints]:
    """Return the sizes that blocks have, whole and at the ends, and how many have each.

    Sizes are rows, first those of all blocks that are whole; numbers are [SIZES, blocks]. The last
    that there are any of are the last block's.
    """
    whole, rest = np.array(facts.shape) // blocks, np.array(facts.shape) % blocks
    sides = np.where(_AT_END, rest, blocks)
    number = np.where(_AT_END, rest > 0, whole)
    return sides.reshape(-1, 3), np.prod(number, axis=2)


def _busy(facts: Facts, sides: Blocks, part_kernel: bool, machine: Machine) -> Cycles:
    """Return the cycles of the array or the decoder, whichever needs more."""
    accelerator = machine.accelerator
    unit, bits = unit_of(facts, accelerator), facts.input_bits
    counts = -(-sides // np.array(unit))
    if facts.kind is Kind.ELEMENTWISE:
        return np.zeros(len(sides))
    if facts.kind is Kind.POOL:
        narrow = accelerator.macs_per_core <= NARROWEST_ARRAY_MACS
        slots = sum(max(POOL_SLOTS, e) for e in facts.subkernels)
        return slots * (1 if narrow else bits // 2) * np.prod(counts, axis=1).astype(np.float64)
    steps = steps_of(facts, part_kernel)
    cores = accelerator.cores if facts.shape[2] > 1 else 1
    plane, deep = counts[:, 0] * counts[:, 1], up(up(sides[:, 2], cores), unit[2])
    slot = SLOTS * (bits // 8) if facts.kind is Kind.DEPTHWISE else SLOTS
    decode = SLOTS * unit[2] if facts.kind in HAS_WEIGHTS else 0
    waits = np.where(deep == 1, steps, (steps - 1) * deep)
    delay = np.where(plane == 1, pause_cycles(facts, accelerator) * waits, 0)
    return np.maximum(slot * plane * steps * deep + delay, decode * steps * deep).astype(np.float64)
