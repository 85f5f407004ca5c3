"""Which sums are a slope below zero: a LEAKY_RELU, of which the machine has an operation.

Its graph takes what is above zero and what is below it apart, scales each, and adds both. Where
what is above keeps its scale, LRELU does the same: it scales only what is below. U85 scales both.

Ref: registers of Ethos-U55, elementwise mode LRELU; TFLite Micro, kernels/leaky_relu.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.graph import Operation, Value
from mizzen.ops.elementwise import Add, Maximum, Minimum
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.generator.lower.finish import number, numbers, rounding_of
from mizzen.targets.ethos_u.generator.operations import Scale
from mizzen.targets.ethos_u.machine.commands_values import RoundMode


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """What is scaled below zero, and by what; and by what it is above, None if it is not."""

    source: Value
    scale: Scale
    rounding: RoundMode
    above: tuple[Scale, RoundMode] | None


def slope_of(operation: Operation) -> Slope | None:
    """Return the slope that a sum is; None if it is another sum."""
    if not isinstance(operation, Add):
        return None
    first, second = operation.operands
    for above, below in ((first, second), (second, first)):
        source = _part(_unscaled(above), Maximum)
        scaled = below.producer
        if source is None or not isinstance(scaled, Rescale) or not _is_plain(scaled):
            continue
        if _part(scaled.input, Minimum) is source:
            return Slope(source, *_scale(scaled), _scale_above(above))
    return None


def _scale(step: Rescale) -> tuple[Scale, RoundMode]:
    return Scale(number(step.multiplier), number(step.shift)), rounding_of(step)


def _scale_above(value: Value) -> tuple[Scale, RoundMode] | None:
    step = value.producer
    if not isinstance(step, Rescale) or number(step.multiplier) == 1 << number(step.shift):
        return None
    return _scale(step)


def _unscaled(value: Value) -> Value:
    """Return what a RESCALE is of; the value itself if none gives it."""
    step = value.producer
    return step.input if isinstance(step, Rescale) and _is_plain(step) else value


def _is_plain(step: Rescale) -> bool:
    """Whether a RESCALE has one scale, and no zero points."""
    return len(numbers(step.multiplier)) == 1 and not (
        number(step.input_zp) or number(step.output_zp)
    )


def _part(value: Value, kind: type[Operation]) -> Value | None:
    """Return what a value is the part of that is above zero, or below."""
    operation = value.producer
    if operation is None or not isinstance(operation, kind):
        return None
    for source, bound in (operation.operands, operation.operands[::-1]):
        if bound.constant is not None and not bound.constant.any():
            return source
    return None
