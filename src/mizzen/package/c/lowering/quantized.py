"""TFLite's operators on quantised elements: two of them in fixed point, one by a table.

Ref: TFLite, quantization_util.cc and kernel_util.cc (multipliers, limits of activations); TFLite
Micro, kernels/add_common.cc, sub_common.cc, mul_common.cc, squared_difference.cc, comparisons.cc
and prelu_common.cc (which factors each operator has, and in which precision they are computed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mizzen.package.c.layout import Binary
from mizzen.package.c.lowering.context import Given, Rule, ref
from mizzen.package.c.lowering.reduction import quantized_multiplier
from mizzen.package.c.lowering.strides import broadcast_shape, broadcast_strides, folded
from mizzen.package.device import DeviceTensor

SUM_SHIFT = {np.dtype(np.int8): 20, np.dtype(np.int16): 15}
"""Bits that both inputs of a sum are shifted to the left."""
SQUARE_SHIFT = {np.dtype(np.int8): 7, np.dtype(np.int16): 0}
COMPARISON_SHIFT = 8

NONE, RELU, RELU_N1_TO_1, RELU6 = range(4)
LIMITS: Mapping[int, tuple[float | None, float | None]] = {
    NONE: (None, None),
    RELU: (0.0, None),
    RELU_N1_TO_1: (-1.0, 1.0),
    RELU6: (0.0, 6.0),
}
"""What fused activation functions limit an output to, by their number in the schema."""

Factor = tuple[int, int]
UNUSED: Factor = (0, 0)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Factors of a call of `binary_scaled`, each a multiplier and a shift."""

    inputs: tuple[Factor, Factor]
    output: Factor
    left: int = 0


def activation_limits(given: Given) -> tuple[float | None, float | None]:
    """Return the least and the greatest output of the call's fused activation function."""
    function = given.whole("fused_activation_function", NONE)
    given.must(function in LIMITS, "the fused activation function must be one of the RELU kind")
    return LIMITS[function]


def quantized_limits(given: Given, output: DeviceTensor) -> tuple[int, int]:
    """Return the limits of the fused activation function as numbers of a quantised output."""
    limits = np.iinfo(output.dtype)
    low, high = activation_limits(given)
    scale, point = np.float32(output.scales[0]), output.zero_points[0]
    least = limits.min if low is None else max(limits.min, _quantized(low, scale, point))
    most = limits.max if high is None else min(limits.max, _quantized(high, scale, point))
    return int(least), int(most)


def _quantized(value: float, scale: np.float32, point: int) -> int:
    quotient = float(np.float32(value) / scale)
    return point + int(np.floor(abs(quotient) + 0.5) * np.sign(quotient))


def scale_of(given: Given, index: int) -> np.float32:
    """Return the one scale that a tensor must have."""
    tensor = given.row(index)
    given.must(len(tensor.scales) == 1, f"{tensor.name!r} must have one scale")
    return np.float32(tensor.scales[0])


def added(given: Given) -> None:
    """ADD: factors are computed in float64."""
    _summed(given, Binary.ADD)


def subtracted(given: Given) -> None:
    """SUB: factors are computed in float64."""
    _summed(given, Binary.SUBTRACT)


def _summed(given: Given, operation: Binary) -> None:
    a, b, output = _scales(given)
    twice = 2 * max(a, b)
    left = _shift(given, SUM_SHIFT)
    inputs = (quantized_multiplier(a / twice), quantized_multiplier(b / twice))
    result = quantized_multiplier(twice / ((1 << left) * output))
    _emit(given, operation, Scaling(inputs, result, left))


def multiplied(given: Given) -> None:
    """MUL: the product is scaled."""
    a, b, output = _scales(given)
    result = quantized_multiplier(a * b / output)
    _emit(given, Binary.MULTIPLY, Scaling((UNUSED, UNUSED), result))


def squared_difference(given: Given) -> None:
    """SQUARED_DIFFERENCE: the square of what both inputs are in one scale."""
    a, b, output = _scales(given)
    twice = 2 * max(a, b)
    left = _shift(given, SQUARE_SHIFT)
    inputs = (quantized_multiplier(a / twice), quantized_multiplier(b / twice))
    unit = float(np.float32(1 << 2 * left) * np.float32(output))
    _emit(given, Binary.SQUARED_DIFFERENCE,
          Scaling(inputs, quantized_multiplier(twice * twice / unit), left))  # fmt: skip


def sloped(given: Given) -> None:
    """PRELU: elements below 0 times a number of the second input."""
    a, b, output = _scales(given)
    inputs = (quantized_multiplier(a / output), UNUSED)
    _emit(given, Binary.SLOPE, Scaling(inputs, quantized_multiplier(a * b / output)))


def compared(operation: Binary) -> Rule:
    """Return the rule of a comparison of quantised numbers."""

    def rule(given: Given) -> None:
        a, b = (float(scale_of(given, index)) for index in given.present())
        given.must(max(a, b) < 1, "scales must be less than 1")
        inputs = (quantized_multiplier(a), quantized_multiplier(b))
        _emit(given, operation, Scaling(inputs, UNUSED, COMPARISON_SHIFT))

    return rule


def is_quantized(given: Given) -> bool:
    """Whether the first input has a scale, and its elements 8 or 16 bits."""
    first = given.tensors()[0]
    tensor = None if first is None else given.row(first)
    return tensor is not None and tensor.dtype.kind in "iu" and tensor.dtype.itemsize <= 2


def _scales(given: Given) -> tuple[float, float, float]:
    a, b = given.present()
    one, other, output = (float(scale_of(given, index)) for index in (a, b, given.output()))
    return one, other, output


def _shift(given: Given, shifts: Mapping[np.dtype[np.signedinteger], int]) -> int:
    shift = shifts.get(given.row(given.output()).dtype)
    given.must(shift is not None, "numbers must be int8 or int16")
    return shift or 0


def _emit(given: Given, operation: Binary, scaling: Scaling) -> None:
    a, b = given.present()
    tensors = [given.row(index) for index in (a, b)]
    output = given.row(given.output())
    given.must({tensor.dtype.name for tensor in (*tensors, output)} <= {"int8", "int16", "bool"},
               "numbers must be int8 or int16")  # fmt: skip
    point, limits = 0, (0, 1)
    if output.dtype != np.bool_:
        point, limits = output.zero_points[0], quantized_limits(given, output)
    numbers = (
        tensors[0].zero_points[0], *scaling.inputs[0], tensors[1].zero_points[0],
        *scaling.inputs[1],
        scaling.left, *scaling.output, point, *limits,
    )  # fmt: skip
    shape = broadcast_shape(tensors[0].shape, tensors[1].shape)
    extents, *strides = folded(
        shape, *(broadcast_strides(tensor.shape, shape) for tensor in tensors)
    )
    arguments = (int(operation), ref(a), ref(b), extents, *strides, numbers)
    given.emit("binary_scaled", arguments, (given.output(),))


def by_table(given: Given) -> None:
    """Look every element up: the table is what the host's kernel gives for each number."""
    (source,) = given.present()
    tensor, output = given.row(source), given.row(given.output())
    given.must(len(tensor.scales) <= 1, "the input must have one scale")
    entries = given.lowering.tabulate(given.call, tensor, output)
    # The table is read by an element's bits without a sign: those below 0 come last.
    table = given.lowering.constant(np.roll(entries, entries.size // 2), output.dtype)
    given.emit("table", (ref(source), ref(table)), (given.output(),))


def either(quantized: Rule, plain: Rule) -> Rule:
    """Return a rule of quantised numbers, and another of plain ones."""

    def rule(given: Given) -> None:
        (quantized if is_quantized(given) else plain)(given)

    return rule
