"""Tensor operators. Ref: TOSA 1.0, 2.3."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import (
    ACC_TYPE,
    AXIS,
    IN_OUT,
    LOCAL_BOUND,
    NAN_MODE,
    OUT,
    Attribute,
    Operand,
    RuleError,
    Shape,
    axis_of,
    chapter,
    constant,
    define,
    integers,
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


def _weighted(rank: int) -> tuple[Operand, ...]:
    return (
        tensor("input", "in_t", rank),
        tensor("weight", "weight_t", rank),
        tensor("bias", "out_t", 1),
        constant("input_zp", "in_t"),
        constant("weight_zp", "weight_t"),
    )


def _window(dimensions: int) -> tuple[Attribute, ...]:
    dilation = Attribute("dilation", tuple, (1,) * dimensions, dimensions)
    pad, stride = integers("pad", 2 * dimensions), integers("stride", dimensions)
    return (pad, stride, dilation, LOCAL_BOUND, ACC_TYPE)


KERNEL = (integers("kernel", 2), integers("stride", 2), integers("pad", 4))

DEFINITIONS = chapter(
    3,
    define(
        "ARGMAX",
        ranked("input", "in_t"),
        results=OUT,
        attributes=(AXIS, NAN_MODE),
        rows=table(
            "in_t out_t",
            """
            PRO-INT   i8   i32
            EXT-INT16 i16  i32
            PRO-FP    f16  i32
            EXT-BF16  bf16 i32
            PRO-FP    f32  i32
            """,
        ),
        shapes=argmax,
    ),
    define(
        "AVG_POOL2D",
        tensor("input", "in_out_t", 4),
        constant("input_zp", "in_out_t"),
        constant("output_zp", "in_out_t"),
        results=IN_OUT,
        attributes=(*KERNEL, ACC_TYPE),
        rows=table(
            "in_out_t @acc_type",
            """
            PRO-INT   i8   i32
            EXT-INT16 i16  i32
            PRO-FP    f16  f32
            PRO-FP    f16  f16
            EXT-BF16  bf16 f32
            PRO-FP    f32  f32
            """,
        ),
        shapes=pool2d,
    ),
    define(
        "CONV2D",
        *_weighted(4),
        results=OUT,
        attributes=_window(2),
        rows=CONVOLUTION,
        shapes=conv2d,
    ),
    define(
        "CONV3D",
        *_weighted(5),
        results=OUT,
        attributes=_window(3),
        rows=CONVOLUTION,
        shapes=conv2d,
    ),
    define(
        "DEPTHWISE_CONV2D",
        *_weighted(4),
        results=OUT,
        attributes=_window(2),
        rows=CONVOLUTION,
        shapes=depthwise_conv2d,
    ),
    define(
        "FFT2D",
        tensor("input_real", "in_out_t", 3),
        tensor("input_imag", "in_out_t", 3),
        results=(("output_real", "in_out_t"), ("output_imag", "in_out_t")),
        attributes=(Attribute("inverse", bool), LOCAL_BOUND),
        rows=table("in_out_t", "EXT-FFT f32"),
        shapes=fft2d,
    ),
    define(
        "MATMUL",
        tensor("A", "in_t", 3),
        tensor("B", "in_t", 3),
        constant("A_zp", "in_t"),
        constant("B_zp", "in_t"),
        results=OUT,
        rows=table(
            "in_t out_t",
            """
            PRO-INT   i8   i32
            EXT-INT16 i16  i48
            PRO-FP    f16  f16
            PRO-FP    f16  f32
            EXT-BF16  bf16 f32
            PRO-FP    f32  f32
            """,
        ),
        shapes=matmul,
    ),
    define(
        "MAX_POOL2D",
        tensor("input", "in_out_t", 4),
        results=IN_OUT,
        attributes=(*KERNEL, NAN_MODE),
        rows=table(
            "in_out_t",
            """
            PRO-INT   i8
            EXT-INT16 i16
            PRO-FP    f16
            EXT-BF16  bf16
            PRO-FP    f32
            """,
        ),
        shapes=pool2d,
    ),
    define(
        "RFFT2D",
        tensor("input_real", "in_out_t", 3),
        results=(("output_real", "in_out_t"), ("output_imag", "in_out_t")),
        attributes=(LOCAL_BOUND,),
        rows=table("in_out_t", "EXT-FFT f32"),
        shapes=rfft2d,
    ),
    define(
        "TRANSPOSE_CONV2D",
        *_weighted(4),
        results=OUT,
        attributes=(integers("out_pad", 4), integers("stride", 2), LOCAL_BOUND, ACC_TYPE),
        rows=CONVOLUTION,
        shapes=transpose_conv2d,
    ),
)
