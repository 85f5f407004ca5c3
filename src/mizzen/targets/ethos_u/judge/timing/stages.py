"""How long a kernel operation takes by itself: its stages, block by block, and its buses.

A block goes through input, array, output and writing; each works on another block at the same time,
with two input buffers, two sets of accumulators, and four blocks under way. Blocks of one size take
the same time, so that there are at most eight kinds of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mizzen.targets.ethos_u.judge.hazards.blocks import Shape
from mizzen.targets.ethos_u.judge.hazards.shared_buffer import BUFFERS
from mizzen.targets.ethos_u.judge.timing.array import BITS, ArrayCycles, array_of
from mizzen.targets.ethos_u.judge.timing.buses import (
    BusUse,
    Held,
    Moves,
    jobs_of,
    occupied,
    uses_of,
)
from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.judge.timing.output import bias_cycles, output_rate
from mizzen.targets.ethos_u.judge.timing.work import KernelWork
from mizzen.targets.ethos_u.machine.config import Port

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


@dataclass(frozen=True, slots=True)
class Stages:
    """A kernel operation by itself.

    fetch_cycles      until the array has its first input
    constants_cycles  until it has its first weights
    main_cycles       until the last block has left the array and the output unit
    drain_cycles      until its last bytes are written
    blocks            how many there are
    block_cycles      between two of them, on average
    mac_cycles, decode_cycles, output_cycles  that each unit is at work
    port_cycles       for which each bus is needed, transfers beside it included
    causes            of `main_cycles`; they add up to it
    """

    fetch_cycles: float
    constants_cycles: float
    main_cycles: float
    drain_cycles: float
    blocks: int
    block_cycles: float
    mac_cycles: float
    decode_cycles: float
    output_cycles: float
    port_cycles: dict[Port, float]
    causes: dict[Reason, float]
    uses: tuple[BusUse, ...]


@dataclass(slots=True)
class _Sums:
    """Cycles of all blocks, by unit and by what is waited for; `short` of the last one.

    busy  of the array, what it waits for the decoder included
    ends  of array and output unit for each kind of block, the last block's last
    """

    main: float = 0.0
    busy: float = 0.0
    mac: float = 0.0
    decode: float = 0.0
    output: float = 0.0
    short: float = 0.0
    ends: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    causes: defaultdict[Reason, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(frozen=True, slots=True)
class _Block:
    """A block's cycles: of the array, of the output unit, between two, and what decides."""

    array: ArrayCycles
    busy: float
    output: float
    turn: float

    @property
    def time(self) -> float:
        """Cycles from one block to the next."""
        return max(self.busy, self.output, self.turn)


def stages_of(work: KernelWork, machine: Machine, beside: Sequence[BusUse] = ()) -> Stages:
    """Return how long an operation takes when no other kernel operation is at work.

    beside  what transfers move meanwhile
    """
    uses, moves = uses_of(work, machine)
    sums = _blocks(work, machine, moves)
    by_bus = occupied((*uses, *beside))
    causes: dict[Reason, float] = dict(sums.causes)
    main = sums.main
    for port, cycles in by_bus.items():
        if cycles > main:
            causes, main = dict[Reason, float](), cycles
            causes[Cause.MEMORY, port] = cycles
    short = sums.short
    if work.is_u85:
        weights = max(occupied(use for use in uses if use.held is Held.WEIGHTS).values(), default=0)
        short = max(short, _two_stages(sums, weights) - main)
    return Stages(
        fetch_cycles=moves.fetch_latency + moves.fetch,
        constants_cycles=moves.constants,
        main_cycles=main,
        drain_cycles=short + moves.write_latency + moves.write,
        blocks=work.blocks.total,
        block_cycles=main / max(1, work.blocks.total),
        mac_cycles=sums.mac,
        decode_cycles=sums.decode,
        output_cycles=sums.output,
        port_cycles=by_bus,
        causes=causes,
        uses=uses,
    )


def _blocks(work: KernelWork, machine: Machine, moves: Moves) -> _Sums:
    """Add up the blocks, each as long as what is slowest of it."""
    array = array_of(work, machine.accelerator.macs_per_core, machine.accelerator.weight_streams)
    rate, bias = output_rate(work, machine), bias_cycles(work, machine)
    ideal, sums = _ideal(work, machine) / math.prod(work.blocks.shape), _Sums()
    whole = math.prod(map(min, work.blocks.block, work.blocks.shape))
    for size, count in _sizes(work):
        elements = math.prod(size)
        output = max(rate * elements, bias * size[2])
        block = _block(array(size), output, elements / whole, moves, jobs_of(work))
        sums.main += count * block.time
        sums.mac += count * block.array.mac
        sums.decode += count * block.array.decode
        sums.output += count * output
        sums.busy += count * block.busy
        sums.ends.append((block.busy, output))
        _attribute(sums.causes, block, count, ideal * elements, moves.port)
    sums.short = min(sums.ends[-1])
    return sums


def _two_stages(sums: _Sums, weights_cycles: float) -> float:
    """Return the cycles of the array and the output unit, one after the other for each block.

    The array takes no less than its weights take to come.
    """
    slower = max(1.0, weights_cycles / sums.busy) if sums.busy else 1.0
    (first, _), (_, before), (busy, output) = sums.ends[0], sums.ends[-2:][0], sums.ends[-1]
    late = max(output, before + output - busy * slower) if len(sums.ends) > 1 else output
    return max(first * slower + sums.output, sums.busy * slower + late)


def _block(array: ArrayCycles, output: float, share: float, moves: Moves, jobs: int) -> _Block:
    """Return a block's cycles; it is `share` of the largest.

    Buffers are free again when the array has done what they hold, and a block ends when it is
    written, so that latency shows where blocks are short.
    """
    busy = max(array.mac + array.delay, array.decode)
    fetch = jobs * (moves.fetch_latency + moves.fetch * share)
    write = moves.write_latency + moves.write * share
    turn = max((fetch + busy) / BUFFERS, (fetch + busy + output + write) / IN_FLIGHT)
    return _Block(array, busy, output, turn)


def _attribute(
    causes: defaultdict[Reason, float], block: _Block, count: int, ideal: float, port: Port | None
) -> None:
    """Say what some blocks of one size are waited for."""
    array, time = block.array, count * block.time
    if block.time > max(block.busy, block.output):
        causes[(Cause.FILL, None) if port is None else (Cause.MEMORY, port)] += time
    elif block.time > block.busy:
        causes[Cause.OUTPUT, None] += time
    elif array.decode > array.mac + array.delay:
        causes[Cause.WEIGHTS, None] += time
    else:
        useful = min(ideal, array.mac)
        causes[Cause.MAC, None] += count * useful
        causes[Cause.ROUNDING, None] += count * (array.mac - useful)
        causes[Cause.FILL, None] += count * array.delay


def _ideal(work: KernelWork, machine: Machine) -> float:
    """Return the array's cycles if no part of it were ever idle."""
    if work.macs:
        return work.macs * max(1, work.input_bits // BITS) / machine.accelerator.macs
    whole = array_of(work, machine.accelerator.macs_per_core, 1)(work.microblock)
    return whole.mac * math.prod(work.blocks.shape) / math.prod(work.microblock)


def _sizes(work: KernelWork) -> Iterator[tuple[Shape, int]]:
    """Return the sizes that blocks have, and how many have each; the last block's comes last."""
    axes: list[list[tuple[int, int]]] = []
    for size, step in zip(work.blocks.shape, work.blocks.block, strict=True):
        whole, rest = divmod(size, step)
        axes.append([pair for pair in ((step, whole), (rest, 1)) if pair[0] and pair[1]])
    for high, lines in axes[0]:
        for wide, columns in axes[1]:
            for deep, slices in axes[2]:
                yield (high, wide, deep), lines * columns * slices
