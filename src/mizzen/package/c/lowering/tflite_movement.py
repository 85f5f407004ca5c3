"""TFLite's operators that only move elements: blocks of images, mirrors, repetitions.

Ref: TFLite, reference_ops: SpaceToBatchND, BatchToSpaceND, DepthToSpace, SpaceToDepth; TFLite
Micro, kernels/mirror_pad.cc and resize_nearest_neighbor.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mizzen.package.c.lowering.context import Array, Given, Rule, Shape, elements
from mizzen.package.c.lowering.reduction import take_along
from mizzen.package.c.lowering.strides import (
    View,
    broadcast_strides,
    copy,
    dense,
    fill,
    move,
    whole,
)

REFLECT = 0
"""The mode of MIRROR_PAD that leaves the element at the edge out."""


def split_unevenly(given: Given) -> None:
    """SPLIT_V, whose sizes and axis must be constant."""
    source, _, place = given.present()
    shape = given.row(source).shape
    axis = int(given.held(place).item()) % len(shape)
    strides = dense(shape)
    first = 0
    for output in given.call.outputs:
        given.must(output is not None, "every output must be wanted")
        part = given.row(output or 0).shape
        move(given, source, output or 0, View(part, strides, first), whole(part))
        first += part[axis] * strides[axis]


def reversed_axes(given: Given) -> None:
    """REVERSE_V2, whose axes must be constant."""
    source, axes = given.present()
    shape = given.row(source).shape
    strides = list(dense(shape))
    first = 0
    reversed_places: list[int] = given.held(axes).tolist()
    for axis in reversed_places:
        first += strides[axis] * (shape[axis] - 1)
        strides[axis] = -strides[axis]
    move(given, source, given.output(), View(shape, tuple(strides), first), whole(shape))


def broadcast(given: Given) -> None:
    """BROADCAST_TO."""
    source, *_ = given.present()
    shape, target = given.row(source).shape, given.row(given.output()).shape
    view = View(target, broadcast_strides(shape, target))
    move(given, source, given.output(), view, whole(target))


def filled(given: Given) -> None:
    """FILL with an element that is computed, or known."""
    _, value = given.present()
    size = (elements(given.row(given.output()).shape),)
    move(given, value, given.output(), View(size, (0,)), whole(size))


def zeros(given: Given) -> None:
    """ZEROS_LIKE."""
    fill(given, given.output(), 0)


def shape_of(given: Given) -> None:
    """SHAPE, which is known here."""
    (source,) = given.present()
    shape = given.lowering.constant(given.row(source).shape, given.row(given.output()).dtype)
    copy(given, shape, given.output())


def depth_to_space(given: Given) -> None:
    """DEPTH_TO_SPACE: channels become blocks of pixels."""
    source = _image(given)
    _blocks(given, source, given.output(), given.output(), source)


def space_to_depth(given: Given) -> None:
    """SPACE_TO_DEPTH: blocks of pixels become channels."""
    source = _image(given)
    _blocks(given, source, given.output(), source, given.output())


def _blocks(given: Given, source: int, output: int, large: int, small: int) -> None:
    """Move elements between an image and one of fewer pixels and more channels."""
    size = given.whole("block_size")
    batches, height, width, wide = given.row(small).shape
    depth = given.row(large).shape[3]
    extents = (batches, height, size, width, size, depth)
    strides = dense((batches, height, width, wide))
    narrow = (strides[0], strides[1], size * depth, strides[2], depth, 1)
    image = dense((batches, height, size, width, size, depth))
    views = {small: View(extents, narrow), large: View(extents, image)}
    move(given, source, output, views[source], views[output])


def _image(given: Given) -> int:
    (source,) = given.present()
    given.must(len(given.row(source).shape) == 4, "there must be four axes")
    return source


def space_to_batch(given: Given) -> None:
    """SPACE_TO_BATCH_ND, whose blocks and paddings must be constant."""
    source, block, paddings = given.present()
    output = given.output()
    tensor = given.row(output)
    pads = given.held(paddings).tolist()
    # TFLite Micro's kernel takes the padding from memory that it never sets.
    if any(map(any, pads)):
        fill(given, output, tensor.zero_points[0] if tensor.zero_points else 0)
    before = [low for low, _ in pads]
    for taken, put in _batches(given.row(source).shape, tensor.shape, given.held(block), before):
        move(given, source, output, taken, put)


def batch_to_space(given: Given) -> None:
    """BATCH_TO_SPACE_ND, whose blocks and crops must be constant."""
    source, block, crops = given.present()
    output = given.output()
    before = [low for low, _ in given.held(crops).tolist()]
    shapes = given.row(output).shape, given.row(source).shape
    for put, taken in _batches(*shapes, given.held(block), before):
        move(given, source, output, taken, put)


def _batches(
    image: Shape, blocks: Shape, sizes: Array, before: list[int]
) -> Iterator[tuple[View, View]]:
    """Return the view of each place in a block in the image, and in the batch of all blocks.

    before  pixels of the padded image before the image, along each axis of a block
    """
    inside, outside = dense(image), dense(blocks)
    for place in np.ndindex(*sizes.tolist()):
        first_in, first_out = 0, int(np.ravel_multi_index(place, sizes.tolist())) * image[0]
        first_out *= outside[0]
        shape, strides = [image[0]], [inside[0]]
        for axis, (at, size, pad) in enumerate(zip(place, sizes.tolist(), before, strict=True), 1):
            least = max(0, -((at - pad) // size))
            most = min(blocks[axis], -((at - pad - image[axis]) // size))
            shape.append(max(0, most - least))
            strides.append(inside[axis] * size)
            first_in += (least * size + at - pad) * inside[axis]
            first_out += least * outside[axis]
        rest = slice(len(shape), None)
        extents = (*shape, *image[rest])
        yield (
            View(extents, (*strides, *inside[rest]), first_in),
            View(extents, outside, first_out),
        )


def mirrored(given: Given) -> None:
    """MIRROR_PAD, whose paddings must be constant."""
    source, paddings = given.present()
    shape = given.row(source).shape
    kind = "reflect" if given.whole("mode", REFLECT) == REFLECT else "symmetric"
    pads = given.held(paddings).tolist()
    picked = {
        axis: np.pad(np.arange(shape[axis]), tuple(pad), kind)
        for axis, pad in enumerate(pads)
        if any(pad)
    }
    take_along(given, source, picked)


def nearest(given: Given) -> None:
    """RESIZE_NEAREST_NEIGHBOR: lookups along both axes, in float32 as the host picks them."""
    source, _ = given.present()
    shape, target = given.row(source).shape, given.row(given.output()).shape
    given.must(len(shape) == 4, "there must be four axes")
    aligned = bool(given.get("align_corners", False))
    half = np.float32(0.5 if given.get("half_pixel_centers", False) else 0)
    take_along(given, source, {
        axis: _picked(shape[axis], target[axis], half, aligned=aligned) for axis in (1, 2)
    })  # fmt: skip


def _picked(size: int, target: int, half: np.float32, *, aligned: bool) -> Array:
    """Return which pixel each of a resized row is."""
    aligns = aligned and target > 1
    scale = np.float32(size - aligns) / np.float32(target - aligns)
    places = (np.arange(target).astype(np.float32) + half) * scale
    pixels = np.floor(places + np.float32(0.5)) if aligned else np.floor(places)
    return np.clip(pixels.astype(np.int64), 0, size - 1)


RULES: Mapping[str, Rule] = {
    "tflite::SPLIT_V": split_unevenly,
    "tflite::REVERSE_V2": reversed_axes,
    "tflite::BROADCAST_TO": broadcast,
    "tflite::FILL": filled,
    "tflite::ZEROS_LIKE": zeros,
    "tflite::SHAPE": shape_of,
    "tflite::DEPTH_TO_SPACE": depth_to_space,
    "tflite::SPACE_TO_DEPTH": space_to_depth,
    "tflite::SPACE_TO_BATCH_ND": space_to_batch,
    "tflite::BATCH_TO_SPACE_ND": batch_to_space,
    "tflite::MIRROR_PAD": mirrored,
    "tflite::RESIZE_NEAREST_NEIGHBOR": nearest,
}
