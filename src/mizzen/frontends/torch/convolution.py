"""Convolutions of images: groups, depth, transposed ones, whatever numbers are multiplied.

PyTorch has channels first, TOSA last: an operation is TRANSPOSE, CONV2D, TRANSPOSE. What is done
twice is taken out by the passes. Ref: TOSA 1.0, 2.3.3 CONV2D, 2.3.5 DEPTHWISE_CONV2D, 2.3.11
TRANSPOSE_CONV2D.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from mizzen.frontends.torch.call import Call
from mizzen.frontends.torch.shapes import channels_first, concat, fit, image, pads_of, pair, slice_
from mizzen.frontends.torch.tensors import Array
from mizzen.graph import Value

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
            "CONV2D", slice_(call.b, source, 3, index * inputs, inputs), part.weight, attributes
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
            call, slice_(b, source, 3, group * channels, channels),
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
        found: Array = np.zeros(shape, weight.dtype)
        found.swapaxes(0, axis)[::step] = weight.swapaxes(0, axis)
        weight = found
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
        value = slice_(call.b, value, 1 + axis, before, value.shape[1 + axis] - before - after)
    return value
