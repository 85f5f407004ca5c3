"""Sums, extremes and magnitudes on U85, which scales each operand in full before it combines them.

So no power of two must be among the scales, and a slope may have a scale above zero too.

Ref: registers of Ethos-U85, IFM_SCALE, IFM2_SCALE.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mizzen.graph import DType, Value, integer_range
from mizzen.ops.elementwise import Abs, Add, Maximum, Minimum, Mul, Negate, Sub
from mizzen.targets.ethos_u.generator.lower.carrying import ONE
from mizzen.targets.ethos_u.generator.lower.context import Node
from mizzen.targets.ethos_u.generator.lower.elementwise import (
    FINEST_SHIFT,
    KINDS,
    LEFT_SHIFT,
    Operand,
    Plan,
    operand_of,
    planned,
    whole,
)
from mizzen.targets.ethos_u.generator.lower.finish import number
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.slopes import Slope, slope_of
from mizzen.targets.ethos_u.generator.operations import OperandScale
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, RoundMode

MOST_MULTIPLIER = (1 << 31) - 1
MOST_LEFT = 31
"""A multiplier has 31 bits, what says where it rounds first 5."""

ALONE = 31
"""Shifts up to this round once, in either mode."""


def operand_scale(operand: Operand) -> OperandScale | None:
    """Return how U85 scales an operand; None where it is not scaled. Refused where it cannot."""
    multiplier, shift = operand.multiplier, operand.shift - operand.raised
    twice = operand.rounding is RoundMode.DBL and operand.shift > ALONE
    if operand.power is not None:
        multiplier, shift, twice = 1, -operand.power, False
    if shift < 0:
        multiplier, shift = multiplier << -shift, 0
    fits = 0 <= multiplier <= MOST_MULTIPLIER and shift <= FINEST_SHIFT
    need(fits and operand.raised <= MOST_LEFT, "an operand's scale has too many bits")
    if (multiplier, shift) == (1, 0):
        return None
    if twice:
        return OperandScale(multiplier, shift, RoundMode.DBL, operand.raised)
    return OperandScale(multiplier, shift, RoundMode.NATURAL)


def operands_of(*values: Value) -> tuple[Operand, ...]:
    """Return values as operands that are read as they lie; as 32 bits where their types differ.

    Numbers of 32 bits are of the other operand's type where that holds them.
    """
    found = tuple(operand_of(value) for value in values)
    types = [row.dtype for row in found if row.values is None]
    if len(types) == 1 and types[0] in LEFT_SHIFT:
        found = tuple(_narrowed(row, types[0]) for row in found)
    alike = all(row.dtype is found[0].dtype for row in found) and found[0].dtype in LEFT_SHIFT
    return found if alike else tuple(whole(value) for value in values)


def _narrowed(operand: Operand, dtype: DType) -> Operand:
    values = operand.values
    if values is None or operand.dtype is not DType.INT32 or not values.size:
        return operand
    low, high = integer_range(dtype)
    fits = low <= int(values.min()) and int(values.max()) <= high
    return replace(operand, narrow=dtype) if fits else operand


@rule_u85(Mul)
def product(site: Site) -> Node:
    """MUL of narrow integers, and of them and numbers that are as narrow."""
    operation = site.operation
    assert isinstance(operation, Mul)
    need(not number(operation.shift), "its product is shifted")
    operands = operands_of(*operation.operands[:2])
    need(all(row.dtype in LEFT_SHIFT and row.power == 0 for row in operands), "it is of 32 bits")
    finish = site.finish(scales=True)
    return planned(site, Plan(ElementwiseMode.MUL, operands, finish, finish.scale, finish.rounding))


@rule_u85(Add, Sub)
def total(site: Site) -> Node:
    """ADD or SUB of narrow integers; an ADD that is a slope below zero is LRELU."""
    finish = site.finish(scales=True)
    slope = slope_of(site.operation)
    if slope is not None and finish.is_identity and finish.dtype in LEFT_SHIFT:
        operand = operand_of(slope.source)
        if operand.dtype in LEFT_SHIFT and operand.power == 0:
            return _sloped(site, slope, operand)
    return _scaled(site, operands_of(*site.operation.operands))


def _sloped(site: Site, slope: Slope, operand: Operand) -> Node:
    above = None
    if slope.above is not None:
        scale, rounding = slope.above
        above = OperandScale(scale.multiplier, scale.shift, rounding)
    below = OperandScale(slope.scale.multiplier, slope.scale.shift, slope.rounding)
    plan = Plan(
        ElementwiseMode.LRELU,
        (operand,),
        site.finish(scales=True),
        ONE,
        RoundMode.NATURAL,
        operand_scales=(above, below),
    )
    return planned(site, plan)


@rule_u85(Maximum, Minimum, Abs)
def compared(site: Site) -> Node:
    """MAXIMUM, MINIMUM or ABS of narrow integers, scaled before and after."""
    operands = operands_of(*site.operation.operands[: 1 if isinstance(site.operation, Abs) else 2])
    need(operands[0].dtype in LEFT_SHIFT or not site.steps, "its 32-bit result is scaled")
    return _scaled(site, operands)


def _scaled(site: Site, operands: tuple[Operand, ...]) -> Node:
    finish = site.finish(scales=True)
    scales = [operand_scale(row) for row in operands]
    first, second = (*scales, None)[:2]
    plan = Plan(
        KINDS[type(site.operation)],
        operands,
        finish,
        finish.scale,
        finish.rounding,
        operand_scales=(first, second),
    )
    return planned(site, plan)


@rule_u85(Negate)
def negated(site: Site) -> Node:
    """NEGATE of 32 bits: nothing less the value."""
    value, zero, made = site.operation.operands
    need(value.dtype is DType.INT32, "it negates no 32 bits")
    need(not (number(zero) or number(made) or site.steps), "its 32 bits have a zero point")
    nothing = Operand(value, (1,) * value.type.rank, values=np.zeros(1, np.int32))
    finish = site.finish(scales=True)
    plan = Plan(
        ElementwiseMode.SUB,
        (nothing, whole(value)),
        finish,
        ONE,
        RoundMode.NATURAL,
        operand_scales=(None, None),
    )
    return planned(site, plan)
