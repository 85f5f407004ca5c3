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
from mizzen.targets.ethos_u.generator.schedule.cost.array_u85 import busy_u85
from mizzen.targets.ethos_u.generator.schedule.cost.extents import Axis, along
from mizzen.targets.ethos_u.generator.schedule.cost.links import links
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
from mizzen.targets.ethos_u.generator.schedule.cost.reads_u85 import Slabs, slabs_read
from mizzen.targets.ethos_u.generator.schedule.cost.traffic import Constants, Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import (
    EVERY_CHANNEL,
    HAS_WEIGHTS,
    SUBKERNEL,
    Facts,
    Kind,
)
from mizzen.targets.ethos_u.generator.shared_buffer.cores import BUFFERS
from mizzen.targets.ethos_u.judge.timing.machine import BUFFER_SHARE, Bus, Machine
from mizzen.targets.ethos_u.judge.timing.rates import (
    BIAS_BYTES,
    BIAS_PREFETCH_BYTES,
    BUFFER_UNIT_BYTES,
    BUFFERS_U85,
    SLOTS,
    Buffers,
)
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
    output of the output unit, in all
    drain  until the last bytes are written
    ports  for which each bus is needed
    blocks how many there are
    """

    fetch: Cycles
    units: Cycles
    output: Cycles
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
    """Return the cycles of an operation with each of the blocks.

    The output unit does what it does for each operation of a chain, one after the other.
    """
    if not facts.links:
        return _events(facts, blocks, part_kernel, traffic, machine)
    spans = [
        _events(link, blocks, part_kernel and not place, moved, machine)
        for place, (link, moved) in enumerate(links(facts, traffic))
    ]
    output = np.sum([span.output for span in spans], axis=0)
    ports: dict[Port, Cycles] = {}
    for span in spans:
        for port, cycles in span.ports.items():
            ports[port] = np.maximum(ports.get(port, 0.0), cycles)
    return Events(
        fetch=spans[0].fetch,
        units=np.max([output, *(span.units for span in spans)], axis=0),
        output=output,
        drain=spans[-1].drain,
        ports=ports,
        blocks=spans[0].blocks,
    )


def _events(
    facts: Facts, blocks: Blocks, part_kernel: bool, traffic: Traffic, machine: Machine
) -> Events:
    """Return the cycles of an operation that is no chain."""
    counts = -(-np.array(facts.shape) // blocks)
    jobs = jobs_of(facts, part_kernel)
    buffers = BUFFERS_U85[machine.accelerator.macs] if machine.is_u85 else None
    reads = [_read(facts, index, blocks, part_kernel, stored, machine)
             for index, stored in enumerate(traffic.reads)]  # fmt: skip
    ports, fetch = _reading(reads, jobs, buffers)
    write_latency, write = 0.0, np.zeros(len(blocks))
    if traffic.write is not None:
        wrote = _wrote(facts, blocks, traffic.write, machine)
        share = wrote.block_bytes / np.minimum(blocks[:, 0], facts.shape[0]) / wrote.bytes_
        shared, alone = _use(wrote, reads=False)
        ports.add(wrote.bus.port, shared, alone)
        write_latency, write = wrote.bus.write_latency_cycles, alone * share
    weights = 0.0
    if traffic.constants is not None:
        weights = _constants(counts, traffic.constants, ports, buffers)
    latency = max((moved.bus.read_latency_cycles for moved in reads), default=0)
    moves = _Moves(
        fetch_latency=latency,
        fetch=fetch,
        write_latency=write_latency,
        write=write,
        jobs=jobs,
    )
    ends = _ends(facts, blocks, part_kernel, traffic, machine, moves)
    short, cycles = ends.short, ports.cycles()
    if machine.is_u85:
        main = np.max([ends.units, *cycles.values()], axis=0)
        short = np.maximum(short, _two_stages(ends, weights) - main)
    return Events(
        fetch=latency + fetch,
        units=ends.units,
        output=(ends.number * ends.output).sum(axis=0),
        drain=short + moves.write_latency + moves.write,
        ports=cycles,
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


def _reading(reads: list[_Moved], jobs: int, buffers: Buffers | None) -> tuple[_Ports, Cycles]:
    """Return what the inputs have on the buses, and a job's cycles on the slowest."""
    ports = _Ports()
    fetch: defaultdict[Port, Cycles] = defaultdict(lambda: np.zeros(1))
    room = None if buffers is None else buffers.input
    for moved in reads:
        shared, alone = _use(moved, reads=True, room=room)
        ports.add(moved.bus.port, shared, alone)
        share = moved.block_bytes / np.maximum(1, moved.bytes_)
        fetch[moved.bus.port] = fetch[moved.bus.port] + alone * share / jobs
    slowest = np.zeros(1)
    for cycles in fetch.values():
        slowest = np.maximum(slowest, cycles)
    return ports, slowest


def _constants(
    counts: Ints, constants: Constants, ports: _Ports, buffers: Buffers | None
) -> Cycles:
    """Add what constants have on their bus, and return for how long weights need it."""
    times, weights = counts[:, 0] * counts[:, 1], _Ports()
    of_weights = [(bytes_, True) for bytes_ in constants.weights]
    for bytes_, is_weights in (*of_weights, *((bytes_, False) for bytes_ in constants.scales)):
        if bytes_:
            run = np.full(len(counts), float(bytes_))
            moved = _Moved(
                bus=constants.bus,
                bytes_=(times * bytes_).astype(np.float64),
                block_bytes=run,
                run_bytes=run,
            )
            room = _room(constants, buffers, is_weights=is_weights)
            shared, alone = _use_run(moved, run, reads=True, room=room)
            ports.add(constants.bus.port, shared, alone)
            if is_weights:
                weights.add(constants.bus.port, shared, alone)
    return weights.cycles().get(constants.bus.port, np.zeros(len(counts)))


def _room(constants: Constants, buffers: Buffers | None, *, is_weights: bool) -> int | None:
    if buffers is None:
        return None
    if not is_weights:
        return buffers.scales
    return buffers.fast_weights if constants.fast else buffers.weights


def _use(moved: _Moved, *, reads: bool, room: int | None = None) -> tuple[Cycles, Cycles]:
    """Return the cycles for which nothing else has the bus, and those if it is alone on it.

    room  in units of the reader's buffer for what comes in any order; None for any number
    """
    run = np.where(moved.bytes_ > moved.run_bytes, moved.run_bytes, np.inf)
    return _use_run(moved, run, reads=reads, room=room)


def _use_run(moved: _Moved, run: Cycles, *, reads: bool, room: int | None) -> tuple[Cycles, Cycles]:
    bus = moved.bus
    shared = bus.bytes_per_cycle * np.minimum(1.0, np.maximum(run, 1.0) / bus.burst_bytes)
    outstanding = bus.reads if reads else bus.writes
    latency = bus.read_latency_cycles if reads else bus.write_latency_cycles
    alone = shared
    if outstanding and latency:
        alone = np.minimum(shared, bus.outstanding_share * outstanding * bus.chunk_bytes / latency)
    if room is not None and latency:
        alone = np.minimum(alone, BUFFER_SHARE * room * BUFFER_UNIT_BYTES / latency)
    return moved.bytes_ / shared, moved.bytes_ / alone


def _read(
    facts: Facts, index: int, blocks: Blocks, part_kernel: bool, stored: Stored, machine: Machine
) -> _Moved:
    """Return what is read of an input."""
    shape, beat = facts.inputs[index], machine.beat_bytes
    times = 1 if machine.is_u85 else len(facts.subkernels)
    axes = [_axis(facts, index, axis, times) for axis in range(3)]
    size = stored.element_bytes
    sides = [tuple(np.unique(blocks[:, axis]).tolist()) for axis in range(3)]
    down = along(axes[0], sides[0], 0, beat)
    across = along(axes[1], sides[1], 0, beat)
    tall, wide, deep = blocks.T
    plane = _Plane(axes[1], sides[1], wide, down.total[tall], down.most[tall],
                   across.total[wide], across.most[wide])  # fmt: skip
    every = facts.kind in EVERY_CHANNEL or shape[2] == 1
    slices = -(-facts.shape[2] // deep)
    if machine.is_u85 and facts.kind in EVERY_CHANNEL:
        if index:
            slices = np.ones_like(slices)  # Weights: each block in depth takes its own.
        elif len(facts.subkernels) == 1:
            slabs = slabs_read(facts, blocks, part_kernel, size, machine.accelerator, beat)
            if slabs.number > 1:
                return _in_slabs(stored, plane, slabs, shape[2], beat)
            slices = np.ones_like(slices)
    if every:
        depth_total, depth_most = shape[2] * slices, np.full(len(blocks), shape[2])
    else:
        depth_total = np.full(len(blocks), shape[2])
        depth_most = np.minimum(deep, shape[2])
    if stored.bricks:
        bricks = up(shape[2], BRICK) * slices if every else _bricks(shape[2], deep)
        brick_total = bricks * BRICK * size
        brick_most = up(depth_most, BRICK) * BRICK * size
        total = plane.rows_total * plane.columns_total * brick_total
        block = plane.rows_most * plane.columns_most * brick_most
        run = BRICK * size * plane.columns_most
        return _moved(stored, total * times, block * times, run)
    return _row_major(stored, plane, (depth_total, depth_most), slices, times, beat, every=every)


@dataclass(frozen=True, slots=True)
class _Plane:
    """Rows and columns that blocks need: of all blocks, of the largest."""

    axis: Axis
    sides: tuple[int, ...]
    wide: Ints
    rows_total: Ints
    rows_most: Ints
    columns_total: Ints
    columns_most: Ints

    def runs(self, unit_bytes: int, beat_bytes: int) -> tuple[Ints, Ints]:
        """Return the bytes of whole rows of blocks, in whole beats: in all, and the longest."""
        extents = along(self.axis, self.sides, unit_bytes, beat_bytes)
        return extents.total[self.wide], extents.most[self.wide]


def _in_slabs(stored: Stored, plane: _Plane, slabs: Slabs, channels: int, beat: int) -> _Moved:
    """Return what is read in slabs of channels, of which memory keeps some for the next block."""
    size, rows, columns = stored.element_bytes, plane.rows_most, plane.columns_most
    positions = plane.rows_total * plane.columns_total
    if stored.bricks:
        block = rows * columns * up(channels, BRICK) * BRICK * size
        return _moved(
            stored, positions * slabs.bricks * BRICK * size, block, BRICK * size * columns
        )
    pixel = channels * size
    whole = rows * columns * up(pixel, beat) * beat
    if abs(stored.stride_x) == pixel:
        whole = rows * plane.runs(pixel, beat)[1]
    run = np.full(len(rows), up(slabs.longest * size, beat) * beat)
    return _moved(stored, positions * slabs.beats, whole, run)


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
    plane: _Plane,
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
    runs_total, runs_most = plane.runs(abs(stored.stride_x), beat)
    beats_most = up(pixel, beat) * beat
    beats_total = _pixel_beats(total, most, slices, size, beat)
    return _moved(
        stored,
        times * np.where(together, plane.rows_total * runs_total * slices,
                         plane.rows_total * plane.columns_total * beats_total),
        times * np.where(together, plane.rows_most * runs_most,
                         plane.rows_most * plane.columns_most * beats_most),
        np.where(together, runs_most, beats_most),
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


def _axis(facts: Facts, index: int, axis: int, times: int) -> Axis:
    size, extent = facts.shape[axis], facts.inputs[index][axis]
    if facts.kind in EVERY_CHANNEL and index:
        return Axis(size=size, extent=extent, stride=0, span=extent, pad=0, factor=1, most=0)
    if axis == 2 or facts.kind is Kind.ELEMENTWISE:
        broadcast = extent == 1 and size > 1
        return Axis(
            size=size, extent=extent, stride=0 if broadcast else 1, span=1, pad=0, factor=1, most=0
        )
    factor = facts.scales[axis] if facts.upscale is UpscaleMode.NONE else 2
    most = min(facts.kernel[axis], SUBKERNEL) if times > 1 else 0
    stride, span, pad = facts.strides[axis], facts.kernel[axis], facts.pads[axis]
    return Axis(
        size=size, extent=extent, stride=stride, span=span, pad=pad, factor=factor, most=most
    )


def _wrote(facts: Facts, blocks: Blocks, stored: Stored, machine: Machine) -> _Moved:
    """Return what is written, in the order in which it is stored."""
    (height, width, depth), size = (facts.shape[axis] for axis in facts.axes), stored.element_bytes
    tall, wide, deep = blocks[:, facts.axes].T
    deepest, widest = np.minimum(deep, depth), np.minimum(wide, width)
    tallest = np.minimum(tall, height)
    if stored.bricks:
        bricks = _bricks(depth, deep)
        total = height * width * bricks * BRICK * size
        block = tallest * widest * up(deepest, BRICK) * BRICK * size
        return _moved(stored, total, block, BRICK * size * widest)
    axis = Axis(size=width, extent=width, stride=1, span=1, pad=0, factor=1, most=0)
    sides = tuple(np.unique(wide).tolist())
    number = len(blocks)
    plane = _Plane(
        axis, sides, wide, np.full(number, height), tallest, np.full(number, width), widest
    )
    return _row_major(
        stored, plane, (np.full(number, depth), deepest), -(-depth // deep), 1,
        machine.beat_bytes, every=False,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ends:
    """Cycles of blocks, for each size of them and each candidate.

    units   until the last block has left array and output
    short   what the last one adds after the slower unit
    busy, output  of the array and the output unit: [SIZES, candidates]
    number  how many blocks there are of each size
    """

    units: Cycles
    short: Cycles
    busy: Cycles
    output: Cycles
    number: Ints


def _ends(
    facts: Facts,
    blocks: Blocks,
    part_kernel: bool,
    traffic: Traffic,
    machine: Machine,
    moves: _Moves,
) -> _Ends:
    """Return the cycles of all blocks."""
    rate = output_rate(facts, machine.accelerator, simple=True)
    constants = traffic.constants
    bias = BIAS_BYTES * constants.bus.read_latency_cycles / BIAS_PREFETCH_BYTES if constants else 0
    whole = np.prod(np.minimum(blocks, facts.shape), axis=1)
    sides, number = _sizes(facts, blocks)
    elements = np.prod(sides, axis=1)
    output = np.maximum(rate * elements, bias * sides[:, 2])
    busy = _busy(facts, sides, part_kernel, constants, machine)
    share = elements.reshape(number.shape) / whole
    fetch = (moves.jobs * (moves.fetch_latency + moves.fetch * share)).ravel()
    write = (moves.write_latency + moves.write * share).ravel()
    turn = np.maximum((fetch + busy) / BUFFERS, (fetch + busy + output + write) / IN_FLIGHT)
    each = np.maximum(np.maximum(busy, output), turn).reshape(number.shape)
    busy, output = busy.reshape(number.shape), output.reshape(number.shape)
    slower, last = np.minimum(busy, output), _last(number)
    short = slower[last, np.arange(len(blocks))]
    return _Ends((number * each).sum(axis=0), short, busy, output, number)


def _last(number: Ints) -> Ints:
    """Return of each candidate the size of the last block."""
    return SIZES - 1 - np.argmax(number[::-1] > 0, axis=0)


def _two_stages(ends: _Ends, weights: Cycles | float) -> Cycles:
    """Return the cycles of the array and the output unit, one after the other for each block.

    The array takes no less than its weights take to come.
    """
    number = ends.number
    candidates = np.arange(len(ends.short))
    busy, output = (number * ends.busy).sum(axis=0), (number * ends.output).sum(axis=0)
    slower = np.maximum(1.0, weights / np.maximum(busy, 1e-9)) * (busy > 0) + (busy <= 0)
    first, last = np.argmax(number > 0, axis=0), _last(number)
    earlier = number.copy()
    earlier[last, candidates] = 0
    before = np.where((earlier > 0).any(axis=0), _last(earlier), last)
    at_end = ends.output[last, candidates]
    gap = ends.output[before, candidates] + at_end - ends.busy[last, candidates] * slower
    late = np.where(before == last, at_end, np.maximum(at_end, gap))
    return np.maximum(ends.busy[first, candidates] * slower + output, busy * slower + late)


def _sizes(facts: Facts, blocks: Blocks) -> tuple[Blocks, Ints]:
    """Return the sizes that blocks have, whole and at the ends, and how many have each.

    Sizes are rows, first those of all blocks that are whole; numbers are [SIZES, blocks]. The last
    that there are any of are the last block's.
    """
    whole, rest = np.array(facts.shape) // blocks, np.array(facts.shape) % blocks
    sides = np.where(_AT_END, rest, blocks)
    number = np.where(_AT_END, rest > 0, whole)
    return sides.reshape(-1, 3), np.prod(number, axis=2)


def _busy(
    facts: Facts, sides: Blocks, part_kernel: bool, constants: Constants | None, machine: Machine
) -> Cycles:
    """Return the cycles of the array or the decoder, whichever needs more."""
    accelerator = machine.accelerator
    if machine.is_u85:
        return busy_u85(facts, sides, part_kernel, constants, accelerator)
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
