"""Moving elements between channels and pixels, and round dimensions.

At most four dimensions at a time: the NPU transposes no more.
"""

from __future__ import annotations

from math import prod

from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.int_lowering.int_convolution import reshape, slice_, transpose
from mizzen.frontends.torch.int_lowering.int_layout import moved_input
from mizzen.frontends.torch.values import Term
from mizzen.graph import Value
from mizzen.ops import Builder


@lowers("aten.pixel_shuffle.default")
def spread(call: Call) -> Term:
    """Channels become pixels: [..., C*r*r, H, W] -> [..., C, H*r, W*r]."""
    ratio = int(call["upscale_factor"])
    *front, channels, height, width = call.shape_of("self")
    planes = prod(front) * channels // ratio**2

    def move(value: Value) -> Value:
        b = call.b
        value = reshape(b, value, (planes * ratio, ratio, height, width))
        value = transpose(b, value, (0, 2, 3, 1))
        value = reshape(b, value, (planes, ratio, height, width * ratio))
        return reshape(b, transpose(b, value, (0, 2, 1, 3)), call.shape)

    return moved_input(call, move)


@lowers("aten.pixel_unshuffle.default")
def gathered(call: Call) -> Term:
    """Pixels become channels: [..., C, H*r, W*r] -> [..., C*r*r, H, W]."""
    ratio = int(call["downscale_factor"])
    *front, channels, height, width = call.shape_of("self")
    planes, rows, columns = prod(front) * channels, height // ratio, width // ratio

    def move(value: Value) -> Value:
        b = call.b
        value = reshape(b, value, (planes, rows, ratio, width))
        value = transpose(b, value, (0, 2, 1, 3))
        value = reshape(b, value, (planes * ratio, rows, columns, ratio))
        return reshape(b, transpose(b, value, (0, 3, 1, 2)), call.shape)

    return moved_input(call, move)


@lowers("aten.channel_shuffle.default")
def shuffled(call: Call) -> Term:
    """Channels of groups in turns, of [N,C,...]."""
    groups = int(call["groups"])
    count, channels, *space = call.shape

    def move(value: Value) -> Value:
        b = call.b
        value = reshape(b, value, (count, groups, channels // groups, prod(space)))
        return reshape(b, transpose(b, value, (0, 2, 1, 3)), call.shape)

    return moved_input(call, move)


@lowers("aten.movedim.int")
def moved(call: Call) -> Term:
    """One dimension in another place."""
    rank = len(call.shape)
    source, target = int(call["source"]) % rank, int(call["destination"]) % rank
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return moved_input(call, lambda value: transpose(call.b, value, order))


@lowers("aten.roll.default")
def rolled(call: Call) -> Term:
    """Dimensions moved round; all elements as one row where no dimension is named."""
    shifts, dims = list(call["shifts"]), list(call["dims"])

    def move(value: Value) -> Value:
        b = call.b
        if not dims:
            flat = reshape(b, value, (prod(call.shape),))
            return reshape(b, _rolled(b, flat, int(shifts[0]), 0), call.shape)
        for shift, dim in zip(shifts, dims, strict=True):
            value = _rolled(b, value, int(shift), int(dim) % len(call.shape))
        return value

    return moved_input(call, move)


def _rolled(b: Builder, value: Value, shift: int, axis: int) -> Value:
    size = value.shape[axis]
    cut = -shift % size
    if not cut:
        return value
    parts = slice_(b, value, axis, cut, size - cut), slice_(b, value, axis, 0, cut)
    return b("CONCAT", *parts, axis=axis, quantization=value.quantization)
