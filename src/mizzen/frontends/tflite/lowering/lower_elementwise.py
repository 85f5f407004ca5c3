"""Elementwise operators of two tensors, which broadcast.

Operands of lower rank are given extents of 1 in front: constants as such, others by a RESHAPE.
"""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers
from mizzen.frontends.tflite.lowering.requantization import (
    IDENTITY,
    Scale,
    activated,
    centered,
    reach,
    rescale,
    scale_of,
)
from mizzen.frontends.tflite.tflite_tensors import quantization_of
from mizzen.graph import DType, Value

TYPES = (FileType.INT8, FileType.UINT8, FileType.INT16)

HEADROOM_BITS = {DType.INT8: 20, DType.INT16: 15}
"""Bits by which TFLite shifts operands of a sum left before it scales them."""

HEADROOM = Scale(np.array([1 << 30]), np.array([10]))
"""Shifts 8-bit operands left by 20 bits."""


@lowers("ADD", "SUB")
def total(call: Call) -> Value:
    """x + y or x - y: of each operand RESCALE (zero point off, shifted left), RESCALE to twice the
    greater scale; then ADD or SUB, RESCALE [, CLAMP].

    16-bit operands are shifted by RESCALE, LOGICAL_LEFT_SHIFT.
    """
    _need_tensors(call)
    output = call.quantization(call.output())
    scales = [call.quantization(call.input(index)).scale for index in (0, 1)]
    left, right = (_operand(call, index) for index in (0, 1))
    bits = HEADROOM_BITS[left.dtype]
    twice = 2 * max(scales)
    x, y = (
        rescale(
            call.b,
            _raised(call, value, bits),
            scale_of(scale / twice),
            DType.INT32,
            bound=reach(value.dtype, _zero_point(value)) << bits,
        )
        for value, scale in zip((left, right), scales, strict=True)
    )
    value = rescale(
        call.b,
        call.b(call.operator.kind, x, y),
        scale_of(twice / ((1 << bits) * output.scale)),
        left.dtype,
        bound=1 << 30,
        zero_points=(0, output.zero_point),
        quantization=output,
    )
    return activated(call, value, output)


@lowers("MUL")
def product(call: Call) -> Value:
    """x * y: of each operand RESCALE (zero point off); MUL, RESCALE [, CLAMP]."""
    _need_tensors(call)
    output = call.quantization(call.output())
    first, second = (call.quantization(call.input(index)) for index in (0, 1))
    left, right = (_operand(call, index) for index in (0, 1))
    bound = reach(left.dtype, first.zero_point) * reach(right.dtype, second.zero_point)
    b = call.b
    value = b(
        "MUL",
        centered(b, left, first.zero_point),
        centered(b, right, second.zero_point),
        b.constant([0], DType.INT8),
    )
    value = rescale(
        b,
        value,
        scale_of(_product_scale(call, first.scale, second.scale, output.scale)),
        left.dtype,
        bound=bound + 1,
        zero_points=(0, output.zero_point),
        quantization=output,
    )
    return activated(call, value, output)


@lowers("MAXIMUM", "MINIMUM")
def extreme(call: Call) -> Value:
    """Greater or lesser of the integers as they are: of each operand RESCALE (to i32, by 1);
    MAXIMUM or MINIMUM, RESCALE (back)."""
    call.need_types(*TYPES, tensors=(call.input(0), call.input(1)))
    left, right = (_operand(call, index) for index in (0, 1))
    b = call.b
    value = b(call.operator.kind, centered(b, left), centered(b, right))
    return rescale(
        b,
        value,
        IDENTITY,
        left.dtype,
        bound=reach(left.dtype, 0),
        quantization=quantization_of(call.output()),
    )


@lowers("PRELU")
def sloped(call: Call) -> Value:
    """x, or alpha * x where x < 0: RESCALE of x and alpha (zero points off), MUL; RESCALE of x
    and of the product; GREATER_EQUAL of x and 0 chooses in SELECT; RESCALE (zero point on)."""
    call.need_types(FileType.INT8)
    call.need(call.input(1).type is FileType.INT8, "its slopes are not INT8")
    output = call.quantization(call.output())
    x, slope = (call.quantization(call.input(index)) for index in (0, 1))
    b = call.b
    left, right = (_operand(call, index) for index in (0, 1))
    most = reach(left.dtype, x.zero_point)
    plain, slopes = centered(b, left, x.zero_point), centered(b, right, slope.zero_point)
    falling = rescale(
        b,
        b("MUL", plain, slopes, b.constant([0], DType.INT8)),
        scale_of(x.scale * slope.scale / output.scale),
        DType.INT32,
        bound=most * reach(right.dtype, slope.zero_point) + 1,
    )
    rising = rescale(b, plain, scale_of(x.scale / output.scale), DType.INT32, bound=most)
    nothing = b.constant(np.zeros((1,) * plain.type.rank, np.int32), DType.INT32)
    value = b("SELECT", b("GREATER_EQUAL", plain, nothing), rising, falling)
    return rescale(
        b,
        value,
        IDENTITY,
        left.dtype,
        bound=0,
        zero_points=(0, output.zero_point),
        quantization=output,
    )


def _product_scale(call: Call, first: float, second: float, output: float) -> float:
    """Return first * second / output in float64, as TFLite Micro does, or in float32, as LiteRT."""
    wide = np.float32 if call.output().type is FileType.UINT8 else np.float64
    return float(wide(first) * wide(second) / wide(output))


def _need_tensors(call: Call) -> None:
    tensors = (call.input(0), call.input(1), call.output())
    call.need_types(*TYPES, tensors=tensors)
    if call.output().type is FileType.INT16:
        plain = all(not call.quantization(tensor).zero_point for tensor in tensors)
        call.need(plain, "its 16-bit tensors have zero points")


def _operand(call: Call, index: int) -> Value:
    """Return an input in the output's rank."""
    tensor, rank = call.input(index), len(call.output().shape)
    shape = (*(1,) * (rank - len(tensor.shape)), *tensor.shape)
    if shape == tensor.shape:
        return call.value(index)
    if tensor.data is not None:
        return call.constant(index, shape, quantization_of(tensor))
    value = call.value(index)
    return call.b("RESHAPE", value, call.b.shape(shape), quantization=kept(value))


def _zero_point(value: Value) -> int:
    quantization = value.quantization
    assert quantization is not None
    return quantization.zero_point


def _raised(call: Call, value: Value, bits: int) -> Value:
    """Take the zero point off and shift left."""
    b, zero_point = call.b, _zero_point(value)
    if value.dtype is DType.INT16:
        wide = centered(b, value, zero_point)
        amount = b.constant(np.full((1,) * wide.type.rank, bits), DType.INT32)
        return b("LOGICAL_LEFT_SHIFT", wide, amount)
    return rescale(
        b,
        value,
        HEADROOM,
        DType.INT32,
        bound=reach(value.dtype, zero_point),
        zero_points=(zero_point, 0),
    )
