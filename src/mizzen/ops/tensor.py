"""Tensor operators. Ref: TOSA 1.0, 2.3."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, DType, Value
from mizzen.ops.definition import (
    IN_OUT,
    OUT,
    Attribute,
    RuleError,
    Shape,
    TosaOperation,
    axis_of,
    constant,
    integers,
    nan_mode,
    ranked,
    same,
    table,
    tensor,
)

CONVOLUTION = table(
    "in_t weight_t out_t @acc_type",
    """
    PRO-INT   i8   i8   i32 i32
    EXT-INT4  i8   i4   i32 i32
    EXT-INT16 i16  i8   i48 i48
    PRO-FP    f16  f16  f16 f32
    PRO-FP    f16  f16  f16 f16
    EXT-BF16  bf16 bf16 bf16 f32
    PRO-FP    f32  f32  f32 f32
    """,
)
ARGMAX = table(
    "in_t out_t",
    """
    PRO-INT   i8   i32
    EXT-INT16 i16  i32
    PRO-FP    f16  i32
    EXT-BF16  bf16 i32
    PRO-FP    f32  i32
    """,
)
AVERAGES = table(
    "in_out_t @acc_type",
    """
    PRO-INT   i8   i32
    EXT-INT16 i16  i32
    PRO-FP    f16  f32
    PRO-FP    f16  f16
    EXT-BF16  bf16 f32
    PRO-FP    f32  f32
    """,
)
MAXIMA = table("in_out_t", "PRO-INT i8\n EXT-INT16 i16\n PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
MATMUL = table(
    "in_t out_t",
    """
    PRO-INT   i8   i32
    EXT-INT16 i16  i48
    PRO-FP    f16  f16
    PRO-FP    f16  f32
    EXT-BF16  bf16 f32
    PRO-FP    f32  f32
    """,
)
FFT = table("in_out_t", "EXT-FFT f32")
COMPLEX = (("output_real", "in_out_t"), ("output_imag", "in_out_t"))


def argmax(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape without the axis."""
    axis = axis_of(operands, attributes)
    shape = operands[0].type.shape
    return (shape[:axis] + shape[axis + 1 :],)


def conv2d(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,IH,IW,IC], weight [OC,KH,KW,IC] -> [N,OH,OW,OC]."""
    (n, *space, ic), (oc, *kernel, wic) = operands[0].type.shape, operands[1].type.shape
    _channels(ic, wic)
    _bias(operands[2], oc)
    return ((n, *_windows(space, kernel, attributes), oc),)


def depthwise_conv2d(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,IH,IW,C], weight [KH,KW,C,M] -> [N,OH,OW,C*M]."""
    (n, *space, c), (*kernel, wc, m) = operands[0].type.shape, operands[1].type.shape
    _channels(c, wc)
    _bias(operands[2], c * m)
    return ((n, *_windows(space, kernel, attributes), c * m),)


def transpose_conv2d(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,IH,IW,IC], weight [OC,KH,KW,IC] -> [N,OH,OW,OC]."""
    (n, *space, ic), (oc, *kernel, wic) = operands[0].type.shape, operands[1].type.shape
    _channels(ic, wic)
    _bias(operands[2], oc)
    stride, pad = attributes["stride"], attributes["out_pad"]
    _at_least(1, "stride", stride)
    sizes: list[int] = []
    for index, (size, reach) in enumerate(zip(space, kernel, strict=True)):
        before, after = pad[2 * index : 2 * index + 2]
        if before <= -reach or after <= -reach:
            raise RuleError(f"out_pad must be more than minus the kernel, and is {pad}")
        sizes.append((size - 1) * stride[index] + before + after + reach)
    if min(sizes) < 1:
        raise RuleError(f"out_pad must leave rows and columns, and {pad} leaves {sizes}")
    return ((n, *sizes, oc),)


def pool2d(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,IH,IW,C] -> [N,OH,OW,C]."""
    n, *space, c = operands[0].type.shape
    kernel, pad = attributes["kernel"], attributes["pad"]
    _at_least(1, "kernel", kernel)
    if any(amount >= kernel[index // 2] for index, amount in enumerate(pad)):
        raise RuleError(f"pad must be less than the kernel {kernel}, and is {pad}")
    return ((n, *_windows(space, kernel, attributes), c),)


def matmul(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,H,C], [N,C,W] -> [N,H,W]."""
    (n, h, c), (bn, bc, w) = operands[0].type.shape, operands[1].type.shape
    if (n, c) != (bn, bc):
        shapes = f"{operands[0].type.shape} and {operands[1].type.shape}"
        raise RuleError(f"operands must be [N,H,C] and [N,C,W], and are {shapes}")
    return ((n, h, w),)


def fft2d(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,H,W], [N,H,W] -> both the same."""
    (shape,) = same(operands, attributes)
    _powers_of_two(shape)
    if operands[1].type.shape != shape:
        raise RuleError(f"operands must have one shape, not {shape}, {operands[1].type.shape}")
    return shape, shape


def rfft2d(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,H,W] -> [N,H,W/2+1], twice."""
    n, h, w = operands[0].type.shape
    _powers_of_two((n, h, w))
    return (n, h, w // 2 + 1), (n, h, w // 2 + 1)


def _windows(space: Sequence[int], kernel: Sequence[int], attributes: Attributes) -> list[int]:
    """Return the number of positions that a kernel has along each dimension."""
    stride, pad = attributes["stride"], attributes["pad"]
    dilation = attributes.get("dilation") or (1,) * len(space)
    _at_least(1, "stride", stride)
    _at_least(1, "dilation", dilation)
    _at_least(0, "pad", pad)
    sizes: list[int] = []
    for index, (size, reach) in enumerate(zip(space, kernel, strict=True)):
        padded = size + pad[2 * index] + pad[2 * index + 1]
        room = padded - 1 - (reach - 1) * dilation[index]
        step = stride[index]
        if room < 0 or room % step:
            raise RuleError(
                f"padded size - 1 - (kernel - 1) * dilation must be a multiple of the stride, and "
                f"is {padded} - 1 - {reach - 1} * {dilation[index]} for stride {step}"
            )
        sizes.append(room // step + 1)
    return sizes


def _at_least(least: int, name: str, values: Sequence[int]) -> None:
    if min(values) < least:
        raise RuleError(f"{name} must be at least {least}, and is {tuple(values)}")


def _channels(data: int, weight: int) -> None:
    if data != weight:
        raise RuleError(f"weight must have the input's {data} channels, and has {weight}")


def _bias(bias: Value, channels: int) -> None:
    if bias.type.shape[0] not in (1, channels):
        raise RuleError(f"bias must have 1 or {channels} elements, and has {bias.type.shape[0]}")


def _powers_of_two(shape: Shape) -> None:
    if any(size & (size - 1) for size in shape[1:]):
        raise RuleError(f"height and width must be powers of two, and the shape is {shape}")


class Argmax(
    TosaOperation, kind="ARGMAX", section="2.3.1", results=OUT, rows=ARGMAX, shapes=argmax
):
    """The place of the greatest element along an axis."""

    input = ranked("in_t")
    axis = Attribute(int)
    nan_mode = nan_mode()


class Pool2d(TosaOperation, results=IN_OUT, shapes=pool2d):
    """A pooling: [N,IH,IW,C] -> [N,OH,OW,C]."""

    input = tensor(rank=4)
    kernel = integers(2)
    stride = integers(2)
    pad = integers(4)


class AvgPool2d(Pool2d, kind="AVG_POOL2D", section="2.3.2", rows=AVERAGES):
    """The average of each window."""

    input_zp = constant()
    output_zp = constant()
    acc_type = Attribute(DType)


class Weighted(TosaOperation, results=OUT, rows=CONVOLUTION):
    """A convolution of any kind: sums of products with weights."""

    input = tensor("in_t", 4)
    weight = tensor("weight_t", 4)
    bias = tensor("out_t", 1)
    input_zp = constant("in_t")
    weight_zp = constant("weight_t")


class Windowed(Weighted, shapes=conv2d):
    """A convolution whose kernel is moved over its input."""

    pad = integers(4)
    stride = integers(2)
    dilation = integers(2, (1, 1))
    local_bound = Attribute(bool, False)
    acc_type = Attribute(DType)


class Conv2d(Windowed, kind="CONV2D", section="2.3.3"):
    """[N,IH,IW,IC], weight [OC,KH,KW,IC] -> [N,OH,OW,OC]."""


class Conv3d(Windowed, kind="CONV3D", section="2.3.4"):
    """[N,ID,IH,IW,IC], weight [OC,KD,KH,KW,IC] -> [N,OD,OH,OW,OC]."""

    input = tensor("in_t", 5)
    weight = tensor("weight_t", 5)
    pad = integers(6)
    stride = integers(3)
    dilation = integers(3, (1, 1, 1))


class DepthwiseConv2d(Windowed, kind="DEPTHWISE_CONV2D", section="2.3.5", shapes=depthwise_conv2d):
    """[N,IH,IW,C], weight [KH,KW,C,M] -> [N,OH,OW,C*M]."""


class Fft2d(TosaOperation, kind="FFT2D", section="2.3.6", results=COMPLEX, rows=FFT, shapes=fft2d):
    """The Fourier transform of complex numbers."""

    input_real = tensor(rank=3)
    input_imag = tensor(rank=3)
    inverse = Attribute(bool)
    local_bound = Attribute(bool, False)


class Matmul(
    TosaOperation, kind="MATMUL", section="2.3.7", results=OUT, rows=MATMUL, shapes=matmul
):
    """[N,H,C], [N,C,W] -> [N,H,W]."""

    A = tensor("in_t", 3)
    B = tensor("in_t", 3)
    A_zp = constant("in_t")
    B_zp = constant("in_t")


class MaxPool2d(Pool2d, kind="MAX_POOL2D", section="2.3.8", rows=MAXIMA):
    """The greatest element of each window."""

    nan_mode = nan_mode()


class Rfft2d(
    TosaOperation, kind="RFFT2D", section="2.3.9", results=COMPLEX, rows=FFT, shapes=rfft2d
):
    """The Fourier transform of real numbers."""

    input_real = tensor(rank=3)
    local_bound = Attribute(bool, False)


class TransposeConv2d(Weighted, kind="TRANSPOSE_CONV2D", section="2.3.10", shapes=transpose_conv2d):
    """[N,IH,IW,IC], weight [OC,KH,KW,IC] -> [N,OH,OW,OC]."""

    out_pad = integers(4)
    stride = integers(2)
    local_bound = Attribute(bool, False)
    acc_type = Attribute(DType)
