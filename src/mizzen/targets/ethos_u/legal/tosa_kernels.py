"""Rules of what moves over an image: convolution, pooling, resizing."""

from __future__ import annotations

from mizzen.graph import ResizeMode
from mizzen.ops.image import Resize
from mizzen.ops.limits import WindowLimits
from mizzen.ops.tensor import Conv3d, Pool2d, TransposeConv2d, Weighted, Windowed
from mizzen.targets.ethos_u.commands import ALL, U55_U65
from mizzen.targets.ethos_u.legal.tosa_rule import (
    CONVOLUTIONS,
    FOUND,
    POOLS,
    WRONG,
    Rule,
    kinds,
    numbers,
    rule,
)
from mizzen.targets.rules import by

PLANE = 2
"""Rows and columns, the last of the axes that a kernel moves along."""

STRIDE_MAXIMUM = 3
PADDED_AVERAGE_KERNEL_MAXIMUM = 8
DEPTH_MAXIMUM = 1 << 16
UPSCALES = (1, 2, 4, 8)
BIAS_BITS = 40
WINDOW_LIMITS = WindowLimits(longest_stride=STRIDE_MAXIMUM, largest_kernel=64)
"""Ref: Vela 5.2.0, ``vela --supported-ops-report``, DEPTHWISE_CONV_2D."""


def padded_stride(operation: Windowed | Pool2d) -> str | None:
    """Say what a stride with padding is, where it is longer than the NPU has."""
    found = _stride(operation)
    padded = any(operation.pad[-2 * PLANE :])
    return f"{found} with padding" if found is not None and padded else None


@rule("dilated-stride", "CONV2D CONV3D", U55_U65).must_have(
    f"strides up to {STRIDE_MAXIMUM}, or no dilation",
    "use a smaller stride and pooling, or no dilation",
)
def _dilated_stride(operation: Windowed) -> str | None:
    dilation = operation.dilation[-PLANE:]
    found = _stride(operation)
    return f"{found} with dilation {by(dilation)}" if found and max(dilation) > 1 else None


def _stride(operation: Windowed | Pool2d) -> str | None:
    stride = operation.stride[-PLANE:]
    return None if max(stride) <= STRIDE_MAXIMUM else f"stride {by(stride)}"


@rule("average-kernel", "AVG_POOL2D", U55_U65).must_have(
    f"a kernel up to {PADDED_AVERAGE_KERNEL_MAXIMUM}x{PADDED_AVERAGE_KERNEL_MAXIMUM}, or no "
    "padding",
    "pool in several steps, or without padding",
)
def _average_kernel(operation: Pool2d) -> str | None:
    kernel = operation.kernel
    if not any(operation.pad) or max(kernel) <= PADDED_AVERAGE_KERNEL_MAXIMUM:
        return None
    return f"a kernel of {by(kernel)} with padding"


@rule("slices", "CONV3D", U55_U65).must_have(
    "a kernel of one slice", "write it as a sum of CONV2D, one for each slice"
)
def _slices(operation: Conv3d) -> str | None:
    depth = operation.weight.shape[1]
    return None if depth == 1 else f"a kernel of {depth} slices"


@rule("transposed-stride", "TRANSPOSE_CONV2D", U55_U65).must_have(
    "strides 1x1 or 2x2, or 2 along the only axis that input and kernel have",
    "upscale by 2 in several steps, or with RESIZE and CONV2D",
)
def _transposed_stride(operation: TransposeConv2d) -> str | None:
    stride, data, weight = operation.stride, operation.input.shape, operation.weight.shape
    flat = data[1] == weight[1] == 1 and stride == (1, 2)
    narrow = data[2] == weight[2] == 1 and stride == (2, 1)
    return None if stride in ((1, 1), (2, 2)) or flat or narrow else f"stride {by(stride)}"


@rule("transposed-padding", "TRANSPOSE_CONV2D", U55_U65, WRONG).must_have(
    "no output padding at top or left", "pad its result, or at bottom and right only"
)
def _output_padding(operation: TransposeConv2d) -> str | None:
    top, _, left, _ = operation.out_pad
    found = [f"{size} at the {side}" for side, size in (("top", top), ("left", left)) if size > 0]
    return f"padding of {' and '.join(found)}" if found else None


@rule("depth", CONVOLUTIONS | POOLS, ALL).must_have(
    f"up to {DEPTH_MAXIMUM} channels", "split the channels"
)
def _depth(operation: Weighted | Pool2d) -> str | None:
    depth = operation.input.shape[-1]
    return None if depth <= DEPTH_MAXIMUM else f"{depth} channels"


@rule("bias", CONVOLUTIONS, U55_U65, WRONG).must_have(
    f"a bias of {BIAS_BITS} bits",
    "quantise with greater scales; the bias takes those of input and weights",
)
def _bias(operation: Weighted) -> str | None:
    limit = 1 << (BIAS_BITS - 1)
    bias = operation.bias.constant
    if bias is None or not bias.size:
        return None
    least, greatest = int(bias.min()), int(bias.max())
    if -limit <= least and greatest < limit:
        return None
    return f"a bias of {greatest if greatest >= limit else least}"


@rule("resize", "RESIZE", U55_U65, FOUND).must_have(
    "the nearest pixel, by 2, 4 or 8, corners or centres in place",
    "upscale by 2, 4 or 8 to the nearest pixel, or choose Ethos-U85",
)
def _resize(operation: Resize) -> str | None:
    data, steps = operation.input, numbers(operation.scale)
    if steps == (1, 1, 1, 1) and data.shape == operation.result.shape:
        return None
    if operation.mode is ResizeMode.BILINEAR:
        return "bilinear interpolation"
    if data.shape[1:3] == (1, 1):
        return None
    factors = _factors(operation)
    if factors == (1, 1) or all(factor in UPSCALES[1:] for factor in factors):
        return None
    if None not in factors:
        return f"a factor of {by(factors)}"
    offset, border = numbers(operation.offset), numbers(operation.border)
    return f"scale {steps}, offset {offset}, border {border}"


def _factors(operation: Resize) -> tuple[int | None, ...]:
    """Return the whole factors of both axes, as far as there are such."""
    scale, offset, border = map(numbers, (operation.scale, operation.offset, operation.border))
    axes = zip(scale[::2], scale[1::2], offset, border, strict=True)
    return tuple(_factor(*axis) for axis in axes)


@rule("resize-factors", "RESIZE", U55_U65, WRONG).must_have(
    "the same factor in both directions",
    "upscale by the same factor in both directions, in several steps if need be",
)
def _unequal_factors(operation: Resize) -> str | None:
    if operation.mode is ResizeMode.BILINEAR or operation.input.shape[1:3] == (1, 1):
        return None
    factors = _factors(operation)
    if factors[0] == factors[1] or any(factor not in UPSCALES for factor in factors):
        return None
    return f"a factor of {by(factors)}"


def _factor(numerator: int, denominator: int, offset: int, border: int) -> int | None:
    """Return the whole factor of an axis whose corners or centres meet; else None."""
    factor, rest = divmod(numerator, denominator)
    corners = denominator == 1 and (offset, border) == (0, 0)
    centres = denominator == 2 and (offset, border) == (1 - factor, factor - 1)
    return factor if not rest and (corners or centres) else None


KERNEL_RULES: tuple[Rule, ...] = (
    rule("stride", kinds("CONV3D") | POOLS, U55_U65).must_have(
        f"strides up to {STRIDE_MAXIMUM}, or no padding",
        "use a smaller stride, or pool without padding",
    )(padded_stride),
    _dilated_stride,
    rule("depthwise-stride", "DEPTHWISE_CONV2D", U55_U65, FOUND).must_have(
        f"strides up to {STRIDE_MAXIMUM}", "use a smaller stride and pooling"
    )(_stride),
    _average_kernel,
    _slices,
    _transposed_stride,
    _output_padding,
    _depth,
    _bias,
    _resize,
    _unequal_factors,
)
"""Rules of convolution, pooling and resizing."""
