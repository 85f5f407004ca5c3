"""Elementwise operators of two tensors, which broadcast.

Operands of lower rank are given extents of 1 in front: constants as such, others by a RESHAPE.
"""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers, no_shift
from mizzen.frontends.tflite.lowering.requantization import (
    IDENTITY,
    Scale,
    activated,
    centered,
    halves,
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

    16-bit operands are shifted by RESCALE, LOGICAL_LEFT_SHIFT; 32-bit ones are taken as they are.
    """
    if call.output().type is FileType.INT32:
        return call.b(call.operator.kind, *_integers(call))
    _need_tensors(call)
    output = call.quantization(call.output())
    scales = [call.quantization(call.input(index)).scale for index in (0, 1)]
    left, right = (in_rank(call, index) for index in (0, 1))
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
    """x * y: of each operand RESCALE (zero point off); MUL, RESCALE [, CLAMP].

    32-bit operands are taken as they are.
    """
    if call.output().type is FileType.INT32:
        return call.b("MUL", *_integers(call), no_shift(call.b))
    _need_tensors(call)
    output = call.quantization(call.output())
    first, second = (call.quantization(call.input(index)) for index in (0, 1))
    left, right = (in_rank(call, index) for index in (0, 1))
    bound = reach(left.dtype, first.zero_point) * reach(right.dtype, second.zero_point)
    b = call.b
    value = b(
        "MUL",
        centered(b, left, first.zero_point),
        centered(b, right, second.zero_point),
        no_shift(b),
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


@lowers("DIV")
def quotient(call: Call) -> Value:
    """x / y of 32 bits as they are, toward zero: INTDIV. The kernel ends the inference where y is
    0."""
    call.need_types(FileType.INT32)
    return call.b("INTDIV", *_integers(call))


@lowers("MAXIMUM", "MINIMUM")
def extreme(call: Call) -> Value:
    """Greater or lesser of the integers as they are: of each operand RESCALE (to i32, by 1);
    MAXIMUM or MINIMUM, RESCALE (back). 32-bit operands are taken as they are."""
    b = call.b
    if call.output().type is FileType.INT32:
        return b(call.operator.kind, *_integers(call))
    call.need_types(*TYPES, tensors=(call.input(0), call.input(1)))
    left, right = (in_rank(call, index) for index in (0, 1))
    value = b(call.operator.kind, centered(b, left), centered(b, right))
    return rescale(
        b,
        value,
        IDENTITY,
        left.dtype,
        bound=reach(left.dtype, 0),
        quantization=quantization_of(call.output()),
    )


@lowers("SQUARED_DIFFERENCE")
def squared_difference(call: Call) -> Value:
    """(x - y)^2: of each operand RESCALE (zero point off, bytes shifted left by 7 bits), RESCALE
    to twice the greater scale; SUB, MUL of it and itself, RESCALE.

    32-bit operands are taken as they are; unsigned bytes, which no kernel takes, as signed ones.

    Ref: TFLite Micro, kernels/squared_difference.cc.
    """
    b = call.b
    if call.output().type is FileType.INT32:
        apart = b("SUB", *_integers(call))
        return b("MUL", apart, apart, no_shift(b))
    _need_tensors(call)
    output = call.quantization(call.output())
    scales = [call.quantization(call.input(index)).scale for index in (0, 1)]
    operands = [in_rank(call, index) for index in (0, 1)]
    twice, dtype = 2 * max(scales), operands[0].dtype
    bits = SQUARED_BITS[dtype]
    apart = b("SUB", *(
        rescale(
            b,
            shifted(call, value, bits),
            scale_of(scale / twice),
            DType.INT32,
            bound=reach(dtype, _zero_point(value)) << bits,
        )
        for value, scale in zip(operands, scales, strict=True)
    ))  # fmt: skip
    return rescale(
        b,
        b("MUL", apart, apart, no_shift(b)),
        scale_of(twice * twice / ((1 << 2 * bits) * output.scale)),
        dtype,
        bound=(1 << 30) + 1,
        zero_points=(0, output.zero_point),
        quantization=output,
    )


SQUARED_BITS = {DType.INT8: 7, DType.INT16: 0}
"""Bits by which TFLite shifts operands of a squared difference left before it scales them."""


def shifted(call: Call, value: Value, bits: int) -> Value:
    """Take the zero point off and shift left."""
    zero_point = _zero_point(value)
    scale = Scale(np.array([1 << 30]), np.array([30 - bits]))
    bound, zeros = reach(value.dtype, zero_point), (zero_point, 0)
    return rescale(call.b, value, scale, DType.INT32, bound=bound, zero_points=zeros)


@lowers("PRELU")
def sloped(call: Call) -> Value:
    """x, or alpha * x where x < 0: RESCALE of x and alpha (zero points off); MAXIMUM of x and 0,
    RESCALE; MINIMUM of x and 0, MUL with alpha, RESCALE; ADD, since one of both is 0; RESCALE
    (zero point on)."""
    call.need_types(FileType.INT8)
    call.need(call.input(1).type is FileType.INT8, "its slopes are not INT8")
    output = call.quantization(call.output())
    x, slope = (call.quantization(call.input(index)) for index in (0, 1))
    b = call.b
    left, right = (in_rank(call, index) for index in (0, 1))
    most = reach(left.dtype, x.zero_point)
    plain, slopes = centered(b, left, x.zero_point), centered(b, right, slope.zero_point)
    above, below = halves(b, plain)
    falling = rescale(
        b,
        b("MUL", below, slopes, no_shift(b)),
        scale_of(x.scale * slope.scale / output.scale),
        DType.INT32,
        bound=most * reach(right.dtype, slope.zero_point) + 1,
    )
    rising = rescale(b, above, scale_of(x.scale / output.scale), DType.INT32, bound=most)
    return rescale(
        b,
        b("ADD", rising, falling),
        IDENTITY,
        left.dtype,
        bound=0,
        zero_points=(0, output.zero_point),
        quantization=output,
    )


def _integers(call: Call) -> tuple[Value, Value]:
    """Return operands of 32 bits, which kernels compute with as they are, whatever their scales."""
    call.need_types(FileType.INT32, tensors=(call.input(0), call.input(1)))
    call.need(not call.option("fused_activation_function"), "it has a fused activation")
    return in_rank(call, 0), in_rank(call, 1)


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


def in_rank(call: Call, index: int) -> Value:
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
