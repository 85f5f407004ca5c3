"""How fast the output unit and the array are with an operation, from the tables of rates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import Shape
from mizzen.targets.ethos_u.generator.schedule.blocks import slab, up
from mizzen.targets.ethos_u.generator.schedule.cost.array_u85 import output_rate_u85
from mizzen.targets.ethos_u.generator.schedule.facts import (
    EVERY_CHANNEL,
    UNARY,
    Facts,
    Function,
    Kind,
)
from mizzen.targets.ethos_u.judge.timing.rates import (
    DELAYS,
    INPUT_DEPTH,
    LONGEST_PIPELINE,
    OUTPUT_RATES,
    ROW_MICROBLOCK,
    SLOTS,
)
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import AccFormat
from mizzen.targets.ethos_u.machine.config import Accelerator

Cycles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

POOL_SLOTS = 4
"""Least kernel elements that pooling takes the time of."""
NARROWEST_ARRAY_MACS = 32
"""An array so small pools one element a cycle."""
UNARY_NAMES = {mode.name for mode in UNARY}


def output_rate(facts: Facts, accelerator: Accelerator, *, simple: bool) -> float:
    """Return the output unit's cycles for an element.

    simple  whether an addition whose operands are both scaled in 16 bits is as fast as it is
    """
    if accelerator.arch is Arch.U85:
        return output_rate_u85(facts, accelerator)
    rates = OUTPUT_RATES[accelerator.macs_per_core]
    least = {Function.TABLE: rates.table, Function.RELU: rates.relu}.get(facts.function, 0.0)
    match facts.kind, facts.mode:
        case Kind.ELEMENTWISE, mode if facts.input_bits == 32:
            rate = rates.word_unary if mode in UNARY_NAMES else rates.word_binary
        case Kind.ELEMENTWISE, "MUL":
            rate = rates.multiply_to_word if facts.output_bits == 32 else rates.multiply
        case Kind.ELEMENTWISE, "ADD" | "SUB":
            rate = rates.add_simple if simple and facts.simple else rates.add
        case Kind.POOL, "MAX":
            rate = rates.maximum
        case _:
            rate = rates.multiply if facts.accumulators is AccFormat.I40 else rates.other
    return max(rate, least) / accelerator.cores


def unit_of(facts: Facts, accelerator: Accelerator) -> Shape:
    """Return the microblock, or the long one that outputs of one row are done in."""
    unit = facts.microblock
    narrow = accelerator.arch is not Arch.U85
    flat = (
        narrow
        and facts.kind is Kind.CONVOLUTION
        and facts.shape[0] == 1
        and facts.shape[1] % 2 == 0
    )
    return ROW_MICROBLOCK if flat and unit[0] == 2 and facts.kernel[0] == 1 else unit


def pause_cycles(facts: Facts, accelerator: Accelerator) -> int:
    """Return what accumulators need before they take the next product."""
    delay = DELAYS.get(accelerator.macs_per_core, LONGEST_PIPELINE)
    return delay.wide if facts.accumulators is AccFormat.I40 else delay.word


def steps_of(facts: Facts, part_kernel: bool) -> int:
    """Return how often the array goes over a block, all jobs together."""
    if facts.kind is Kind.DEPTHWISE:
        return sum(up(e, SLOTS) for e in facts.subkernels)
    whole, rest = divmod(facts.channels, slab(facts, part_kernel))
    slabs = whole + bool(rest)
    if not part_kernel:
        return slabs * sum(facts.subkernels)
    groups = whole * up(slab(facts, part_kernel), INPUT_DEPTH) + up(rest, INPUT_DEPTH)
    at_once = SLOTS if facts.input_bits == INPUT_DEPTH else SLOTS // 2
    return groups * sum(up(e, at_once) for e in facts.subkernels)


def jobs_of(facts: Facts, part_kernel: bool) -> int:
    """Return how many jobs a block is done in: slabs of input channels, parts of the kernel."""
    slabs = up(facts.channels, slab(facts, part_kernel)) if facts.kind in EVERY_CHANNEL else 1
    return slabs * len(facts.subkernels)
