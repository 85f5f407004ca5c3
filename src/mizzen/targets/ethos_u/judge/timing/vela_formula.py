"""What Vela's own formula gives for the operations of a stream, so that it can stand beside ours.

It is a figure of Vela, with Vela's errors: nothing overlaps but a transfer with the one operation
before it, every operation fills and drains, RESIZE costs nothing, U85 steps through kernels by 4
elements and through the channels that there are, maps of few channels are fetched in tiny bursts.

Vela reckons with operators before they become commands; an operator in several slices, or with
several transfers, is several operations here, so that sums differ a little from Vela's.

Ref: Vela 5.2.0, npu_performance.py and the performance estimate of its C++ core.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.judge.hazards.blocks import Shape, Sliding
from mizzen.targets.ethos_u.judge.hazards.maps import BRICK, Map
from mizzen.targets.ethos_u.judge.hazards.shared_buffer import SUBKERNEL
from mizzen.targets.ethos_u.judge.timing.array import BITS, NARROWEST_ARRAY_MACS, POOL_SLOTS, up
from mizzen.targets.ethos_u.judge.timing.machine import TABLE_BYTES_PER_CYCLE, Bus, Machine
from mizzen.targets.ethos_u.judge.timing.output import output_rate
from mizzen.targets.ethos_u.judge.timing.rates import (
    BIAS_BYTES,
    BIAS_PREFETCH_BYTES,
    DELAYS,
    INPUT_DEPTH,
    LONGEST_PIPELINE,
    ROW_MICROBLOCK,
    SLOTS,
)
from mizzen.targets.ethos_u.judge.timing.reads import refetches
from mizzen.targets.ethos_u.judge.timing.stages import IN_FLIGHT
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, Step, TransferWork, WorkKind
from mizzen.targets.ethos_u.machine.config import Port

ONE_PIECE = (WorkKind.POOL, WorkKind.ELEMENTWISE, WorkKind.DEPTHWISE, WorkKind.RESIZE)
"""Kinds of operations that need of the input the channels of the output's block."""
LONGEST_WRITE_BYTES = 64


@dataclass(frozen=True, slots=True)
class VelaCycles:
    """Cycles of an operation: of the NPU, with what it waits for transfers, and of the memory."""

    npu: int
    memory: int

    @property
    def total(self) -> int:
        """What Vela adds up."""
        return max(self.npu, self.memory)


@dataclass(slots=True)
class _Before:
    """What a transfer may hide under: the operation before, if it did not hide one yet."""

    slack: float = 0.0


def vela_cycles(steps: Iterable[Step], machine: Machine) -> Iterator[VelaCycles]:
    """Return Vela's cycles for each operation, waits left out; transfers count with what waits."""
    before, pending = _Before(), 0.0
    for step in steps:
        match step:
            case TransferWork():
                pending += _transfer(step, machine)
                yield VelaCycles(0, 0)
            case KernelWork():
                own = _kernel(step, machine)
                exposed = max(0.0, pending - before.slack)
                before.slack, pending = own, 0.0
                yield VelaCycles(math.floor(own + exposed), _memory(step, machine))
            case _:
                pass


def _transfer(work: TransferWork, machine: Machine) -> float:
    ends = [(run, machine.bus(run.place), True) for run in work.sources[:1]]
    ends.append((work.destination, machine.bus(work.destination.place), False))
    cycles = 0.0
    for run, bus, reads in ends:
        if bus is None:
            cycles = max(cycles, run.bytes_ / TABLE_BYTES_PER_CYCLE)
        else:
            latency = bus.read_latency_cycles if reads else bus.write_latency_cycles
            cycles = max(cycles, run.bytes_ / bus.bytes_per_cycle + latency)
    return cycles


def _kernel(work: KernelWork, machine: Machine) -> float:
    if work.kind is WorkKind.RESIZE:
        return 0.0
    fetch, write = _fetch(work, machine), _write(work, machine)
    rate = output_rate(replace(work, simple=False), machine)
    block = _clipped(work)
    if work.kind is WorkKind.ELEMENTWISE:
        whole = math.prod(work.blocks.block)
        elements = _elements(work)
        issue = (max(fetch, write) / whole + rate) / IN_FLIGHT
        return max(math.ceil(issue * elements), math.ceil(rate * elements))
    unit = _unit(work)
    blocks = math.prod(map(up, work.blocks.shape, unit)) / math.prod(map(up, block, unit))
    mac = _mac(work, block, unit, machine)
    output = max(math.ceil(rate * math.prod(block)), _bias(work, block, machine))
    between = abs(write - fetch) if blocks > 1 else 0.0
    issue = (between + mac + output) / IN_FLIGHT
    mac, output = max(mac, issue), max(output, issue)
    total = math.floor(mac * blocks) + output if mac > output else math.floor(output * blocks + mac)
    return total + fetch + write


def _clipped(work: KernelWork) -> Shape:
    height, width, depth = map(min, work.blocks.block, work.blocks.shape)
    return height, width, depth


def _unit(work: KernelWork) -> Shape:
    high, wide, _ = work.blocks.shape
    flat = work.kind is WorkKind.CONVOLUTION and high == 1 and wide % 2 == 0
    one_row = not work.is_u85 and work.microblock[0] == 2 and work.kernel_height == 1
    return ROW_MICROBLOCK if flat and one_row else work.microblock


def _mac(work: KernelWork, block: Shape, unit: Shape, machine: Machine) -> float:
    high, wide, deep = map(up, block, unit)
    plane, channels = high * wide, min(work.slab, work.channels)
    total = 0.0
    for elements in work.subkernels:
        cycles, steps = _subkernel(work, elements, (plane, deep), unit, machine)
        total += cycles
        if plane == 1 and not work.is_u85:
            delays = DELAYS.get(machine.accelerator.macs_per_core, LONGEST_PIPELINE)
            pause = delays.wide if work.wide else delays.word
            pause *= up(channels, INPUT_DEPTH) if work.part_kernel else 1
            total += pause * (steps if deep == 1 else (steps - 1) * deep)
    if work.kind in (WorkKind.CONVOLUTION, WorkKind.REDUCE_SUM):
        total *= up(work.channels, channels)
    return math.floor(total / machine.accelerator.cores)


def _subkernel(
    work: KernelWork, elements: int, counts: tuple[int, int], unit: Shape, machine: Machine
) -> tuple[float, int]:
    """Return the array's cycles for one part of the kernel, and its steps."""
    plane, deep = counts
    streams = machine.accelerator.weight_streams if work.is_u85 else 1
    least, wide = SLOTS * unit[2] // streams, work.input_bits // BITS
    channels = min(work.slab, work.channels)
    halved = 2 if work.sparse else 1
    match work.kind:
        case WorkKind.POOL:
            narrow = machine.accelerator.macs_per_core <= NARROWEST_ARRAY_MACS
            slots = max(POOL_SLOTS, elements) * (1 if narrow else work.input_bits // 2)
            return slots * plane * deep, 1
        case WorkKind.DEPTHWISE:
            steps = up(elements, SLOTS)
            return max(least, SLOTS * plane * wide) * steps * deep, steps
        case _ if work.part_kernel:
            steps = up(elements, SLOTS if work.input_bits == BITS else SLOTS // 2)
            groups = up(channels, INPUT_DEPTH)
            return max(least, SLOTS * plane) * steps * deep * groups / halved, steps
        case _ if work.is_u85:
            slot = max(least, channels // INPUT_DEPTH * plane)
            return slot * elements * deep * wide / halved, elements
        case _:
            return max(least, SLOTS * plane) * elements * deep, elements


def _bias(work: KernelWork, block: Shape, machine: Machine) -> float:
    if work.kind not in (WorkKind.CONVOLUTION, WorkKind.DEPTHWISE):
        return 0.0
    places = [stream.place for stream in work.streams if stream.what == "weights"]
    bus = machine.bus(places[0]) if places else None
    return BIAS_BYTES * block[2] * bus.read_latency_cycles / BIAS_PREFETCH_BYTES if bus else 0.0


def _input_block(work: KernelWork) -> Shape:
    """Return height, width and depth of the input that a whole block needs."""
    height, width, depth = work.blocks.block
    item = next(iter(work.blocks.inputs), None)
    if item is None or not isinstance(item.window, Sliding):
        return height, width, depth
    sides: list[int] = []
    for size, axis, unit in (
        (height, item.window.y, work.microblock[0]),
        (width, item.window.x, work.microblock[1]),
    ):
        doubled = axis.upscale == 2
        needed = (size - 1) * axis.stride + min(axis.extent, SUBKERNEL) + doubled
        sides.append(unit * up(up(needed, axis.upscale), unit))
    if work.kind in ONE_PIECE:
        return sides[0], sides[1], depth
    deep = INPUT_DEPTH * up(min(work.slab, work.channels), INPUT_DEPTH)
    return sides[0], sides[1], deep


def _inflated(bytes_: float, bus: Bus, burst: float) -> int:
    longest = bus.burst_bytes
    return math.floor(bytes_ * longest / min(longest, max(burst, 1)))


def _read_burst(fm: Map, block: Shape) -> float:
    size, (height, width, depth) = fm.element_bytes, block
    if fm.bricks:
        return depth * width * size if BRICK * size * fm.shape[1] == depth else BRICK * size * width
    if fm.shape[2] * size == depth:
        return size * width * depth
    return size * depth if height else size


def _write_burst(fm: Map, block: Shape, cores: int) -> float:
    size, (_, width, depth) = fm.element_bytes, block
    if fm.bricks:
        return BRICK * size * width * cores
    if depth <= BRICK and fm.shape[2] * size == depth:
        return size * width * depth
    return min(LONGEST_WRITE_BYTES, BRICK * size * cores, size * depth)


def _fetch(work: KernelWork, machine: Machine) -> float:
    block, cycles = _input_block(work), 0.0
    for item in work.blocks.inputs:
        bus = machine.bus(item.map.place)
        if bus is not None:
            elements = math.prod(map(min, item.map.shape, block))
            bytes_ = elements * item.map.element_bytes
            moved = _inflated(bytes_, bus, _read_burst(item.map, block))
            cycles = max(cycles, bus.read_latency_cycles + moved // bus.bytes_per_cycle)
    return cycles


def _write(work: KernelWork, machine: Machine) -> float:
    result = work.blocks.result
    bus = machine.bus(result.map.place) if result else None
    if result is None or bus is None:
        return 0.0
    bytes_ = math.prod(_clipped(work)) * result.map.element_bytes
    burst = _write_burst(result.map, work.blocks.block, machine.accelerator.cores)
    return bus.write_latency_cycles + _inflated(bytes_, bus, burst) // bus.bytes_per_cycle


def _elements(work: KernelWork) -> int:
    height, width, depth = work.blocks.shape
    result = work.blocks.result
    bricks = result is not None and result.map.bricks
    return height * width * (BRICK * up(depth, BRICK) if bricks else depth)


def _memory(work: KernelWork, machine: Machine) -> int:
    """Return the cycles of the memory that is the busiest."""
    sums: defaultdict[Port, float] = defaultdict(float)
    rates: dict[Port, float] = {}
    for bus, bytes_ in _moved(work, machine):
        sums[bus.port] += bytes_
        rates[bus.port] = bus.bytes_per_cycle
    return max((math.floor(total / rates[port]) for port, total in sums.items()), default=0)


def _moved(work: KernelWork, machine: Machine) -> Iterator[tuple[Bus, float]]:
    block, counts = _input_block(work), work.blocks.counts
    times = counts[0] * counts[1] * (1 if work.kind in ONE_PIECE else counts[2])
    for item in work.blocks.inputs:
        bus = machine.bus(item.map.place)
        if bus is None:
            continue
        size = item.map.element_bytes
        depth = item.map.shape[2]
        depth = BRICK * up(depth, BRICK) if item.map.bricks else depth
        if work.kind is WorkKind.ELEMENTWISE:
            elements = math.prod(work.blocks.shape if not work.is_u85 else item.map.shape)
        else:
            height, width, _ = map(min, item.map.shape, block)
            elements = height * width * depth * len(work.subkernels) * times
        yield bus, _inflated(elements * size, bus, _read_burst(item.map, block))
    result = work.blocks.result
    bus = machine.bus(result.map.place) if result else None
    if result is not None and bus is not None:
        bytes_ = _elements(work) * result.map.element_bytes
        burst = _write_burst(result.map, work.blocks.block, machine.accelerator.cores)
        yield bus, _inflated(bytes_, bus, burst)
    for stream in work.streams:
        bus = machine.bus(stream.place)
        if bus is not None:
            yield bus, refetches(work) * stream.bytes_
