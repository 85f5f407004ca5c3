"""PyTorch's convolutions, products of matrices and pools of real numbers.

Ref: PyTorch, ATen/native: Convolution.cpp, AveragePool2d.cpp, DilatedMaxPool2d.cpp, Pool.h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.package.c.layout import Binary, Pool
from mizzen.package.c.lowering.context import Given, Rule, Shape, ref
from mizzen.package.c.lowering.elementwise import emit_binary
from mizzen.package.c.lowering.tflite_windows import emit_pool, matrices
from mizzen.package.c.lowering.windows import (
    Reals,
    Span,
    Weights,
    Window,
    convolve,
    planar_strides,
)
from mizzen.package.device import TensorArgument

EXACT = Reals((-math.inf, math.inf), is_wide=True)
"""Sums are kept in double, and rounded once."""
NO_LIMITS = (-math.inf, math.inf)


def convolution(given: Given) -> None:
    """A convolution of one or two axes, or its transpose, in groups."""
    source, weight = given.tensor("input"), given.tensor("weight")
    bias = given.tensor("bias") if given.arguments.get("bias") is not None else None
    shape = _planar(given, source)
    target = _planar(given, given.output())
    groups = given.whole("groups", 1)
    turned = bool(given.get("transposed", False))
    if turned and groups > 1:
        weight = _regrouped(given, weight, groups)
    depth, count = shape[1] // groups, target[1] // groups
    taps = _planar(given, weight)[2:]
    area = taps[0] * taps[1]
    strides = (0, area * depth, taps[1], 1, area)
    first = 0
    if turned:
        across = (area, target[1] * area) if groups == 1 else (area * depth, area)
        strides, first = (0, across[0], -taps[1], -1, across[1]), area - 1
    axes = _Axes(given, turned)
    lines, columns = (axes.span(axis, shape, target, taps) for axis in range(2))
    window = Window(shape[0], target[1], shape[1], lines, columns,
                    planar_strides(shape), planar_strides(target))  # fmt: skip
    weights = Weights(weight, depth, count, strides, first)
    convolve(given, source, weights, bias, window, EXACT)


@dataclass(frozen=True, slots=True)
class _Axes:
    """The options of both axes; of one axis they are those of the columns."""

    given: Given
    turned: bool

    def span(self, axis: int, shape: Shape, target: Shape, taps: Shape) -> Span:
        """Return one axis of the window."""
        stride, pad, dilation = (
            self._option(name, axis, default)
            for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
        )
        sizes = (target[2 + axis], taps[axis], shape[2 + axis])
        if self.turned:
            return Span(*sizes, 1, dilation, (taps[axis] - 1) * dilation - pad, stride)
        return Span(*sizes, stride, dilation, pad)

    def _option(self, name: str, axis: int, default: int) -> int:
        values = self.given.wholes(name, (default,))
        if len(values) == 2:
            return values[axis]
        one_axis = len(self.given.row(self.given.output()).shape) == 3
        return default if one_axis and axis == 0 else values[0]


def _planar(given: Given, index: int) -> Shape:
    """Return a shape with two axes of an image, the first of which may be of one element."""
    shape = given.row(index).shape
    given.must(len(shape) in (3, 4), "there must be one or two axes beside batches and channels")
    return shape if len(shape) == 4 else (*shape[:2], 1, shape[2])


def _regrouped(given: Given, weight: int, groups: int) -> int:
    """Return weights of a transposed convolution in groups, output channels first."""
    held = given.held(weight)
    split = held.reshape(groups, held.shape[0] // groups, *held.shape[1:])
    swapped = np.swapaxes(split, 1, 2)
    return given.lowering.constant(swapped.reshape(-1, *swapped.shape[2:]), held.dtype)


def product(given: Given) -> None:
    """mm and bmm."""
    matrices(given, given.tensor("self"), given.tensor("mat2"), (False, False), EXACT)


def product_and_sum(given: Given) -> None:
    """addmm: a product of matrices, plus what broadcasts to it."""
    one, other = given.tensor("mat1"), given.tensor("mat2")
    given.must(given.get("alpha", 1) == 1 and given.get("beta", 1) == 1, "alpha, beta must be 1")
    output = given.row(given.output())
    target = given.lowering.temporary(output.shape, output.dtype)
    matrices(given, one, other, (False, False), EXACT, target)
    emit_binary(given, Binary.ADD, target, given.tensor("self"), given.output())


def average(given: Given) -> None:
    """avg_pool2d."""
    source = given.tensor("self")
    window = _pool_window(given, source)
    taps = (window.rows.taps, window.columns.taps)
    counts_pads = bool(given.get("count_include_pad", True))
    if bool(given.get("ceil_mode", False)):
        given.must(not (_hangs_over(window.rows) or _hangs_over(window.columns)),
                   "windows must end with the image")  # fmt: skip
    divisor = taps[0] * taps[1] if counts_pads else 0
    override = given.arguments.get("divisor_override")
    divisor = override if isinstance(override, int) else divisor
    emit_pool(given, source, Pool.AVERAGE, window, divisor, NO_LIMITS)


def _hangs_over(span: Span) -> bool:
    reached = (span.output - 1) * span.stride + span.taps
    return reached > span.input + 2 * span.pad


def greatest(given: Given) -> None:
    """max_pool2d_with_indices, whose indices nothing takes."""
    given.must(given.wanted(1) is None, "indices must not be wanted")
    source = given.tensor("self")
    emit_pool(given, source, Pool.MAXIMUM, _pool_window(given, source), 0, _limits(given, source))


def _limits(given: Given, source: int) -> tuple[int, int] | tuple[float, float]:
    dtype = given.row(source).dtype
    if dtype.kind == "f":
        return NO_LIMITS
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def adaptive(given: Given) -> None:
    """_adaptive_avg_pool2d with windows of one size."""
    source = given.tensor("self")
    shape, target = _image(given, source), _image(given, given.output())
    sizes = tuple(zip(shape[2:], target[2:], strict=True))
    given.must(all(size % wanted == 0 for size, wanted in sizes), "windows must have one size")
    lines, columns = (Span(wanted, size // wanted, size, size // wanted) for size, wanted in sizes)
    window = Window(shape[0], shape[1], shape[1], lines, columns,
                    planar_strides(shape), planar_strides(target))  # fmt: skip
    emit_pool(given, source, Pool.AVERAGE, window, 0, NO_LIMITS)


def _pool_window(given: Given, source: int) -> Window:
    shape, target = _image(given, source), _image(given, given.output())
    taps = _two(given.wholes("kernel_size"))
    strides = _two(given.wholes("stride", ()) or taps)
    pads, dilations = _two(given.wholes("padding", (0,))), _two(given.wholes("dilation", (1,)))
    lines, columns = (
        Span(target[2 + axis], taps[axis], shape[2 + axis], strides[axis], dilations[axis],
             pads[axis])
        for axis in range(2)
    )  # fmt: skip
    return Window(shape[0], shape[1], shape[1], lines, columns,
                  planar_strides(shape), planar_strides(target))  # fmt: skip


def _image(given: Given, index: int) -> Shape:
    """Return a shape of four axes; a batch may be left out."""
    shape = given.row(index).shape
    given.must(len(shape) in (3, 4), "there must be three or four axes")
    return shape if len(shape) == 4 else (1, *shape)


def _two(numbers: Sequence[int]) -> tuple[int, int]:
    return (numbers[0], numbers[-1])


def normalized_rows(given: Given) -> None:
    """native_layer_norm, whose mean and factor nothing takes."""
    length = math.prod(given.wholes("normalized_shape"))
    _normalize(given, length, 1, 1)


def normalized_groups(given: Given) -> None:
    """native_group_norm, whose mean and factor nothing takes."""
    channels, area, groups = (given.whole(name) for name in ("C", "HxW", "group"))
    _normalize(given, channels // groups * area, groups, area)


def _normalize(given: Given, length: int, groups: int, sharing: int) -> None:
    given.must(given.wanted(1) is None and given.wanted(2) is None,
               "mean and factor must not be wanted")  # fmt: skip
    source = given.tensor("input")
    given.must(given.row(source).dtype == np.float32, "numbers must be float32")
    held = [given.arguments.get(name) for name in ("weight", "bias")]
    tensors = [argument if isinstance(argument, TensorArgument) else None for argument in held]
    arguments = (ref(source), *tensors, length, groups, sharing, given.real("eps"))
    given.emit("normalize", arguments, (given.output(),))


def normalized_batch(given: Given) -> None:
    """Batch normalization with constant statistics: one factor and one summand a channel."""
    source = given.tensor("input")
    tensor = given.row(source)
    mean, variance = (
        given.held(given.tensor(name)).astype(np.float64) for name in ("running_mean",
                                                                        "running_var")
    )  # fmt: skip
    factor = 1 / np.sqrt(variance + given.real("eps"))
    if given.arguments.get("weight") is not None:
        factor *= given.held(given.tensor("weight"))
    summand = -mean * factor
    if given.arguments.get("bias") is not None:
        summand += given.held(given.tensor("bias"))
    shape = (-1, *[1] * (len(tensor.shape) - 2))
    target = given.lowering.temporary(tensor.shape, tensor.dtype)
    scales, offsets = (given.lowering.constant(numbers.reshape(shape), tensor.dtype)
                       for numbers in (factor, summand))  # fmt: skip
    emit_binary(given, Binary.MULTIPLY, source, scales, target)
    emit_binary(given, Binary.ADD, target, offsets, given.output())


RULES: Mapping[str, Rule] = {
    "aten::convolution": convolution,
    "aten::mm": product,
    "aten::bmm": product,
    "aten::addmm": product_and_sum,
    "aten::avg_pool2d": average,
    "aten::max_pool2d_with_indices": greatest,
    "aten::_adaptive_avg_pool2d": adaptive,
    "aten::native_layer_norm": normalized_rows,
    "aten::native_group_norm": normalized_groups,
    "aten::_native_batch_norm_legit_no_training": normalized_batch,
}
