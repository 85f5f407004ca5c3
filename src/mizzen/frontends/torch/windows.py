"""Windows over images: convolutions and pools, whatever numbers they take.

A convolution has groups, depth, or is transposed; a pool has windows, or the tiles of adaptive
pools. How terms are multiplied and means are taken is a profile's own. PyTorch has channels first,
TOSA last: an operation is TRANSPOSE, CONV2D, TRANSPOSE, and what is done twice is taken out by the
passes. Ref: TOSA 1.0, 2.3.2 AVG_POOL2D, 2.3.3 CONV2D, 2.3.5 DEPTHWISE_CONV2D, 2.3.9 MAX_POOL2D,
2.3.11 TRANSPOSE_CONV2D.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import (
    Pads,
    channels_first,
    concat,
    fit,
    image,
    padded,
    sliced,
)
from mizzen.frontends.torch.call import Call, Term
from mizzen.frontends.torch.movement import cuts_of, pads_of, pair, regular_step, window_pair
from mizzen.frontends.torch.program import Array
from mizzen.graph import Value
from mizzen.ops import Builder

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


def convolved(call: Call[Any], x: Value, layer: Layer) -> Value:
    """Convolve [N,C,H,W], [C,H,W], [N,C,W] or [C,W], groups too."""
    b, spatial = call.b, len(call.shape_of("weight")) - 2
    kernel = _kernel(layer)
    stride, dilation = pair(call["stride"], 1), pair(call["dilation"], 1)
    pads = pads_of(call["padding"], spatial, kernel, dilation)
    source, pad = fit(b, image(b, x, spatial), kernel, stride, dilation, pads)
    attributes = {"pad": pad, "stride": stride, "dilation": dilation}
    value = _grouped(call, source, layer, attributes)
    return channels_first(b, value, call.shape)


def _kernel(layer: Layer) -> tuple[int, int]:
    _, height, width, _ = layer.weight.shape
    return height, width


def _grouped(call: Call[Any], source: Value, layer: Layer, attributes: dict[str, Any]) -> Value:
    channels, outputs, groups = source.shape[3], layer.weight.shape[0], int(call["groups"])
    if groups == 1:
        return layer.product("CONV2D", source, layer.weight, attributes)
    if groups == channels:  # the kernel [C*M,KH,KW,1] becomes [KH,KW,C,M]
        weight = layer.weight.reshape(channels, -1, *_kernel(layer)).transpose(2, 3, 0, 1)
        return layer.product("DEPTHWISE_CONV2D", source, weight, attributes)
    inputs, each = channels // groups, outputs // groups
    parts = [layer.part(index * each, each) for index in range(groups)]
    values = [
        part.product(
            "CONV2D", sliced(call.b, source, 3, index * inputs, inputs), part.weight, attributes
        )
        for index, part in enumerate(parts)
    ]
    return concat(call.b, values, axis=3)


def convolved_back(call: Call[Any], x: Value, layer: Layer) -> Value:
    """Convolve [N,C,H,W] transposed; the layer's weight is of `transposed_kernel`."""
    b, spatial, groups = call.b, len(call.shape_of("weight")) - 2, int(call["groups"])
    source = image(b, x, spatial)
    channels, each = source.shape[3] // groups, layer.weight.shape[0] // groups
    (top, left), (below, right) = pair(call["padding"], 0), pair(call["output_padding"], 0)
    pads = (-top, below - top, -left, right - left)
    values = [
        _with_out_pad(
            call, sliced(b, source, 3, group * channels, channels),
            layer.part(group * each, each), pads,
        )
        for group in range(groups)
    ]  # fmt: skip
    return channels_first(b, concat(b, values, 3), call.shape)


def transposed_kernel(call: Call[Any], weight: Array) -> Array:
    """Return a weight [C,O/groups,KH,KW] as [O,KH,KW,C/groups]; dilation puts zeros between."""
    for axis, step in zip(range(2, weight.ndim), _steps(call, weight.ndim - 2), strict=True):
        shape = list(weight.shape)
        shape[axis] = (shape[axis] - 1) * step + 1
        spread: Array = np.zeros(shape, weight.dtype)
        spread.swapaxes(0, axis)[::step] = weight.swapaxes(0, axis)
        weight = spread
    groups = np.split(weight, int(call["groups"]))
    return channels_last_kernel(np.concatenate(groups, axis=1).swapaxes(0, 1))


def _steps(call: Call[Any], spatial: int) -> Sequence[int]:
    return pair(call["dilation"], 1)[-spatial:]


def channels_last_kernel(weight: Array) -> Array:
    """Return a weight [O,C,KH,KW] or [O,C,KW] as [O,KH,KW,C]."""
    if weight.ndim == 3:
        weight = weight[:, :, None, :]
    return weight.transpose(0, 2, 3, 1)


def _with_out_pad(call: Call[Any], source: Value, layer: Layer, pads: Sequence[int]) -> Value:
    """Add the operation, then cut away what TOSA's `out_pad` cannot: a whole kernel or more."""
    kernel = _kernel(layer)
    able = [max(pad, 1 - kernel[index // 2]) for index, pad in enumerate(pads)]
    attributes = {"out_pad": tuple(able), "stride": pair(call["stride"], 1)}
    value = layer.product("TRANSPOSE_CONV2D", source, layer.weight, attributes)
    for axis in (0, 1):
        before, after = (able[index] - pads[index] for index in (2 * axis, 2 * axis + 1))
        value = sliced(call.b, value, 1 + axis, before, value.shape[1 + axis] - before - after)
    return value


Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A window's size, steps and padding (top, bottom, left, right)."""

    kernel: Pair
    stride: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)

    @staticmethod
    def of(call: Call[Any], spatial: int) -> Window:
        """Take a node apart; `spatial` is 2, or 1 for one row."""
        is_line = spatial == 1
        kernel = window_pair(call["kernel_size"], is_line)
        stride = window_pair(call["stride"], is_line) if call["stride"] else kernel
        high, wide = window_pair(call["padding"], is_line, 0)
        dilation = window_pair(call.arguments.get("dilation", 1), is_line)
        call.need(dilation == (1, 1), "its window is dilated", "pool without dilation")
        return Window(kernel, stride, (high, high, wide, wide))

    def covering(self, source: Value, counts: Pair) -> Window:
        """Pad at the end as far as the last of some windows reaches (``ceil_mode``)."""
        pads = list(self.pads)
        for axis in (0, 1):
            needed = (counts[axis] - 1) * self.stride[axis] + self.kernel[axis]
            have = source.shape[1 + axis] + pads[2 * axis] + pads[2 * axis + 1]
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


def spatial_of(call: Call[Any]) -> int:
    """Return how many dimensions of an image an operator is for: 2, or 1 for rows."""
    return 1 if "1d" in str(call.node.target) else 2


def _counts(call: Call[Any]) -> Pair:
    """Return how many windows there are."""
    shape = call.shapes[0]
    return (1, shape[-1]) if spatial_of(call) == 1 else (shape[-2], shape[-1])


def window_count(call: Call[Any]) -> int:
    """Return how many elements a window has."""
    high, wide = Window.of(call, spatial_of(call)).kernel
    return high * wide


def max_pool2d(call: Call[Term]) -> Term:
    """Return the greatest of each window."""
    window = Window.of(call, spatial_of(call))
    return call.moved(lambda value: pooled(call, value, window, _maximum(call)))


def max_pool2d_with_indices(call: Call[Term]) -> tuple[Term, ...]:
    """Return the greatest of each window; where it was, TOSA does not say."""
    call.need(call.used <= {0}, "it gives indices", "use max_pool2d without return_indices")
    return (max_pool2d(call),)


def adaptive_max_pool2d(call: Call[Term]) -> tuple[Term, ...]:
    """Return the greatest of windows that cut an image into a given number of rows and columns."""
    call.need(call.used <= {0}, "it gives indices", "pool without return_indices")
    return (call.moved(lambda value: adaptive(call, value, _maximum(call))),)


def _maximum(call: Call[Any]) -> Pool:
    def pool(source: Value, window: Window) -> Value:
        quantization = source.quantization
        return call.b("MAX_POOL2D", source, quantization=quantization, **window.attributes)

    return pool


def pooled(call: Call[Any], value: Value, window: Window, pool: Pool) -> Value:
    """Pool [N,C,H,W], [C,H,W], [N,C,W] or [C,W]."""
    source = image(call.b, value, spatial_of(call))
    source, window = window.covering(source, _counts(call)).fitted(call.b, source)
    return channels_first(call.b, pool(source, window), call.shapes[0])


def averaged(call: Call[Any], value: Value, zero: int, mean: Pool) -> Value:
    """Pool by means; padding counts, as the integer `zero`, only where the model says so."""
    b, spatial = call.b, spatial_of(call)
    window, source = Window.of(call, spatial), image(b, value, spatial)
    divides = bool(call.arguments.get("divisor_override"))
    if divides:
        window = window.covering(source, _counts(call))
    if (call["count_include_pad"] or divides) and any(window.pads):
        filling = b.constant([zero], source.dtype)
        source = padded(b, source, (0, 0, *window.pads, 0, 0), filling)
        window = replace(window, pads=(0, 0, 0, 0))
    source, window = window.covering(source, _counts(call)).fitted(b, source)
    return channels_first(b, mean(source, window), call.shape)


def adaptive(call: Call[Any], value: Value, pool: Pool) -> Value:
    """Pool windows that cut an image; one operation where all are of one size and in step."""
    b, spatial = call.b, spatial_of(call)
    source, counts = image(b, value, spatial), _counts(call)
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
    return channels_first(b, shrunk, call.shapes[0])


def _tile(b: Builder, source: Value, line: Pair, cut: Pair, pool: Pool) -> Value:
    part = sliced(b, source, 1, line[0], line[1] - line[0])
    part = sliced(b, part, 2, cut[0], cut[1] - cut[0])
    return pool(part, Window((part.shape[1], part.shape[2])))
