"""Convolutions of volumes, as convolutions of images.

An output slice sees as many slices of the input as the kernel is deep. Laid out as channels of one
image, they are what a CONV2D adds up; output slices are images of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.frontends.arrangement.movement import (
    channels_first,
    concat,
    fit,
    image,
    padded,
    permuted,
    reshape,
    sliced,
)
from mizzen.frontends.arrangement.windows import channels_last_kernel
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_convolution import layer_of, weight_of
from mizzen.frontends.torch.windows import need_batch, pads_of
from mizzen.graph import Value

SLICES_FIRST = (0, 2, 1, 3, 4)
"""From [N,C,D,H,W] to [N,D,C,H,W], and back."""


def conv3d(call: IntCall) -> Pending:
    """Convolve [N,C,D,H,W]; groups have no such form."""
    need_batch(call, len(SLICES_FIRST))
    call.need(int(call["groups"]) == 1, "it has groups", "use groups=1, or images")
    x, (integers, scales) = call.real("input"), weight_of(call)
    outputs, _, depth, height, width = integers.shape
    flat = integers.transpose(SLICES_FIRST).reshape(outputs, -1, height, width)
    weight = channels_last_kernel(flat)
    stride, dilation = (_of_plane(_triple(call[name])) for name in ("stride", "dilation"))

    def emit(target: Target) -> Value:
        b = call.b
        source = image(b, _beside(call, x, depth))
        pads = pads_of(_borders(call["padding"]), 2, (height, width), dilation)
        source, pad = fit(b, source, (height, width), stride, dilation, pads)
        attributes = {"pad": pad, "stride": stride, "dilation": dilation}
        layer = layer_of(call, x, weight, scales, target)
        value = layer.product("CONV2D", source, weight, attributes)
        batch, channels, slices, lines, columns = call.shape
        value = channels_first(b, value, (batch * slices, channels, lines, columns))
        value = reshape(b, value, (batch, slices, channels, lines, columns))
        return permuted(b, value, SLICES_FIRST)

    return Pending(emit, call.shape)


def _beside(call: IntCall, x: Real, taps: int) -> Value:
    """Return [N * output slices, taps * C, H, W]: for each output slice, what it sees."""
    b, count = call.b, call.shape[2]
    batch, channels, depth, height, width = x.value.shape
    stride, dilation = _triple(call["stride"])[0], _triple(call["dilation"])[0]
    before, after = _around(call["padding"], taps, dilation)
    # The last group of a stride is whole, too.
    after = max(after, (taps - 1) * dilation + count * stride - depth - before)
    value = reshape(b, x.value, (batch, channels, depth, height * width))
    zero = b.constant([x.zero_point], x.value.dtype)
    value = padded(b, value, (0, 0, 0, 0, before, after, 0, 0), zero)
    value = permuted(b, value, (0, 2, 1, 3))
    parts: list[Value] = []
    for tap in range(taps):
        part = sliced(b, value, 1, tap * dilation, count * stride)
        part = reshape(b, part, (batch, count, stride * channels, height * width))
        parts.append(sliced(b, part, 2, 0, channels))
    return reshape(b, concat(b, parts, 2), (batch * count, taps * channels, height, width))


def _triple(value: Sequence[int] | int) -> list[int]:
    items = [value] if isinstance(value, int) else [int(item) for item in value]
    return items * 3 if len(items) == 1 else items


def _around(padding: Sequence[int] | int | str, taps: int, dilation: int) -> tuple[int, int]:
    """Return how many slices are put before and after."""
    if isinstance(padding, str):
        above, below, _, _ = pads_of(padding, 2, (taps, 1), (dilation, 1))
        return above, below
    amount = _triple(padding)[0]
    return amount, amount


def _borders(padding: Sequence[int] | int | str) -> Sequence[int] | str:
    return padding if isinstance(padding, str) else _of_plane(_triple(padding))


def _of_plane(sizes: Sequence[int]) -> tuple[int, int]:
    _, height, width = sizes
    return height, width
