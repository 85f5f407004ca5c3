"""Sums, means and extremes along axes."""

from __future__ import annotations

from math import prod

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers, lowers_with_state
from mizzen.frontends.tflite.lowering.requantization import (
    FRACTION_BITS,
    Scale,
    centered,
    checked,
    multiplier_of,
    reach,
    rescale,
)
from mizzen.graph import DType, Value

MOST_SHIFTED = 32
"""Bits by which TFLite shifts a multiplier at most before it divides it."""


@lowers("MEAN", "SUM")
def total(call: Call) -> Value:
    """RESCALE (zero point off), REDUCE_SUM along each axis, RESCALE, RESHAPE.

    A mean's multiplier is that of the scales divided by the number of elements. 32-bit elements are
    summed as they are.
    """
    if call.output().type is FileType.INT32:
        return _plain_sum(call)
    call.need_types(FileType.INT8, FileType.INT16, FileType.UINT8)
    before, after = call.quantization(call.input(0)), call.quantization(call.output())
    value, axes = call.value(), _axes(call)
    count = prod(value.shape[axis] for axis in axes)
    call.need(count > 0, "it has no elements")
    dtype, bound = value.dtype, count * reach(value.dtype, before.zero_point)
    scale = _scale(before.scale / after.scale, 1 if call.operator.kind == "SUM" else count)
    value = centered(call.b, value, before.zero_point)
    for axis in axes:
        value = call.b("REDUCE_SUM", value, axis=axis)
    value = rescale(
        call.b,
        value,
        scale,
        dtype,
        bound=bound,
        zero_points=(0, after.zero_point),
        quantization=after,
    )
    return call.b("RESHAPE", value, call.b.shape(call.output().shape))


def _plain_sum(call: Call) -> Value:
    call.need(call.operator.kind == "SUM", "its mean of 32 bits is a kernel's of its own")
    call.need_types(FileType.INT32)
    value = call.value()
    for axis in _axes(call):
        value = call.b("REDUCE_SUM", value, axis=axis)
    return call.b("RESHAPE", value, call.b.shape(call.output().shape))


def _scale(ratio: float, count: int) -> Scale:
    """Return a scale divided by a number, as TFLite does: the multiplier, in its upper bits."""
    multipliers, exponents = multiplier_of(ratio)
    exponent = int(exponents[0])
    bits = min(count.bit_length() - 1, MOST_SHIFTED, FRACTION_BITS + exponent)
    return checked(Scale((multipliers << bits) // count, FRACTION_BITS - (exponents - bits)))


@lowers("REDUCE_MAX", "REDUCE_MIN")
def extreme(call: Call) -> Value:
    """Greatest or least of the integers as they are: REDUCE_MAX or REDUCE_MIN along each axis,
    RESHAPE."""
    call.need_types(FileType.INT8, FileType.INT16, FileType.UINT8, FileType.INT32)
    same = call.input(0).quantization == call.output().quantization
    call.need(same, "its output has another quantisation than its input")
    value = call.value()
    for axis in _axes(call):
        value = call.b(call.operator.kind, value, axis=axis, quantization=kept(value))
    return call.b("RESHAPE", value, call.b.shape(call.output().shape))


@lowers("ARG_MAX")
def place_of_greatest(call: Call) -> Value:
    """Where the first of the greatest is along an axis: ARGMAX, RESHAPE."""
    call.need(call.output().type is FileType.INT32, "its places are not INT32")
    return _place(call)


@lowers_with_state("ARG_MAX")
def wide_place_of_greatest(call: Call) -> Value:
    """The same; INT64 by a CUSTOM operation behind it, since TOSA does not convert to it."""
    value = _place(call)
    if call.output().type is FileType.INT32:
        return value
    call.need(call.output().type is FileType.INT64, "its places are not INT32 or INT64")
    return call.part("CAST", value, {"dtype": "i64"}, DType.INT64)


def _place(call: Call) -> Value:
    types = FileType.INT8, FileType.INT16, FileType.UINT8
    call.need(call.input(0).type in types, f"its input is {call.input(0).type.name}")
    axis = call.axis(call.integer(1), len(call.input(0).shape))
    value = call.b("ARGMAX", call.value(), axis=axis)
    return call.b("RESHAPE", value, call.b.shape(call.output().shape))


def _axes(call: Call) -> list[int]:
    rank = len(call.input(0).shape)
    return sorted({call.axis(axis, rank) for axis in call.integers(1)})
