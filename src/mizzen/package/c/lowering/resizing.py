"""Images of another size: which pixels each is between, worked out here in the host's precision.

Ref: TFLite, reference_ops: ResizeBilinear, ResizeBilinearInteger; PyTorch, UpSample.h
(area_pixel_compute_scale, area_pixel_compute_source_index).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mizzen.package.c.lowering.context import Array, Given, Rule, ref
from mizzen.package.c.lowering.reduction import take_along
from mizzen.package.c.lowering.windows import (
    Span,
    Strides,
    Window,
    image_strides,
    planar_strides,
)

ONE = 1 << 10
"""A pixel, in the fixed point of quantised images."""
FLOAT = np.float32
HALF = FLOAT(0.5)
NEVER = 0
EXACTLY = 1
"""Whether the kernel's sums of reals are kept in double."""


@dataclass(frozen=True, slots=True)
class Between:
    """Along an axis, the pixels that each output is between, and how far it is from the first."""

    pixels: Array
    distances: Array


def tflite_bilinear(given: Given) -> None:
    """RESIZE_BILINEAR: in fixed point of quantised numbers, in float32 of reals."""
    source, _ = given.present()
    tensor, target = given.row(source), given.row(given.output()).shape
    given.must(tensor.dtype.name in ("float32", "int8"), "numbers must be float32 or int8")
    place = _real_places if tensor.dtype == FLOAT else _whole_places
    aligned, half = (bool(given.get(name, False)) for name in ("align_corners",
                                                              "half_pixel_centers"))  # fmt: skip
    axes = tuple(
        place(tensor.shape[axis], target[axis], aligned=aligned, half=half) for axis in (1, 2)
    )
    strides = (image_strides(tensor.shape), image_strides(target))
    extents = (
        tensor.shape[0],
        tensor.shape[3],
        (tensor.shape[1], tensor.shape[2]),
        (target[1], target[2]),
    )
    _interpolate(given, source, extents, strides, (axes[0], axes[1]), NEVER)


def _real_places(size: int, target: int, *, aligned: bool, half: bool) -> Between:
    aligns = aligned and target > 1
    scale = FLOAT(size - aligns) / FLOAT(target - aligns)
    numbers = np.arange(target).astype(FLOAT)
    places = (numbers + HALF) * scale - HALF if half else numbers * scale
    low = np.maximum(np.floor(places), 0)
    high = np.minimum(np.ceil(places), size - 1)
    return Between(np.stack([low, high]), places - low.astype(FLOAT))


def _whole_places(size: int, target: int, *, aligned: bool, half: bool) -> Between:
    aligns = int(aligned and target > 1)
    divisor = target - aligns
    scale = (ONE * (size - aligns) + divisor // 2) // divisor
    numbers = np.arange(target, dtype=np.int64)
    places = numbers * scale + (scale // 2 - ONE // 2 if half else 0)
    low = np.maximum(_cut(places), 0)
    high = np.minimum(_cut(places + ONE - 1), size - 1)
    return Between(np.stack([low, high]), places - ONE * low)


def _cut(places: Array) -> Array:
    """Return whole pixels, towards 0."""
    return np.sign(places) * (np.abs(places) // ONE)


def bilinear(given: Given) -> None:
    """PyTorch's bilinear upsampling of images of float32; products are summed in double."""
    source = given.tensor("self" if "self" in given.arguments else "input")
    tensor, target = given.row(source), given.row(given.output()).shape
    given.must(tensor.dtype == FLOAT, "numbers must be float32")
    aligned = bool(given.get("align_corners", False))
    axes = tuple(
        _torch_places(tensor.shape[2 + axis], target[2 + axis], scale, aligned=aligned)
        for axis, scale in enumerate(scales_of(given))
    )
    strides = (planar_strides(tensor.shape), planar_strides(target))
    extents = (
        tensor.shape[0],
        tensor.shape[1],
        (tensor.shape[2], tensor.shape[3]),
        (target[2], target[3]),
    )
    _interpolate(given, source, extents, strides, (axes[0], axes[1]), EXACTLY)


def _torch_places(size: int, target: int, scale: float | None, *, aligned: bool) -> Between:
    numbers = np.arange(target).astype(FLOAT)
    if aligned:
        step = FLOAT(size - 1) / FLOAT(target - 1) if target > 1 else FLOAT(0)
        places = numbers * step
    else:
        step = FLOAT(size) / FLOAT(target) if scale is None else FLOAT(1 / scale)
        # The host fuses product and difference: rounded once.
        exact = np.float64(step) * (numbers + HALF).astype(np.float64) - 0.5
        places = np.maximum(exact.astype(FLOAT), FLOAT(0))
    low = np.minimum(np.floor(places), size - 1)
    high = low + (low < size - 1)
    distances = np.clip(places - low.astype(FLOAT), FLOAT(0), FLOAT(1))
    return Between(np.stack([low, high]), distances)


def scales_of(given: Given) -> tuple[float | None, float | None]:
    """Return the factors of height and width that were asked for, where they were."""
    named = given.arguments.get("scale_factors")
    if isinstance(named, tuple) and len(named) == 2:
        return _factor(named[0]), _factor(named[1])
    return _factor(given.get("scales_h")), _factor(given.get("scales_w"))


def _factor(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def nearest(given: Given) -> None:
    """PyTorch's nearest upsampling of images: lookups along both axes, indices known here."""
    source = given.tensor("self" if "self" in given.arguments else "input")
    tensor, target = given.row(source), given.row(given.output()).shape
    take_along(given, source, {
        2 + axis: _nearest(tensor.shape[2 + axis], target[2 + axis], scale)
        for axis, scale in enumerate(scales_of(given))
    })  # fmt: skip


def _nearest(size: int, target: int, scale: float | None) -> Array:
    step = FLOAT(size) / FLOAT(target) if scale is None else FLOAT(1 / scale)
    numbers = np.arange(target).astype(FLOAT)
    return np.minimum(np.floor(numbers * step), size - 1).astype(np.int64)


def _interpolate(
    given: Given,
    source: int,
    extents: tuple[int, int, tuple[int, int], tuple[int, int]],
    strides: tuple[Strides, Strides],
    axes: tuple[Between, Between],
    wide: int,
) -> None:
    batches, channels, sizes, targets = extents
    lines, columns = (Span(target, 1, size) for size, target in zip(sizes, targets, strict=True))
    window = Window(batches, channels, channels, lines, columns, *strides)
    kind = np.float32 if given.row(source).dtype == FLOAT else np.int32
    tables = [
        ref(given.lowering.constant(held, dtype))
        for axis in axes
        for held, dtype in ((axis.pixels, np.int32), (axis.distances, kind))
    ]
    given.emit("interpolate", (ref(source), window.numbers, *tables, wide), (given.output(),))


RULES: Mapping[str, Rule] = {
    "tflite::RESIZE_BILINEAR": tflite_bilinear,
    "aten::upsample_bilinear2d": bilinear,
    "aten::upsample_bilinear2d.vec": bilinear,
    "aten::upsample_nearest2d": nearest,
    "aten::upsample_nearest2d.vec": nearest,
}
