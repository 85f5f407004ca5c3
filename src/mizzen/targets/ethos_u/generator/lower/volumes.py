"""CONV3D whose kernel has one slice: a convolution of each slice of its input."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.ops.tensor import Conv3d
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.spans import Windows
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.lower.windows import (
    Stage,
    layer_of,
    pair,
    scales_of,
    upright,
)


@rule(Conv3d)
def volume(site: Site) -> Node:
    """CONV3D, and the scale, clip and table behind it."""
    operation = site.operation
    assert isinstance(operation, Conv3d)
    step, slices = operation.stride[0], site.root.shape[1]
    need(not any(operation.pad[:2]), "its slices are padded")
    count, _, *image = operation.input.shape
    layer, windows = upright(
        layer_of(operation),
        Windows(
            (count * slices, *image),
            pair(site.root.shape[2:4]),
            pair(operation.stride[1:]),
            tuple(operation.pad[2:]),
        ),
    )
    finish = site.finish(scales=True)
    stage = Stage(site, layer, finish, scales_of(layer, finish))
    down, across = windows.spans(layer.reach, layer.dilation)

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(operation.input)
        if not pixels(view):
            view = emitter.copied(view, site.origin)
        stepped = view.stepped(1, step, slices)
        for one, made in zip(_slices(windows, stepped), _slices(windows, target), strict=True):
            stage.over(emitter, one, made, down, across)

    return site.node((operation.input,), write)


def _slices(windows: Windows, view: View) -> Iterator[View]:
    """Return the images [H, W, C] of a view [N, D, H, W, C], as windows see them."""
    for volume_ in images(view):
        yield from images(windows.seen(volume_))
