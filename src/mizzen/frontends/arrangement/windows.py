"""Windows over images: convolutions and pools, whatever numbers they take.

A convolution has groups, or is transposed; a pool has windows, or the tiles of adaptive pools. How
terms are multiplied and means are taken is the caller's own (`Layer`, `Pool`). Models have channels
first, TOSA last: an operation is TRANSPOSE, CONV2D, TRANSPOSE, and what is done twice is taken out
by the passes. Tensors are [N,C,H,W], or [N,C,W] for images of one row.

Ref: TOSA 1.0, 2.3.2 AVG_POOL2D, 2.3.3 CONV2D, 2.3.5 DEPTHWISE_CONV2D, 2.3.9 MAX_POOL2D,
2.3.11 TRANSPOSE_CONV2D.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.frontends.arrangement.movement import (
    Pads,
    channels_first,
    concat,
    fit,
    image,
    padded,
    reshape,
    sliced,
)
from mizzen.graph import Value
from mizzen.ops import Builder

Array = npt.NDArray[Any]
Pair = tuple[int, int]
"""Numbers for height and width."""

POINTWISE: dict[str, Any] = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
"""Attributes of a CONV2D that multiplies rows by a matrix."""


class Layer(ABC):
    """The weights of a layer, in a profile's numbers: [O,KH,KW,C/groups]."""

    weight: Array

    @abstractmethod
    def part(self, start: int, count: int) -> Layer:
        """Return some of the outputs."""

    @abstractmethod
    def product(self, kind: str, source: Value, weight: Array, attributes: dict[str, Any]) -> Value:
        """Add an operation, and what brings its sums to the type of the result."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """How a kernel goes over images.

    pads    top, bottom, left, right; what a transposed convolution cuts away (adds, if negative)
    groups  of channels, which are convolved apart
    """

    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1


def convolved(
    b: Builder, x: Value, layer: Layer, convolution: Convolution, shape: Sequence[int]
) -> Value:
    """Convolve, to a shape."""
    stride, dilation = convolution.stride, convolution.dilation
    source, pads = fit(b, image(b, x), _kernel(layer), stride, dilation, convolution.pads)
    attributes = {"pad": pads, "stride": stride, "dilation": dilation}
    return channels_first(b, _grouped(b, source, layer, convolution.groups, attributes), shape)


def _kernel(layer: Layer) -> tuple[int, int]:
    _, height, width, _ = layer.weight.shape
    return height, width


def _grouped(
    b: Builder, source: Value, layer: Layer, groups: int, attributes: dict[str, Any]
) -> Value:
    channels, outputs = source.shape[3], layer.weight.shape[0]
    if groups == 1:
        return layer.product("CONV2D", source, layer.weight, attributes)
    if groups == channels:  # the kernel [C*M,KH,KW,1] becomes [KH,KW,C,M]
        weight = layer.weight.reshape(channels, -1, *_kernel(layer)).transpose(2, 3, 0, 1)
        return layer.product("DEPTHWISE_CONV2D", source, weight, attributes)
    inputs, each = channels // groups, outputs // groups
    parts = [layer.part(index * each, each) for index in range(groups)]
    values = [
        part.product(
            "CONV2D", sliced(b, source, 3, index * inputs, inputs), part.weight, attributes
        )
        for index, part in enumerate(parts)
    ]
    return concat(b, values, axis=3)


def convolved_back(
    b: Builder, x: Value, layer: Layer, convolution: Convolution, shape: Sequence[int]
) -> Value:
    """Convolve transposed, to a shape; the layer's weight is of `transposed_kernel`."""
    source, groups = image(b, x), convolution.groups
    channels, each = source.shape[3] // groups, layer.weight.shape[0] // groups
    values = [
        _with_out_pad(
            b, sliced(b, source, 3, group * channels, channels),
            layer.part(group * each, each), convolution,
        )
        for group in range(groups)
    ]  # fmt: skip
    return channels_first(b, concat(b, values, 3), shape)


def _with_out_pad(b: Builder, source: Value, layer: Layer, convolution: Convolution) -> Value:
    """Add the operation, then cut away what TOSA's `out_pad` cannot: a whole kernel or more."""
    kernel, pads = _kernel(layer), [-pad for pad in convolution.pads]
    able = [max(pad, 1 - kernel[index // 2]) for index, pad in enumerate(pads)]
    attributes = {"out_pad": tuple(able), "stride": convolution.stride}
    value = layer.product("TRANSPOSE_CONV2D", source, layer.weight, attributes)
    for axis in (0, 1):
        before, after = (able[index] - pads[index] for index in (2 * axis, 2 * axis + 1))
        value = sliced(b, value, 1 + axis, before, value.shape[1 + axis] - before - after)
    return value


def transposed_kernel(weight: Array, convolution: Convolution, filling: int = 0) -> Array:
    """Return a weight [C,O/groups,KH,KW] or [C,O/groups,KW] as [O,KH,KW,C/groups].

    filling  what stands for zero, which dilation puts between
    """
    spatial = weight.ndim - 2
    for axis, step in zip(range(2, weight.ndim), convolution.dilation[-spatial:], strict=True):
        shape = list(weight.shape)
        shape[axis] = (shape[axis] - 1) * step + 1
        spread: Array = np.full(shape, filling, weight.dtype)
        spread.swapaxes(0, axis)[::step] = weight.swapaxes(0, axis)
        weight = spread
    groups = np.split(weight, convolution.groups)
    return channels_last_kernel(np.concatenate(groups, axis=1).swapaxes(0, 1))


def channels_last_kernel(weight: Array) -> Array:
    """Return a weight [O,C,KH,KW] or [O,C,KW] as [O,KH,KW,C]."""
    if weight.ndim == 3:
        weight = weight[:, :, None, :]
    return weight.transpose(0, 2, 3, 1)


def linear(b: Builder, x: Value, layer: Layer, shape: Sequence[int]) -> Value:
    """Multiply [..., C] by a weight [O,1,1,C], to a shape: a convolution of one row."""
    inputs = layer.weight.shape[3]
    source = reshape(b, x, (1, x.type.elements // inputs, 1, inputs))
    return reshape(b, layer.product("CONV2D", source, layer.weight, POINTWISE), shape)


@dataclass(frozen=True, slots=True)
class Window:
    """A window's size, steps and padding (top, bottom, left, right)."""

    kernel: Pair
    stride: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)

    def covering(self, extents: Sequence[int], counts: Pair) -> Window:
        """Pad at the end as far as the last of some windows reaches (``ceil_mode``).

        extents  height and width of the input
        """
        pads = list(self.pads)
        for axis in (0, 1):
            needed = (counts[axis] - 1) * self.stride[axis] + self.kernel[axis]
            have = extents[axis] + pads[2 * axis] + pads[2 * axis + 1]
            pads[2 * axis + 1] += max(needed - have, 0)
        return replace(self, pads=(pads[0], pads[1], pads[2], pads[3]))

    def fitted(self, b: Builder, source: Value) -> tuple[Value, Window]:
        """Return the part of the input that windows reach, and the window for it."""
        source, pads = fit(b, source, self.kernel, self.stride, (1, 1), self.pads)
        return source, replace(self, pads=pads)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of a pool."""
        return {"kernel": self.kernel, "stride": self.stride, "pad": self.pads}


Pool = Callable[[Value, Window], Value]
"""Adds what makes one number of each window over [N,H,W,C]."""


def pooled(
    b: Builder,
    x: Value,
    window: Window,
    pool: Pool,
    shape: Sequence[int],
    filling: int | None = None,
) -> Value:
    """Pool, to a shape; padding counts, as a number, only where that is given."""
    source = image(b, x)
    if filling is not None and any(window.pads):
        border = (0, 0, *window.pads, 0, 0)
        source = padded(b, source, border, b.constant([filling], source.dtype))
        window = replace(window, pads=(0, 0, 0, 0))
    covering = window.covering(source.shape[1:3], counts_of(x, shape))
    return channels_first(b, pool(*covering.fitted(b, source)), shape)


def counts_of(x: Value, shape: Sequence[int]) -> Pair:
    """Return how many windows a pool has whose result has a shape."""
    return (1, shape[-1]) if x.type.rank == ROW_RANK else (shape[-2], shape[-1])


ROW_RANK = 3
"""Dimensions of images of one row, with batch and channels."""


def greatest(b: Builder) -> Pool:
    """Take the greatest of each window."""

    def pool(source: Value, window: Window) -> Value:
        quantization = source.quantization
        return b("MAX_POOL2D", source, quantization=quantization, **window.attributes)

    return pool


def adaptive(b: Builder, x: Value, pool: Pool, shape: Sequence[int]) -> Value:
    """Pool windows that cut an image; one operation where all are of one size and in step."""
    source, counts = image(b, x), counts_of(x, shape)
    bands, columns = (cuts_of(source.shape[1 + axis], counts[axis]) for axis in (0, 1))
    down, column = regular_step(bands), regular_step(columns)
    if down and column:
        window = Window((down[0], column[0]), (down[1], column[1]))
        shrunk = pool(*window.fitted(b, source))
    else:
        lines = [
            concat(b, [_tile(b, source, line, cut, pool) for cut in columns], 2) for line in bands
        ]
        shrunk = concat(b, lines, 1)
    return channels_first(b, shrunk, shape)


def _tile(b: Builder, source: Value, line: Pair, cut: Pair, pool: Pool) -> Value:
    part = sliced(b, source, 1, line[0], line[1] - line[0])
    part = sliced(b, part, 2, cut[0], cut[1] - cut[0])
    return pool(part, Window((part.shape[1], part.shape[2])))


def cuts_of(extent: int, count: int) -> list[tuple[int, int]]:
    """Return the start and end of each part, where they overlap or not."""
    return [(index * extent // count, -(-(index + 1) * extent // count)) for index in range(count)]


def regular_step(cuts: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Return size and step if all parts have the same; parts of one place have no step."""
    sizes = {end - start for start, end in cuts}
    steps = set(np.diff([start for start, _ in cuts]).tolist())
    if len(sizes) > 1 or len(steps) > 1 or 0 in steps:
        return None
    return sizes.pop(), int(steps.pop()) if steps else 1
