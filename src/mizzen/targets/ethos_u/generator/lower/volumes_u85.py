"""CONV3D on U85 whose kernel has several slices: slices of the input side by side as channels.

A copy lays them so. Each slice of the result is a convolution of the channels that are its slices.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.ops.tensor import Conv3d
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.spans import Span, Windows
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.lower.windows import (
    Stage,
    layer_of_slices,
    pair,
    scales_of,
    upright,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Slice:
    """One slice of the result: the slices that it sees from `first` on, and its convolution."""

    first: int
    count: int
    stage: Stage
    windows: Windows
    down: list[Span]
    across: list[Span]


@rule_u85(Conv3d)
def volume(site: Site) -> Node:
    """CONV3D of a kernel of several slices, and the scale, clip and table after it."""
    operation = site.operation
    assert isinstance(operation, Conv3d)
    need(operation.weight.shape[1] > 1 or any(operation.pad[:2]), "its kernel has one slice")
    need(operation.dilation[0] == 1, "its kernel leaves slices out")
    images, depth, height, width, channels = operation.input.shape
    slices = [_slice(site, operation, place) for place in range(site.root.shape[1])]

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(operation.input)
        shape = images, height, width, depth, channels
        dtype = emitter.dtype(view)
        beside = emitter.tensor("slices", (images, height, width, depth * channels), dtype)
        apart = beside.reshaped(shape)
        assert apart is not None
        emitter.copy(view.permuted((0, 2, 3, 1, 4)), apart, site.origin)
        for image in range(images):
            for place, each in enumerate(slices):
                seen = _image(beside, image).part(2, each.first * channels, each.count * channels)
                made = _image(_image(target, image), place)
                one, other = (_whole(each.windows, part) for part in (seen, made))
                each.stage.over(emitter, one, other, each.down, each.across)

    return site.node((operation.input,), write)


def _slice(site: Site, operation: Conv3d, place: int) -> _Slice:
    _, depth, height, width, channels = operation.input.shape
    start = place * operation.stride[0] - operation.pad[0]
    count = operation.weight.shape[1]
    left_out = max(-start, 0), max(start + count - depth, 0)
    need(sum(left_out) < count, "a slice of its result sees none of its input")
    layer = layer_of_slices(operation, left_out)
    seen = count - sum(left_out)
    windows = Windows(
        (1, height, width, seen * channels),
        pair(site.root.shape[2:4]),
        pair(operation.stride[1:]),
        tuple(operation.pad[2:]),
    )
    layer, windows = upright(layer, windows)
    finish = site.finish(scales=True)
    stage = Stage(site, layer, finish, scales_of(layer, finish))
    down, across = windows.spans(layer.reach, layer.dilation)
    return _Slice(max(start, 0), seen, stage, windows, down, across)


def _image(view: View, index: int) -> View:
    """Return one element along the first axis, without that axis."""
    part = view.part(0, index, 1)
    return View(part.tensor, part.offset, part.shape[1:], part.strides[1:])


def _whole(windows: Windows, image: View) -> View:
    """Return an image [H, W, C] as windows see it."""
    shape = (1, *image.shape)
    view = View(image.tensor, image.offset, shape, (image.elements, *image.strides))
    return _image(windows.seen(view), 0)
