"""How long the MAC array and the weight decoder need for a block of output.

The array takes a microblock of outputs and 8 input channels of 8 bits a cycle. U55 and U65 step in
four cycles: through 4 kernel elements, or through the 32 input channels of one. U85 steps through
rounds of 5 kernel elements (10 for depthwise, sparse weights and 16-bit input), of which a last
one may be shorter, or through all channels of a slab, as its weight stream does.

Ref: Vela 5.2, npu_performance.py and its C++ core (U55, U65: the formula; U85: how it chooses
traversals, and its decoder's rate); the orders of weight streams, which decode to the model's
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log2

from mizzen.targets.ethos_u.judge.hazards.blocks import Shape
from mizzen.targets.ethos_u.judge.timing.rates import (
    DECODED_WEIGHTS_PER_CYCLE,
    DELAYS,
    FAST_PALETTE_WEIGHTS_PER_CYCLE,
    FAST_WEIGHTS_PER_CYCLE,
    INPUT_DEPTH,
    LONGEST_PIPELINE,
    MOST_DECODED_WEIGHTS_PER_CYCLE,
    PALETTE_BITS,
    ROW_MICROBLOCK,
    SLOTS,
)
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, WorkKind

POOL_SLOTS = 4
"""Least kernel elements that pooling takes the time of."""
NARROWEST_ARRAY_MACS = 32
"""An array so small pools one element a cycle."""
ROUND_U85, LONG_ROUND_U85 = 5, 10
SHORTEST_ROUND_U85, SHORTEST_LONG_ROUND_U85 = 2, 4
GROUPS_U85 = 2
"""Groups of input channels that kernel-first weights are padded to; the array goes through all."""
BILINEAR_TAPS = 4
"""Neighbours of an output of a bilinear resize."""
BITS = 8
NONZERO_BITS = 5
"""Taken for a weight that is not zero, where a stream's length is to tell the share of zeros."""


@dataclass(frozen=True, slots=True)
class ArrayCycles:
    """Of a block: the array's and the decoder's cycles, which run beside each other.

    delay  what the array waits besides, where a block is too small to hide its pipeline
    """

    mac: float
    decode: float = 0.0
    delay: float = 0.0


BlockCycles = Callable[[Shape], ArrayCycles]


def array_of(work: KernelWork, macs: int, weight_streams: int) -> BlockCycles:
    """Return a function that tells how long a block takes, all slabs of input channels with it.

    macs  of a core
    """
    match work.kind:
        case WorkKind.ELEMENTWISE:
            return lambda _: ArrayCycles(0.0)
        case WorkKind.POOL if not work.is_u85:
            return _pool(work, macs)
        case _ if work.is_u85:
            return _u85(work, weight_streams)
        case _:
            return _u55(work, macs)


def up(value: int, by: int) -> int:
    """Return the quotient, rounded up."""
    return -(-value // by)


def _pool(work: KernelWork, macs: int) -> BlockCycles:
    narrow = macs <= NARROWEST_ARRAY_MACS
    slots = sum(max(POOL_SLOTS, e) for e in work.subkernels)
    each = slots * (1 if narrow else work.input_bits // 2)
    return lambda block: ArrayCycles(each * _count(block, work.microblock))


def _count(block: Shape, unit: Shape) -> int:
    return up(block[0], unit[0]) * up(block[1], unit[1]) * up(block[2], unit[2])


def _u55(work: KernelWork, macs: int) -> BlockCycles:
    unit, steps = _unit(work), _steps(work)
    slot = SLOTS
    if work.kind is WorkKind.DEPTHWISE:
        slot = slot * work.input_bits // BITS
    decode = 0 if work.kind is WorkKind.REDUCE_SUM else SLOTS * unit[2]
    delays = DELAYS.get(macs, LONGEST_PIPELINE)
    pause = delays.wide if work.wide else delays.word

    def cycles(block: Shape) -> ArrayCycles:
        plane = up(block[0], unit[0]) * up(block[1], unit[1])
        deep = up(up(block[2], work.cores), unit[2])
        delay = 0.0
        if plane == 1:
            delay = pause * (steps if deep == 1 else (steps - 1) * deep)
        return ArrayCycles(slot * plane * steps * deep, decode * steps * deep, delay)

    return cycles


def _unit(work: KernelWork) -> Shape:
    """Return the microblock, or the long one that outputs of one row are done in."""
    high, wide, _ = work.blocks.shape
    flat = work.kind is WorkKind.CONVOLUTION and high == 1 and wide % 2 == 0
    if flat and work.microblock[0] == 2 and work.kernel_height == 1:
        return ROW_MICROBLOCK
    return work.microblock


def _groups(work: KernelWork) -> tuple[int, int]:
    """Return how many slabs of input channels there are, and groups of 8 in all of them."""
    whole, rest = divmod(work.channels, work.slab)
    groups = whole * up(work.slab, INPUT_DEPTH) + up(rest, INPUT_DEPTH)
    return whole + bool(rest), groups


def _steps(work: KernelWork) -> int:
    """Return how often the array of U55 and U65 goes over a block."""
    if work.kind is WorkKind.DEPTHWISE:
        return sum(up(e, SLOTS) for e in work.subkernels)
    slabs, groups = _groups(work)
    if not work.part_kernel:
        return slabs * sum(work.subkernels)
    at_once = SLOTS if work.input_bits == BITS else SLOTS // 2
    return groups * sum(up(e, at_once) for e in work.subkernels)


def _u85(work: KernelWork, weight_streams: int) -> BlockCycles:
    jobs = _jobs_u85(work)
    wide = max(1, work.input_bits // BITS) / (2 if work.sparse else 1)
    unit, stored = work.microblock, sum(job.stored for job in jobs)
    rate, pass_depth = 0.0, up(work.blocks.shape[2], unit[2]) * unit[2]
    weights = sum(stream.bytes_ for stream in work.streams if stream.what == "weights")
    if weights:
        bits = BITS * weights / (stored * pass_depth)
        rate = _decoded_per_cycle(work, bits) * (1 if work.fast_weights else weight_streams)

    def cycles(block: Shape) -> ArrayCycles:
        count, deep = _count(block, unit), up(block[2], unit[2]) * unit[2]
        pairs = [
            (job.used * wide * count, job.stored * deep / rate if rate else 0.0) for job in jobs
        ]
        mac, decode = (sum(cycles) for cycles in zip(*pairs, strict=True))
        both = sum(map(max, *zip(*pairs, strict=True))) if len(pairs) > 1 else max(pairs[0])
        return ArrayCycles(mac, decode, both - mac) if mac >= decode else ArrayCycles(mac, both)

    return cycles


@dataclass(frozen=True, slots=True)
class _Job:
    """Of a job of U85: cycles for a microblock, and weights in the stream for a channel of it."""

    used: int
    stored: int


def _jobs_u85(work: KernelWork) -> list[_Job]:
    """Return the jobs of a block, one for each slab of input channels that weights are cut by."""
    match work.kind:
        case WorkKind.RESIZE:
            return [_Job(BILINEAR_TAPS if work.mode == "BILINEAR" else 1, 0)]
        case WorkKind.DEPTHWISE | WorkKind.POOL:
            return [_in_rounds(work, long=True)]
        case _ if work.part_kernel:
            each = _in_rounds(work, long=work.sparse or work.input_bits > BITS)
            groups = GROUPS_U85 * up(work.channels, GROUPS_U85 * INPUT_DEPTH)
            return [_Job(groups * each.used, INPUT_DEPTH * groups * each.stored)]
        case _:
            elements = sum(work.subkernels)
            stored = up(work.slab, INPUT_DEPTH) * INPUT_DEPTH * elements
            return [
                _Job(up(min(work.slab, work.channels - low), INPUT_DEPTH) * elements, stored)
                for low in range(0, work.channels, work.slab)
            ]


def _in_rounds(work: KernelWork, *, long: bool) -> _Job:
    """Return the cycles of a kernel in rounds, the last of which may be short, and as stored."""
    size = LONG_ROUND_U85 if long else ROUND_U85
    least = SHORTEST_LONG_ROUND_U85 if long else SHORTEST_ROUND_U85
    used = 0
    for elements in work.subkernels:
        whole, rest = divmod(elements, size)
        used += whole * size + (max(rest, least) if rest else 0)
    return _Job(used, sum(size * up(e, size) for e in work.subkernels))


def _decoded_per_cycle(work: KernelWork, bits_per_weight: float) -> float:
    """Return how many weights of so many bits are decoded per cycle."""
    if not work.fast_weights:
        return decoder_rate(bits_per_weight)
    few = bits_per_weight < (PALETTE_BITS + BITS) / 2
    return float(FAST_PALETTE_WEIGHTS_PER_CYCLE if few else FAST_WEIGHTS_PER_CYCLE)


@cache
def decoder_rate(bits_per_weight: float) -> float:
    """Return weights per cycle of a decoder of U85.

    Vela's rate by the share of zeros: 8 + 60 * (share - 0.5), share between 0.5 and 0.9. The share
    is not known without decoding; it is taken from the stream's length, as if that were the
    entropy of where zeros are and 5 bits for every other weight.
    """
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _bits(middle) > bits_per_weight else (low, middle)
    share = min(0.9, max(0.5, low))
    rate = DECODED_WEIGHTS_PER_CYCLE + 60 * (share - 0.5)
    return min(rate, float(MOST_DECODED_WEIGHTS_PER_CYCLE))


def _bits(zeros: float) -> float:
    parts = [part for part in (zeros, 1 - zeros) if part > 0]
    return -sum(part * log2(part) for part in parts) + NONZERO_BITS * (1 - zeros)
