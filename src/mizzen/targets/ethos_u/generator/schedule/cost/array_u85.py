"""How fast U85's output unit, array and weight decoders are with an operation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.schedule.blocks import Blocks, slab, up
from mizzen.targets.ethos_u.generator.schedule.cost.traffic import Constants
from mizzen.targets.ethos_u.generator.schedule.facts import UNARY, Facts, Function, Kind
from mizzen.targets.ethos_u.judge.timing.array import (
    BILINEAR_TAPS,
    GROUPS_U85,
    LONG_ROUND_U85,
    ROUND_U85,
    SHORTEST_LONG_ROUND_U85,
    SHORTEST_ROUND_U85,
    decoder_rate,
)
from mizzen.targets.ethos_u.judge.timing.rates import (
    FAST_PALETTE_WEIGHTS_PER_CYCLE,
    FAST_WEIGHTS_PER_CYCLE,
    INPUT_DEPTH,
    OUTPUT_RATES_U85,
    PALETTE_BITS,
    SLOTS,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseModeU85
from mizzen.targets.ethos_u.machine.config import Accelerator

Cycles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNARY_NAMES = {*(mode.name for mode in UNARY), ElementwiseModeU85.NOT.name}

WEIGHT_BITS = 8
IN_ROUNDS = (Kind.DEPTHWISE, Kind.POOL)


@dataclass(frozen=True, slots=True)
class Job:
    """Jobs of a block: cycles for a microblock, and weights in the stream for a channel of it."""

    number: int
    used: int
    stored: int


def output_rate_u85(facts: Facts, accelerator: Accelerator) -> float:
    """Return the output unit's cycles for an element."""
    rates = OUTPUT_RATES_U85[accelerator.macs]
    rate = {8: rates.byte, 16: rates.half, 32: rates.word, 64: rates.double}[facts.output_bits]
    if facts.kind is Kind.ELEMENTWISE:
        if facts.mode == "DIV":
            return rates.divide
        if facts.input_bits == 32 and facts.mode not in UNARY_NAMES:
            rate = rates.words if facts.output_bits == 32 else rates.narrowing
    if facts.chained and facts.input_bits == 32:
        rate = max(rate, rates.narrowing)
    if facts.turned:
        return max(rate, rates.turned)
    return max(rate, rates.activation if facts.function is Function.TABLE else 0.0)


def busy_u85(
    facts: Facts,
    sides: Blocks,
    part_kernel: bool,
    constants: Constants | None,
    accelerator: Accelerator,
) -> Cycles:
    """Return the cycles of the array or the decoders, whichever needs more of each job."""
    if facts.kind is Kind.ELEMENTWISE:
        return np.zeros(len(sides))
    jobs, counts = _jobs(facts, part_kernel), -(-sides // np.array(facts.microblock))
    count, deep = np.prod(counts, axis=1), counts[:, 2] * facts.microblock[2]
    wide = max(1, facts.input_bits // INPUT_DEPTH) / (2 if facts.sparse else 1)
    rate = _decoded_per_cycle(facts, jobs, constants, accelerator)
    busy = np.zeros(len(sides))
    for job in jobs:
        decode = job.stored * deep / rate if rate else 0.0
        busy += job.number * np.maximum(job.used * wide * count, decode)
    return busy


def _decoded_per_cycle(
    facts: Facts, jobs: list[Job], constants: Constants | None, accelerator: Accelerator
) -> float:
    """Return the weights that all decoders give per cycle; 0 where there are none to decode."""
    if constants is None or not sum(constants.weights):
        return 0.0
    depth = up(facts.shape[2], facts.microblock[2]) * facts.microblock[2]
    stored = sum(job.number * job.stored for job in jobs)
    bits = 8 * sum(constants.weights) / (stored * depth)
    if not constants.fast:
        return decoder_rate(bits) * accelerator.weight_streams
    few = bits < (PALETTE_BITS + WEIGHT_BITS) / 2
    return float(FAST_PALETTE_WEIGHTS_PER_CYCLE if few else FAST_WEIGHTS_PER_CYCLE)


def _jobs(facts: Facts, part_kernel: bool) -> list[Job]:
    """Return the jobs of a block, one for each slab of input channels that weights are cut by."""
    if facts.kind is Kind.RESIZE:
        return [Job(1, BILINEAR_TAPS if facts.mode == "BILINEAR" else 1, 0)]
    if facts.kind in IN_ROUNDS:
        return [Job(1, *_in_rounds(facts, long=True))]
    if part_kernel:
        used, stored = _in_rounds(facts, long=facts.sparse or facts.input_bits > INPUT_DEPTH)
        groups = GROUPS_U85 * up(facts.channels, GROUPS_U85 * INPUT_DEPTH)
        return [Job(1, groups * used, INPUT_DEPTH * groups * stored)]
    most, elements = slab(facts, part_kernel), sum(facts.subkernels)
    groups, (whole, rest) = up(most, INPUT_DEPTH) * elements, divmod(facts.channels, most)
    jobs = [Job(whole, groups, INPUT_DEPTH * groups)] if whole else []
    if rest:
        jobs.append(Job(1, up(rest, INPUT_DEPTH) * elements, INPUT_DEPTH * groups))
    return jobs


def _in_rounds(facts: Facts, *, long: bool) -> tuple[int, int]:
    """Return the cycles of a kernel in rounds, the last of which may be short, and as stored."""
    size = LONG_ROUND_U85 if long else ROUND_U85
    least = SHORTEST_LONG_ROUND_U85 if long else SHORTEST_ROUND_U85
    used = 0
    for elements in facts.subkernels:
        whole, rest = divmod(elements, size)
        used += whole * size + (max(rest, least) if rest else 0)
    return used, sum(size * up(e, size) for e in facts.subkernels)


def subkernel_by_formula(
    facts: Facts, elements: int, counts: Ints, part_kernel: bool, accelerator: Accelerator
) -> Cycles:
    """Return the array's cycles for a part of the kernel as Vela's formula has them."""
    least = SLOTS * facts.microblock[2] // accelerator.weight_streams
    plane, deep = counts[:, 0] * counts[:, 1], counts[:, 2]
    wide, channels = facts.input_bits // INPUT_DEPTH, min(slab(facts, part_kernel), facts.channels)
    halved = 2 if facts.sparse else 1
    match facts.kind:
        case Kind.POOL:
            each = max(SLOTS, elements) * (facts.input_bits // 2) * plane
        case Kind.DEPTHWISE:
            each = np.maximum(least, SLOTS * plane * wide) * up(elements, SLOTS)
        case _ if part_kernel:
            steps = up(elements, SLOTS if wide == 1 else SLOTS // 2) * up(channels, INPUT_DEPTH)
            each = np.maximum(least, SLOTS * plane) * steps
        case _:
            each = np.maximum(least, channels // INPUT_DEPTH * plane) * elements * wide
    return (each * deep / halved).astype(np.float64)
