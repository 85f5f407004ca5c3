"""Rules of what moves a kernel over its input: convolution, pooling, resizing.

A factor of resizing is output over input; with aligned corners, of the extents less 1.
"""

from __future__ import annotations

from fractions import Fraction

from mizzen.targets.ethos_u.legal.tflite_tensors import (
    OperatorFacts,
    Rule,
    data_input,
    operators,
    rule,
    weights,
)
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85
from mizzen.targets.rules import by

SAME = 0
"""The padding that keeps the extents of a stride of 1."""

STRIDE_MAXIMUM = 3
PADDED_AVERAGE_KERNEL_MAXIMUM = 8
POOL_HEIGHT_MAXIMUM = 256
POOL_ELEMENTS_MAXIMUM = 1 << 16


_STRIDE_HELP = "use a smaller stride and pooling, or VALID padding without dilation"


def _strides(operator: OperatorFacts) -> tuple[int, int]:
    return operator.option("stride_h", 1), operator.option("stride_w", 1)


def _kernel(operator: OperatorFacts) -> tuple[int, int]:
    """Return height and width of the kernel, before dilation."""
    weight = weights(operator)
    if weight is not None and len(weight.shape) == 4:
        return weight.shape[1], weight.shape[2]
    return operator.option("filter_height", 1), operator.option("filter_width", 1)


def _dilations(operator: OperatorFacts) -> tuple[int, int]:
    return operator.option("dilation_h_factor", 1), operator.option("dilation_w_factor", 1)


def _padded(operator: OperatorFacts) -> bool:
    """Whether the border is really padded, which SAME does not always need."""
    data = data_input(operator)
    if operator.option("padding") != SAME or data is None or not operator.outputs:
        return False
    axes = zip(
        data.nhwc[1:3],
        operator.outputs[0].nhwc[1:3],
        _kernel(operator),
        _strides(operator),
        _dilations(operator),
        strict=True,
    )
    return any(
        (output - 1) * stride + (kernel - 1) * dilation + 1 > extent
        for extent, output, kernel, stride, dilation in axes
    )


@rule("stride", "CONV_2D AVERAGE_POOL_2D MAX_POOL_2D", U55_U65).must_have(
    f"strides up to {STRIDE_MAXIMUM}, or neither dilation nor padding", _STRIDE_HELP
)
def _unpadded_stride(operator: OperatorFacts) -> str | None:
    strides, dilations = _strides(operator), _dilations(operator)
    if max(strides) <= STRIDE_MAXIMUM or (dilations == (1, 1) and not _padded(operator)):
        return None
    why = "padding" if dilations == (1, 1) else f"dilation {by(dilations)}"
    return f"stride {by(strides)} with {why}"


@rule("depthwise-stride", "DEPTHWISE_CONV_2D", U55_U65).must_have(
    f"strides up to {STRIDE_MAXIMUM}", "use a smaller stride and pooling"
)
def _stride(operator: OperatorFacts) -> str | None:
    strides = _strides(operator)
    return None if max(strides) <= STRIDE_MAXIMUM else f"stride {by(strides)}"


@rule("average-kernel", "AVERAGE_POOL_2D", ALL).must_have(
    f"a kernel up to {PADDED_AVERAGE_KERNEL_MAXIMUM}x{PADDED_AVERAGE_KERNEL_MAXIMUM} with "
    f"padding, else up to {POOL_HEIGHT_MAXIMUM} high and of {POOL_ELEMENTS_MAXIMUM} elements",
    "pool in several steps, or with VALID padding",
)
def _average_kernel(operator: OperatorFacts) -> str | None:
    kernel = _kernel(operator)
    if not _padded(operator):
        return _pool_kernel(operator)
    fits = max(kernel) <= PADDED_AVERAGE_KERNEL_MAXIMUM
    return None if fits else f"a kernel of {by(kernel)} with padding"


def _pool_kernel(operator: OperatorFacts) -> str | None:
    height, width = _kernel(operator)
    fits = height <= POOL_HEIGHT_MAXIMUM and height * width <= POOL_ELEMENTS_MAXIMUM
    return None if fits else f"a kernel of {by((height, width))}"


@rule("transposed-stride", "TRANSPOSE_CONV", U55_U65).must_have(
    "strides 1x1 or 2x2, or 2 along the only axis that input and kernel have",
    "upscale by 2 in several steps, or with RESIZE_NEAREST_NEIGHBOR and CONV_2D",
)
def _transposed_strides(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    strides, kernel = _strides(operator), _kernel(operator)
    if data is None or strides in ((1, 1), (2, 2)):
        return None
    flat = data.nhwc[1] == kernel[0] == 1 and strides == (1, 2)
    narrow = data.nhwc[2] == kernel[1] == 1 and strides == (2, 1)
    return None if flat or narrow else f"stride {by(strides)}"


@rule("transposed-shape", "TRANSPOSE_CONV", ALL).must_have(
    "an output of input times stride, plus kernel minus stride without padding",
    "choose that output shape, and STRIDED_SLICE or PAD it",
)
def _transposed_shape(operator: OperatorFacts) -> str | None:
    data = data_input(operator)
    if data is None or not operator.outputs:
        return None
    more: tuple[int, ...] = (0, 0)
    strides, kernel = _strides(operator), _kernel(operator)
    if operator.option("padding") != SAME:
        more = tuple(max(0, k - s) for k, s in zip(kernel, strides, strict=True))
    rows = zip(data.nhwc[1:3], strides, more, strict=True)
    wanted = tuple(extent * stride + extra for extent, stride, extra in rows)
    output = operator.outputs[0].nhwc[1:3]
    return None if output == wanted else f"{by(output)} instead of {by(wanted)}"


KERNEL_RULES: tuple[Rule, ...] = (
    _unpadded_stride,
    _stride,
    _average_kernel,
    rule("max-kernel", "MAX_POOL_2D", ALL).must_have(
        f"a kernel up to {POOL_HEIGHT_MAXIMUM} high and of {POOL_ELEMENTS_MAXIMUM} elements",
        "pool in several steps",
    )(_pool_kernel),
    _transposed_strides,
    _transposed_shape,
)
"""Rules of convolution and pooling."""


BILINEAR = "RESIZE_BILINEAR"

FACTORS = (2, 4, 8)
"""Factors that U55 and U65 have: repeated doubling in the input's upscaling."""

LARGEST_FACTOR = 2048
"""Of U85, whose registers hold a numerator of 11 bits."""

LARGEST_CENTRED_FACTOR = 1024
"""Of U85 where pixels are compared at their centres, which doubles the numerator."""


_BOTH = operators("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR")
_STEPS = "resize in several steps by 2, 4 or 8"


def _extents(operator: OperatorFacts) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return height and width of input and output."""
    data = data_input(operator)
    if data is None or not operator.outputs:
        return None
    (_, height, width, _), (_, out_height, out_width, _) = data.nhwc, operator.outputs[0].nhwc
    return (height, width), (out_height, out_width)


def _ratio(extent: int, output: int, aligned: bool) -> tuple[int, int]:
    """Return output and input as they form the factor; an extent of 1 stays where it is."""
    if not aligned:
        return output, extent
    return output - 1, extent - 1


def _factor(extent: int, output: int, aligned: bool) -> Fraction | None:
    """Return the factor of an axis; None if there is none, as from one aligned pixel to many."""
    top, bottom = _ratio(extent, output, aligned)
    if bottom == 0:
        return Fraction(1) if top == 0 else None
    return Fraction(top, bottom)


def _factors(operator: OperatorFacts) -> tuple[Fraction | None, Fraction | None] | None:
    both = _extents(operator)
    if both is None:
        return None
    aligned = bool(operator.option("align_corners"))
    height, width = (_factor(i, o, aligned) for i, o in zip(*both, strict=True))
    return height, width


def _written(factor: Fraction | None) -> str:
    return "none" if factor is None else f"{float(factor):g}"


@rule("resize-unlike-factors", _BOTH, U55_U65).must_have(
    "one factor for height and width, or one axis of extent 1", "resize both axes alike"
)
def _unlike(operator: OperatorFacts) -> str | None:
    factors, both = _factors(operator), _extents(operator)
    if factors is None or both is None or _trivial(operator) or factors[0] == factors[1]:
        return None
    one_axis = any(
        output == 1 and factor == 1 for output, factor in zip(both[1], factors, strict=True)
    )
    centred = operator.kind == BILINEAR and operator.option("half_pixel_centers")
    if one_axis and not centred:
        return None
    return f"{_written(factors[0])} and {_written(factors[1])}"


@rule("resize-factor", _BOTH, U55_U65).must_have("a factor of 2, 4 or 8", _STEPS)
def _upscaling(operator: OperatorFacts) -> str | None:
    factors = _factors(operator)
    if factors is None or _trivial(operator):
        return None
    largest = max((factor for factor in factors if factor is not None), default=Fraction(1))
    return None if largest in FACTORS else _written(largest)


@rule("resize-centred-factor", operators(BILINEAR), U55_U65).must_have(
    "a factor of 2 with half_pixel_centers",
    "resize by 2 several times, or without half_pixel_centers",
)
def _centred(operator: OperatorFacts) -> str | None:
    factors, both = _factors(operator), _extents(operator)
    if factors is None or both is None or not operator.option("half_pixel_centers"):
        return None
    if both[0] == (1, 1) or None in factors or max(factors, key=_value) == 2:
        return None
    return _written(max(factors, key=_value))


def _value(factor: Fraction | None) -> Fraction:
    return Fraction(0) if factor is None else factor


def _trivial(operator: OperatorFacts) -> bool:
    """Whether one pixel is copied to all, or nothing changes."""
    both = _extents(operator)
    return both is None or both[0] == (1, 1) or both[0] == both[1]


@rule("resize-options", _BOTH, U85).must_have(
    "align_corners or half_pixel_centers", "choose one of them"
)
def _both_options(operator: OperatorFacts) -> str | None:
    both = operator.option("align_corners") and operator.option("half_pixel_centers")
    return "both" if both else None


@rule("resize-power-of-two", operators(BILINEAR), U85).must_have(
    "a power of two as factor", "resize by a power of two, or with RESIZE_NEAREST_NEIGHBOR"
)
def _no_power_of_two(operator: OperatorFacts) -> str | None:
    factors, both = _factors(operator), _extents(operator)
    if factors is None or both is None or both[0] == (1, 1):
        return None
    for factor in factors:
        if factor is not None and not _is_power_of_two(factor):
            return _written(factor)
    return None


def _is_power_of_two(factor: Fraction) -> bool:
    return factor.denominator == 1 and factor > 0 and factor.numerator.bit_count() == 1


@rule("resize-largest-factor", _BOTH, U85).must_have(
    "factors that 11 bits hold", "resize in several steps"
)
def _too_large(operator: OperatorFacts) -> str | None:
    both = _extents(operator)
    if both is None:
        return None
    aligned = bool(operator.option("align_corners"))
    centred = operator.kind != BILINEAR or operator.option("half_pixel_centers")
    most = LARGEST_CENTRED_FACTOR if centred and not aligned else LARGEST_FACTOR
    for extent, output in zip(*both, strict=True):
        top, bottom = _ratio(extent, output, aligned)
        if top > most * max(1, bottom):
            return f"{top / max(1, bottom):g}, over {most}"
    return None


RESIZE_RULES: tuple[Rule, ...] = (
    _unlike,
    _centred,
    _upscaling,
    _both_options,
    _no_power_of_two,
    _too_large,
)
