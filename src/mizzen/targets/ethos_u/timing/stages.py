"""How long a kernel operation takes by itself: its stages, block by block, and its buses.

A block goes through input, array, output and writing; each works on another block at the same time,
with two input buffers, two sets of accumulators, and four blocks in flight. Blocks of one size
take the same time, so that there are at most eight kinds of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from mizzen.targets.ethos_u.config import Port
from mizzen.targets.ethos_u.hazards.blocks import Shape
from mizzen.targets.ethos_u.hazards.shared_buffer import BUFFERS
from mizzen.targets.ethos_u.timing.array import BITS, ArrayCycles, array_of, up
from mizzen.targets.ethos_u.timing.machine import Bus, Machine
from mizzen.targets.ethos_u.timing.rates import (
    BIAS_BYTES,
    BIAS_PREFETCH_BYTES,
    OUTPUT_RATES,
    OUTPUT_RATES_U85,
)
from mizzen.targets.ethos_u.timing.reads import Moved, reads_of, refetches, write_of
from mizzen.targets.ethos_u.timing.work import KernelWork, WorkKind, is_unary

IN_FLIGHT = 4
"""Blocks that may be under way at once. Ref: Vela 5.2, minimal cycles of a command."""


class Cause(Enum):
    """What time is waited for; the names are those of `mizzen.report.cost.Bound`."""

    MAC = "MAC"
    ROUNDING = "ROUNDING"
    WEIGHTS = "WEIGHTS"
    OUTPUT = "OUTPUT"
    MEMORY = "MEMORY"
    """Of a bus: the memory behind it says which."""
    WAITING = "WAITING"
    FILL = "FILL"


Reason = tuple[Cause, Port | None]
"""What is waited for; of `Cause.MEMORY`, the port that it is behind."""


class Held(Enum):
    """What bytes on a bus are; the names are those of `mizzen.report.cost.Purpose`."""

    FEATURE_MAP = "FEATURE_MAP"
    WEIGHTS = "WEIGHTS"
    SCALES = "SCALES"
    TABLE = "TABLE"
    TRANSFER = "TRANSFER"
    COMMANDS = "COMMANDS"


@dataclass(frozen=True, slots=True)
class BusUse:
    """Bytes on a bus, and the cycles that it takes to move them when nothing else does."""

    bus: Bus
    held: Held
    read_bytes: int
    written_bytes: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Stages:
    """A kernel operation by itself.

    fill_cycles   until the array has its first input
    main_cycles   until the last block has left the array and the output unit
    drain_cycles  until its last bytes are written
    block_cycles  between two blocks, on average
    mac_cycles, decode_cycles, output_cycles  that each unit is at work
    causes        of `main_cycles`; they add up to it
    """

    fill_cycles: float
    main_cycles: float
    drain_cycles: float
    block_cycles: float
    mac_cycles: float
    decode_cycles: float
    output_cycles: float
    causes: dict[Reason, float]
    uses: tuple[BusUse, ...]


@dataclass(slots=True)
class _Sums:
    """Cycles of all blocks, by unit and by what is waited for."""

    main: float = 0.0
    mac: float = 0.0
    decode: float = 0.0
    output: float = 0.0
    causes: defaultdict[Reason, float] = field(default_factory=lambda: defaultdict(float))


def stages_of(work: KernelWork, machine: Machine) -> Stages:
    """Return how long an operation takes when nothing else is at work."""
    uses, fetch, write = _uses(work, machine)
    sums = _blocks(work, machine, fetch, write)
    rate = output_rate(work, machine)
    last = rate * math.prod(_last(work))
    by_bus: defaultdict[Port, float] = defaultdict(float)
    for use in uses:
        by_bus[use.bus.port] += use.cycles
    causes: dict[Reason, float] = dict(sums.causes)
    main = sums.main
    for port, cycles in by_bus.items():
        if cycles > main:
            causes, main = dict[Reason, float](), cycles
            causes[Cause.MEMORY, port] = cycles
    return Stages(
        fill_cycles=fetch,
        main_cycles=main,
        drain_cycles=last + write,
        block_cycles=main / max(1, work.blocks.total),
        mac_cycles=sums.mac,
        decode_cycles=sums.decode,
        output_cycles=sums.output,
        causes=causes,
        uses=tuple(uses),
    )


def _last(work: KernelWork) -> Shape:
    block = work.blocks.at(work.blocks.total - 1)
    height, width, depth = (b - a for a, b in zip(block.start, block.stop, strict=True))
    return height, width, depth


def _blocks(work: KernelWork, machine: Machine, fetch: float, write: float) -> _Sums:
    """Add up the blocks, each as long as what is slowest of it."""
    cores = machine.accelerator.macs_per_core
    array = array_of(work, cores, machine.accelerator.weight_streams)
    rate, sums = output_rate(work, machine), _Sums()
    latency = _bias_latency(work, machine)
    ideal = _ideal(work, machine)
    area = math.prod(work.blocks.shape)
    for size, count in _sizes(work):
        found = array(size)
        elements = math.prod(size)
        output = max(rate * elements, latency * size[2])
        busy = max(found.mac, found.decode) + found.delay
        turn = max((fetch + busy) / BUFFERS, (fetch + busy + output + write) / IN_FLIGHT)
        time = max(busy, output, turn)
        sums.main += count * time
        sums.mac += count * found.mac
        sums.decode += count * found.decode
        sums.output += count * output
        _attribute(sums, found, (output, turn, time), count, ideal * elements / area)
    return sums


def _attribute(
    sums: _Sums,
    found: ArrayCycles,
    times: tuple[float, float, float],
    count: int,
    ideal: float,
) -> None:
    """Say what some blocks of one size are waited for."""
    output, turn, time = times
    causes = sums.causes
    if time == output:
        causes[Cause.OUTPUT, None] += count * time
    elif time == turn:
        causes[Cause.FILL, None] += count * time
    elif found.decode > found.mac:
        causes[Cause.WEIGHTS, None] += count * time
    else:
        useful = min(ideal, found.mac)
        causes[Cause.MAC, None] += count * useful
        causes[Cause.ROUNDING, None] += count * (found.mac - useful)
        causes[Cause.FILL, None] += count * found.delay


def _ideal(work: KernelWork, machine: Machine) -> float:
    """Return the array's cycles if no part of it were ever idle."""
    wide = max(1, work.input_bits // BITS)
    if work.macs:
        return work.macs * wide / machine.accelerator.macs
    whole = array_of(work, machine.accelerator.macs_per_core, 1)(work.microblock)
    return whole.mac * math.prod(work.blocks.shape) / math.prod(work.microblock)


def _sizes(work: KernelWork) -> Iterator[tuple[Shape, int]]:
    """Return the sizes that blocks have, and how many have each."""
    axes: list[list[tuple[int, int]]] = []
    for size, step in zip(work.blocks.shape, work.blocks.block, strict=True):
        whole, rest = divmod(size, step)
        axes.append([row for row in ((step, whole), (rest, 1)) if row[0] and row[1]])
    for high, rows in axes[0]:
        for wide, columns in axes[1]:
            for deep, slices in axes[2]:
                yield (high, wide, deep), rows * columns * slices


def _bias_latency(work: KernelWork, machine: Machine) -> float:
    """Return the least cycles for an output channel of a block, whose bias has to be fetched."""
    scales = next((row for row in work.streams if row.what == "scales"), None)
    bus = machine.bus(scales.place) if scales else None
    return BIAS_BYTES * bus.read_latency_cycles / BIAS_PREFETCH_BYTES if bus else 0.0


def _uses(work: KernelWork, machine: Machine) -> tuple[list[BusUse], float, float]:
    """Return what is on the buses, cycles of a block's first input, and of its writing."""
    beat, found = machine.arena.beat_bytes, list[BusUse]()
    fetch = write = 0.0
    for moved in reads_of(work, beat):
        bus = machine.bus(moved.place)
        if bus is not None:
            rate = bus.read_bytes_per_cycle(moved.run_bytes)
            found.append(BusUse(bus, Held.FEATURE_MAP, moved.bytes_, 0, moved.bytes_ / rate))
            job = moved.block_bytes / _jobs(work)
            fetch = max(fetch, bus.read_latency_cycles + job / rate)
    moved = write_of(work, beat)
    bus = machine.bus(moved.place) if moved else None
    if moved is not None and bus is not None:
        rate = bus.write_bytes_per_cycle(moved.run_bytes)
        found.append(BusUse(bus, Held.FEATURE_MAP, 0, moved.bytes_, moved.bytes_ / rate))
        write = bus.write_latency_cycles + _tail(moved, work) / rate
    found += _constants(work, machine)
    return found, fetch, write


def _jobs(work: KernelWork) -> int:
    """Return how many jobs a block is done in: slabs of input channels, parts of the kernel."""
    slabs = up(work.channels, work.slab) if work.slab else 1
    return slabs * len(work.subkernels)


def _tail(moved: Moved, work: KernelWork) -> float:
    """Return the bytes of a microblock's rows, the last that leave."""
    height = min(work.blocks.block[0], work.blocks.shape[0])
    return moved.block_bytes / up(height, work.microblock[0])


def _constants(work: KernelWork, machine: Machine) -> Iterator[BusUse]:
    times = refetches(work)
    for row in work.streams:
        bus = machine.bus(row.place)
        if bus is not None and row.bytes_:
            held = Held.WEIGHTS if row.what == "weights" else Held.SCALES
            total = times * row.bytes_
            yield BusUse(bus, held, total, 0, total / bus.read_bytes_per_cycle(row.bytes_))
    bus, total = machine.constants, work.command_bytes
    yield BusUse(bus, Held.COMMANDS, total, 0, total / bus.read_bytes_per_cycle(total))


def output_rate(work: KernelWork, machine: Machine) -> float:
    """Return the output unit's cycles for an element."""
    if work.is_u85:
        return _rate_u85(work, machine.accelerator.macs)
    row = OUTPUT_RATES[machine.accelerator.macs_per_core]
    least = {"table": row.table, "relu": row.relu}.get(work.activation, 0.0)
    match work.kind, work.mode:
        case WorkKind.ELEMENTWISE, mode if work.input_bits == 32:
            rate = row.word_unary if is_unary(mode) else row.word_binary
        case WorkKind.ELEMENTWISE, "MUL":
            rate = row.multiply_to_word if work.output_bits == 32 else row.multiply
        case WorkKind.ELEMENTWISE, "ADD" | "SUB":
            rate = row.add_simple if work.simple else row.add
        case WorkKind.POOL, "MAX":
            rate = row.maximum
        case _:
            rate = row.multiply if work.wide else row.other
    return max(rate, least) / machine.accelerator.cores


def _rate_u85(work: KernelWork, macs: int) -> float:
    row = OUTPUT_RATES_U85[macs]
    rate = {8: row.byte, 16: row.half, 32: row.word, 64: row.double}[work.output_bits]
    if work.kind is WorkKind.ELEMENTWISE:
        if work.mode == "DIV":
            return row.divide
        if work.input_bits == 32 and not is_unary(work.mode):
            rate = row.words if work.output_bits == 32 else row.narrowing
    if work.chained and work.input_bits == 32:
        rate = max(rate, row.narrowing)
    if work.turned:
        return max(rate, row.turned)
    return max(rate, row.activation if work.activation else 0.0)
