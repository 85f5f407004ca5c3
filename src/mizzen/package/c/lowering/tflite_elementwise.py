"""TFLite's operators on single elements, of plain numbers and of quantised ones.

Ref: TFLite Micro, kernels/activations_common.cc, hard_swish.cc, leaky_relu.cc and
maximum_minimum.cc; TFLite, reference_ops (order of operands where NaN and -0 tell).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mizzen.package.c.layout import Binary, Unary
from mizzen.package.c.lowering import quantized
from mizzen.package.c.lowering.context import Given, Rule, ref
from mizzen.package.c.lowering.elementwise import TFLITE, convert, emit_binary, emit_select
from mizzen.package.c.lowering.quantized import activation_limits, by_table, either
from mizzen.package.c.lowering.tflite_functions import squashed

FLOAT = np.dtype(np.float32)
LARGEST = float(np.finfo(np.float32).max)


def plain_binary(operation: Binary) -> Rule:
    """Return the rule of an operator on two plain numbers, and what limits its output."""

    def rule(given: Given) -> None:
        a, b = given.present()
        tensors = [given.row(index) for index in (a, b)]
        plain = all(tensor.dtype.kind in "fb" or tensor.dtype.itemsize >= 4 for tensor in tensors)
        given.must(plain, "numbers must be real, integers of 32 bits or more, or quantised")
        given.must(operation is not Binary.FLOOR_DIVIDE or tensors[0].dtype.kind in "iu",
                   "numbers must be integers")  # fmt: skip
        low, high = activation_limits(given)
        if operation is Binary.ADD and tensors[0].dtype.kind in "iu":
            low, high = None, None
        output = given.row(given.output())
        if output.dtype == FLOAT:
            emit_binary(given, operation, a, b, given.output(), _limits(operation, low, high))
            return
        limited = low is not None or high is not None
        target = given.lowering.temporary(output.shape, output.dtype) if limited else given.output()
        emit_binary(given, operation, a, b, target)
        if limited:
            limit(given, target, low, high)

    return rule


def _limits(operation: Binary, low: float | None, high: float | None) -> tuple[float, ...]:
    """Return the limits of a real output: even without an activation function it is finite."""
    if operation not in (Binary.ADD, Binary.SUBTRACT, Binary.MULTIPLY, Binary.DIVIDE):
        return ()
    return (-LARGEST if low is None else low, LARGEST if high is None else high)


def limit(given: Given, source: int, low: float | None, high: float | None) -> None:
    """Write numbers of a tensor to the output, those beyond limits as the limits.

    The limit comes first: of equal numbers, and of NaN, the kernel takes the second.
    """
    output = given.row(given.output())
    steps = [(Binary.MAXIMUM, low), (Binary.MINIMUM, high)]
    kept = [(operation, bound) for operation, bound in steps if bound is not None]
    for place, (operation, bound) in enumerate(kept):
        last = place == len(kept) - 1
        target = given.output() if last else given.lowering.temporary(output.shape, output.dtype)
        emit_binary(given, operation, given.lowering.constant(bound, output.dtype), source, target)
        source = target


def extreme(comparison: Binary, operation: Binary) -> Rule:
    """Return the rule of MINIMUM or MAXIMUM, which are the same of quantised numbers.

    Of reals the second input is chosen where one of them is NaN.
    """

    def rule(given: Given) -> None:
        a, b = given.present()
        output = given.row(given.output())
        if output.dtype.kind != "f":
            scales = {(given.row(i).scales, given.row(i).zero_points) for i in (a, b)}
            same = scales == {(output.scales, output.zero_points)}
            given.must(same, "there must be one scale")
            emit_binary(given, operation, a, b, given.output())
            return
        condition = given.lowering.temporary(output.shape, np.bool_)
        emit_binary(given, comparison, a, b, condition)
        emit_select(given, condition, a, b)

    return rule


def plain_unary(operation: Unary) -> Rule:
    """Return the rule of a function of one real number."""

    def rule(given: Given) -> None:
        given.emit("unary", (int(operation), ref(_real(given))), (given.output(),))

    return rule


def limited(low: float, high: float | None = None) -> Rule:
    """Return the rule of RELU and its like, of real numbers."""

    def rule(given: Given) -> None:
        limit(given, _real(given), low, high)

    return rule


def square(given: Given) -> None:
    """SQUARE of real numbers."""
    source = _real(given)
    emit_binary(given, Binary.MULTIPLY, source, source, given.output())


def leaky(given: Given) -> None:
    """LEAKY_RELU of real numbers."""
    source = _real(given)
    slope = given.lowering.constant(given.real("alpha", 0.0), FLOAT)
    shape = given.row(source).shape
    below, above = given.lowering.temporary(shape, FLOAT), given.lowering.temporary(shape, np.bool_)
    emit_binary(given, Binary.MULTIPLY, source, slope, below)
    emit_binary(given, Binary.GREATER, source, given.lowering.constant(0, FLOAT), above)
    emit_select(given, above, source, below)


def hard_swish(given: Given) -> None:
    """HARD_SWISH of real numbers: x * min(6, max(0, x + 3)) / 6."""
    source = _real(given)
    steps = ((Binary.ADD, 3.0), (Binary.MAXIMUM, 0.0), (Binary.MINIMUM, 6.0))
    gate = _chain(given, source, steps)
    product = given.lowering.temporary(given.row(source).shape, FLOAT)
    emit_binary(given, Binary.MULTIPLY, source, gate, product)
    emit_binary(given, Binary.DIVIDE, product, given.lowering.constant(6.0, FLOAT), given.output())


def _chain(given: Given, source: int, steps: Sequence[tuple[Binary, float]]) -> int:
    for operation, number in steps:
        target = given.lowering.temporary(given.row(source).shape, FLOAT)
        emit_binary(given, operation, source, given.lowering.constant(number, FLOAT), target)
        source = target
    return source


def floor_divided(given: Given) -> None:
    """FLOOR_DIV of real numbers."""
    a, b = given.present()
    output = given.row(given.output())
    given.must(output.dtype == FLOAT, "numbers must be float32")
    quotient = given.lowering.temporary(output.shape, FLOAT)
    emit_binary(given, Binary.DIVIDE, a, b, quotient)
    given.emit("unary", (int(Unary.FLOOR), ref(quotient)), (given.output(),))


def summed(given: Given) -> None:
    """ADD_N of plain numbers: one after the other."""
    first, *rest = given.present()
    output = given.row(given.output())
    given.must(output.dtype == FLOAT and bool(rest), "numbers must be float32, and two or more")
    for place, index in enumerate(rest):
        last = place == len(rest) - 1
        target = given.output() if last else given.lowering.temporary(output.shape, output.dtype)
        emit_binary(given, Binary.ADD, first, index, target)
        first = target


def negated_bool(given: Given) -> None:
    """LOGICAL_NOT."""
    (source,) = given.present()
    given.emit("unary", (int(Unary.BITWISE_NOT), ref(source)), (given.output(),))


def converted(given: Given) -> None:
    """CAST."""
    (source,) = given.present()
    convert(given, source, given.output(), TFLITE)


def chosen(given: Given) -> None:
    """SELECT_V2."""
    emit_select(given, *given.present())


def _real(given: Given) -> int:
    (source,) = given.present()
    given.must(given.row(source).dtype == FLOAT, "numbers must be float32 or quantised")
    return source


SCALED: Mapping[str, tuple[Rule, Binary]] = {
    "ADD": (quantized.added, Binary.ADD),
    "SUB": (quantized.subtracted, Binary.SUBTRACT),
    "MUL": (quantized.multiplied, Binary.MULTIPLY),
    "SQUARED_DIFFERENCE": (quantized.squared_difference, Binary.SQUARED_DIFFERENCE),
    "PRELU": (quantized.sloped, Binary.SLOPE),
    **{
        comparison.name: (quantized.compared(comparison), comparison)
        for comparison in map(Binary, range(Binary.EQUAL, Binary.GREATER_EQUAL + 1))
    },
}
UNARY = {
    "EXP": Unary.EXPONENTIAL,
    "LOG": Unary.LOGARITHM, "ABS": Unary.ABSOLUTE, "NEG": Unary.NEGATE,
    "SQRT": Unary.SQUARE_ROOT, "RSQRT": Unary.INVERSE_SQUARE_ROOT, "FLOOR": Unary.FLOOR,
    "CEIL": Unary.CEILING, "SIN": Unary.SINE, "COS": Unary.COSINE, "ROUND": Unary.ROUND_FROM_FLOOR,
}  # fmt: skip

RULES: Mapping[str, Rule] = {
    f"tflite::{name}": rule
    for name, rule in {
        **{name: either(scaled, plain_binary(plain)) for name, (scaled, plain) in SCALED.items()},
        **{name: either(by_table, plain_unary(function)) for name, function in UNARY.items()},
        "LOGISTIC": either(squashed(tangent=False), plain_unary(Unary.SIGMOID)),
        "TANH": either(squashed(tangent=True), plain_unary(Unary.TANH)),
        "DIV": plain_binary(Binary.DIVIDE),
        "FLOOR_DIV": floor_divided,
        "ADD_N": summed,
        "RELU": either(by_table, limited(0.0)),
        "RELU6": either(by_table, limited(0.0, 6.0)),
        "LEAKY_RELU": either(by_table, leaky),
        "HARD_SWISH": either(by_table, hard_swish),
        "ELU": by_table,
        "SQUARE": square,
        "LOGICAL_AND": plain_binary(Binary.BITWISE_AND),
        "LOGICAL_OR": plain_binary(Binary.BITWISE_OR),
        "LOGICAL_NOT": negated_bool,
        "CAST": converted,
        "SELECT_V2": chosen,
        "MINIMUM": extreme(Binary.LESS, Binary.MINIMUM),
        "MAXIMUM": extreme(Binary.GREATER, Binary.MAXIMUM),
    }.items()
}
