"""Images of another height and width.

TFLite finds the places of samples in float32 (nearest) or in 1024ths (bilinear). They are computed
as it does, and RESIZE is used where it has the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.tflite.context import Call, lowers
from mizzen.frontends.tflite.lowering.requantization import Scale, rescale
from mizzen.frontends.tflite.tflite_tensors import Array
from mizzen.graph import DType, ResizeMode, RoundingMode, Value

UNIT = 1 << 10
"""Parts of a pixel in which TFLite finds bilinear samples."""

MEANS = Scale(np.array([1 << 30]), np.array([51]))
"""Divides by 2**21, ties away from zero: no bit is lost in the first rounding of even values."""

MEANS_UP = Scale(np.array([1 << 30]), np.array([51]), rounding=RoundingMode.SINGLE_ROUND)
"""Divides by 2**21, ties up."""

KEPT_BITS = 14
"""Bits behind the point that sums of 16 bits keep."""

DROPPED = Scale(
    np.array([1 << 14]),
    np.array([14 + 21 - KEPT_BITS]),
    long=False,
    rounding=RoundingMode.SINGLE_ROUND,
)
"""Takes the bits of 2**21 off that are not kept."""

MEANS_OF_SHORT = Scale(np.array([1 << 30]), np.array([30 + KEPT_BITS]))
"""Divides by what is left of 2**21, ties away from zero."""

MOST_STEPS, LARGEST_UNIT = 16, 1 << 11


@dataclass(frozen=True, slots=True)
class _Axis:
    """RESIZE along one axis: sample i is at (i * step + offset) / unit."""

    unit: int
    step: int
    offset: int
    border: int

    @property
    def fraction_bits(self) -> int:
        """Bits behind the point that weights have."""
        common = gcd(self.unit, self.step, self.offset)
        return (self.unit // common).bit_length() - 1


@lowers("RESIZE_NEAREST_NEIGHBOR")
def nearest(call: Call) -> Value:
    """RESIZE, nearest."""
    _need_image(call)
    axes = [_nearest_axis(call, axis) for axis in (1, 2)]
    return _resize(call, axes, ResizeMode.NEAREST)


@lowers("RESIZE_BILINEAR")
def bilinear(call: Call) -> Value:
    """RESIZE, bilinear, of which the height's weights add up to 2048 and the width's to 1024;
    RESCALE by 2**-21. Sums of 16 bits lose the bits that they do not need by a RESCALE before.

    LiteRT's kernel for unsigned bytes computes in float32: exactly, if its weights have 16 bits.
    One pixel whose corners are aligned is a TILE: RESIZE has no step of nothing.
    """
    dtype = call.need_types(FileType.INT8, FileType.INT16, FileType.UINT8)
    _need_image(call)
    if call.option("align_corners") and call.input(0).shape[1:3] == (1, 1):
        return call.b("TILE", call.value(), call.b.shape((1, *call.output().shape[1:3], 1)))
    axes = [_bilinear_axis(call, axis, doubled=axis == 1) for axis in (1, 2)]
    value = _resize(call, axes, ResizeMode.BILINEAR)
    fraction_bits = sum(axis.fraction_bits for axis in axes)
    if dtype is FileType.UINT8:
        call.need(fraction_bits <= 16 and _is_exact(call), "its kernel rounds its weights")
        return rescale(call.b, value, MEANS_UP, DType.INT8, bound=1 << 28)
    if dtype is FileType.INT8:
        return rescale(call.b, value, MEANS, DType.INT8, bound=1 << 28)
    call.need(fraction_bits < KEPT_BITS, "its sums of 16 bits have more than 32")
    sums = rescale(call.b, value, DROPPED, DType.INT32, bound=1 << 37)
    return rescale(call.b, sums, MEANS_OF_SHORT, DType.INT16, bound=1 << 30)


def _is_exact(call: Call) -> bool:
    """Whether the distance of samples is one of 1024ths that are not rounded."""
    for axis in (1, 2):
        size, new_size = _sizes(call, axis)
        corners = call.option("align_corners") and new_size > 1
        size, new_size = (size - 1, new_size - 1) if corners else (size, new_size)
        if UNIT * size % new_size:
            return False
    return True


def _need_image(call: Call) -> None:
    call.need(len(call.input(0).shape) == len(call.output().shape) == 4, "its input is no image")
    call.need(call.input(0).type is call.output().type, "its output is of another type")
    size = call.output().shape[1:3]
    call.need(call.integers(1) == size, "its output has not the size that it asks for")


def _resize(call: Call, axes: list[_Axis], mode: ResizeMode) -> Value:
    y, x = axes
    b = call.b
    return b(
        "RESIZE",
        call.value(),
        b.shape([y.unit, y.step, x.unit, x.step]),
        b.shape([y.offset, x.offset]),
        b.shape([y.border, x.border]),
        mode=mode,
    )


def _sizes(call: Call, axis: int) -> tuple[int, int]:
    return call.input(0).shape[axis], call.output().shape[axis]


def _nearest_axis(call: Call, axis: int) -> _Axis:
    size, new_size = _sizes(call, axis)
    wanted = _nearest_places(call, size, new_size)
    corners, centers = bool(call.option("align_corners")), bool(call.option("half_pixel_centers"))
    if corners and new_size > 1:
        step, unit = size - 1, new_size - 1
    else:
        step, unit = size, new_size
    if not step:  # one pixel, taken everywhere
        step, unit = 1, 16
    common = gcd(step, unit)
    step, unit = 2 * step // common, 2 * unit // common
    # RESIZE takes the pixel that is nearest, TFLite the one that the place is in, or is nearest to.
    for offset in ((step if centers else 0) // 2 - (0 if corners else unit // 2),):
        found = _fitted(size, new_size, unit, step, offset)
        places = np.arange(new_size) * step + offset
        index, past = places // unit, places % unit
        index = np.where(2 * past >= unit, np.minimum(index + 1, size - 1), np.maximum(index, 0))
        if found is not None and (index == wanted).all():
            return found
    raise RefusedError("its samples are not where RESIZE has them")


def _nearest_places(call: Call, size: int, new_size: int) -> Array:
    """Return which pixels TFLite takes, in float32."""
    corners = bool(call.option("align_corners"))
    centers = bool(call.option("half_pixel_centers"))
    scale = np.float32(size) / np.float32(new_size)
    if corners and new_size > 1:
        scale = np.float32(size - 1) / np.float32(new_size - 1)
    places = (np.arange(new_size, dtype=np.float32) + np.float32(0.5 if centers else 0)) * scale
    whole = np.floor(places.astype(np.float64) + 0.5) if corners else np.floor(places)
    return np.clip(whole.astype(np.int64), 0, size - 1)


def _bilinear_axis(call: Call, axis: int, *, doubled: bool) -> _Axis:
    size, new_size = _sizes(call, axis)
    step = (UNIT * size + new_size // 2) // new_size
    if call.option("align_corners") and new_size > 1:
        step = (UNIT * (size - 1) + (new_size - 1) // 2) // (new_size - 1)
    offset = step // 2 - UNIT // 2 if call.option("half_pixel_centers") else 0
    last = (new_size - 1) * step + offset
    call.need(last < size * UNIT, "its last sample is outside its input")
    factor = 2 if doubled else 1
    found = _fitted(size, new_size, UNIT * factor, step * factor, offset * factor)
    if found is None:
        raise RefusedError("its scale is beyond what RESIZE can do")
    return found


def _fitted(size: int, new_size: int, unit: int, step: int, offset: int) -> _Axis | None:
    """Return an axis with the border that makes the result's size; None if RESIZE has none."""
    border = (new_size - 1) * step - (size - 1) * unit + offset
    allowed = (
        0 < unit <= LARGEST_UNIT
        and 0 < step < MOST_STEPS * unit
        and -unit <= offset < MOST_STEPS * unit
        and -MOST_STEPS * unit <= border < unit
    )
    return _Axis(unit, step, offset, border) if allowed else None
