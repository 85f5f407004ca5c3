"""Larger and smaller images. Ref: TOSA 1.0, 2.12.1 RESIZE.

The nearest element is moved, so any tensor of any rank has it: by RESIZE where that takes the same
elements, else by slices. What is interpolated is a sum of weights that are whole numbers of one
unit, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, log2, prod

import numpy as np

from mizzen.frontends.arrangement.movement import channels_first, permuted, reshape
from mizzen.frontends.arrangement.resize import Dimension, Resizing
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.picking import picked
from mizzen.frontends.onnx.lowering.types import NUMBERS
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.resize import resized
from mizzen.frontends.quantized.scales import requantize, rescale
from mizzen.frontends.quantized.terms import Pending, Real, Target, Term
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, ResizeMode, Value

HALF = Fraction(1, 2)

LEAST_SCALE = 1e-4
"""Of what is left of an image, far below what RESIZE has."""

WAYS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)
"""How outputs are placed over inputs."""


def resize(call: OnnxCall) -> Term:
    """Return an image of another size."""
    call.need(0 not in (*call.shape, *call.shape_of(0)), "its image is empty")
    mode, way = (
        call.text("mode", "nearest"),
        call.text("coordinate_transformation_mode", "half_pixel"),
    )
    call.need(way in WAYS, f'its places are those of "{way}"', 'use "half_pixel" or "asymmetric"')
    call.need(not call.whole("antialias", 0), "it smooths before it makes an image smaller",
              "export without antialias, or use an average pool")  # fmt: skip
    if mode == "nearest":
        return _nearest(call, way)
    call.need(mode == "linear", f'its mode is "{mode}", which takes negative weights',
              'use "linear" or "nearest"')  # fmt: skip
    return _linear(call, way)


def _scales(call: OnnxCall) -> list[Fraction]:
    """Return the scale of each dimension, 1 for those that are left alone."""
    before, after = call.shape_of(0), call.shape
    scales = [Fraction(new, old) for new, old in zip(after, before, strict=True)]
    axes = [axis % len(before) for axis in call.wholes("axes", range(len(before)))]
    given = call.array(2).reshape(-1) if call.given(2) else np.zeros(0)
    if given.size:
        valid = bool(np.all(np.isfinite(given) & (given > LEAST_SCALE)))
        call.need(valid and len(axes) == given.size, f"its scales are {given.tolist()}")
        for axis, scale in zip(axes, given, strict=True):
            scales[axis] = Fraction(float(scale)).limit_denominator(1 << 20)
        return scales
    policy = call.text("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        sizes = call.array(3).reshape(-1).tolist()
        ratios = [Fraction(size, before[axis]) for axis, size in zip(axes, sizes, strict=True)]
        common = min(ratios) if policy == "not_larger" else max(ratios)
        for axis in axes:
            scales[axis] = common
    return scales


def _dimension(way: str, before: int, after: int, scale: Fraction) -> Dimension:
    """Say where outputs of a dimension are."""
    step = 1 / scale
    start = HALF * step - HALF
    match way:
        case "asymmetric":
            start = Fraction(0)
        case "align_corners":
            start = Fraction(0)
            step = Fraction(before - 1, after - 1) if after > 1 else Fraction(0)
        case "tf_half_pixel_for_nn":
            start = HALF * step
        case "pytorch_half_pixel" if after == 1:
            start = Fraction(0)
        case "half_pixel_symmetric":
            start += Fraction(before, 2) * (1 - after / (before * scale))
        case _:
            pass
    return Dimension(before, after, start, step)


def _dimensions(call: OnnxCall, way: str) -> list[Dimension]:
    sizes = zip(call.shape_of(0), call.shape, _scales(call), strict=True)
    return [_dimension(way, before, after, scale) for before, after, scale in sizes]


def _is_whole(dimension: Dimension) -> bool:
    """Whether outputs are the inputs."""
    if dimension.before == dimension.after == 1:
        return True
    return dimension.before == dimension.after and (dimension.start, dimension.step) == (0, 1)


def _nearest(call: OnnxCall, way: str) -> Term:
    rounding = call.text("nearest_mode", "round_prefer_floor")
    call.need(rounding in ROUNDINGS, f'it rounds places by "{rounding}"')
    dimensions = _dimensions(call, way)
    places = [
        _places(each, scale, way, rounding)
        for each, scale in zip(dimensions, _scales(call), strict=True)
    ]
    form = _form(dimensions, places)
    b = call.b

    def move(value: Value) -> Value:
        if form is not None and value.dtype in NUMBERS:
            return channels_first(b, form.emit(b, value), call.shape)
        for axis, taken in enumerate(places):
            value = picked(b, value, axis, taken)
        return value

    return call.moved(move)


ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _places(dimension: Dimension, scale: Fraction, way: str, rounding: str) -> Array:
    """Return which inputs outputs are, from places in float32 as ONNX Runtime computes them."""
    places = _originals(dimension, np.float32(float(scale)), way)
    match rounding:
        case "round_prefer_floor":
            rounded = np.ceil(places - np.float32(0.5))
        case "round_prefer_ceil":
            rounded = np.floor(places + np.float32(0.5))
        case "floor":
            rounded = np.floor(places)
        case _:
            rounded = np.ceil(places)
    return np.clip(rounded.astype(np.int64), 0, dimension.before - 1)


def _originals(dimension: Dimension, scale: np.float32, way: str) -> Array:
    """Return where outputs are in the input, float32."""
    half, before, after = np.float32(0.5), dimension.before, dimension.after
    outputs = np.arange(after, dtype=np.float32)
    match way:
        case "asymmetric":
            return outputs / scale
        case "align_corners":
            return outputs * np.float32(before - 1) / np.float32(max(after - 1, 1))
        case "tf_half_pixel_for_nn":
            return (outputs + half) / scale
        case "pytorch_half_pixel" if after == 1:
            return outputs
        case "half_pixel_symmetric":
            whole = np.float32(after) / (scale * np.float32(before))
            return np.float32(before) / 2 * (1 - whole) + (outputs + half) / scale - half
        case _:
            return (outputs + half) / scale - half


def _form(dimensions: Sequence[Dimension], places: Sequence[Array]) -> Resizing | None:
    """Return how RESIZE moves the same elements of [N,C,W] or [N,C,H,W]; None where it does not."""
    whole = all(_is_whole(each) for each in dimensions[:2])
    if len(dimensions) not in (3, 4) or not whole:
        return None
    floors = [
        Dimension(each.before, each.after, Fraction(0), Fraction(each.before, each.after),
                  tuple(taken.tolist()))
        for each, taken in zip(dimensions[2:], places[2:], strict=True)
    ]  # fmt: skip
    lines, columns = floors if len(floors) == 2 else (ONE, floors[0])
    return Resizing.of(ResizeMode.NEAREST, lines, columns)


ONE = Dimension(1, 1, Fraction(0), Fraction(1), (0,))
"""The only row of an image that has one."""


def _linear(call: OnnxCall, way: str) -> Pending:
    dimensions = _dimensions(call, way)
    changed = [axis for axis, each in enumerate(dimensions) if not _is_whole(each)]
    call.need(len(changed) <= 2, f"it interpolates in {len(changed)} dimensions, and at most two "
              "have a TOSA form")  # fmt: skip
    spare = [axis for axis in reversed(range(len(dimensions))) if axis not in changed]
    axes = sorted([*changed, *spare[: 2 - len(changed)]])
    pair = [dimensions[axis] for axis in axes]
    lines, columns = pair if len(pair) == 2 else (ONE, *pair)
    form = Resizing.of(ResizeMode.BILINEAR, lines, columns)
    if form is None:
        raise RefusedError(
            "its scale is too large a fraction", "resize by a whole number, or by a small fraction"
        )
    x = call.real(0)
    return Pending(lambda target: _interpolated(call, x, axes, form, target), call.shape)


def _interpolated(
    call: OnnxCall, x: Real, axes: Sequence[int], form: Resizing, target: Target
) -> Value:
    """Interpolate along two dimensions, which are brought behind the others."""
    b, rank = call.b, len(call.shape)
    others = [axis for axis in range(rank) if axis not in axes]
    order = [*others, *axes]
    turned = permuted(b, x.value, order)
    extents = (1, 1, *turned.shape)[-2:]
    shape = turned.shape if rank == 4 else (1, prod(turned.shape[: len(others)]), *extents)
    after = [call.shape[axis] for axis in order]
    whole = (*shape[:2], *(1, 1, *after)[-2:])
    value = _summed(call, Real(reshape(b, turned, shape)), form, target, whole)
    return permuted(b, reshape(b, value, after), [order.index(axis) for axis in range(rank)])


def _summed(call: OnnxCall, x: Real, form: Resizing, target: Target, shape: Sequence[int]) -> Value:
    """Interpolate images, to a shape; in their own scale, or with one rounding to another."""
    b = call.b
    if x.value.dtype is DType.INT8 and _is_on(x, target):
        return resized(b, x, form, target, shape)
    sums, unit = form.emit(b, x.value), x.scale / form.weights
    if x.zero_point:
        middle = np.full((1,) * sums.type.rank, -x.zero_point * form.weights)
        sums = b("ADD", sums, b.constant(middle, DType.INT32))
    if sums.dtype is not DType.INT32:
        # Fewer bits first, by a power of two: from 48 bits, a RESCALE has a multiplier of 15.
        lost = max(0, ceil(log2(form.weights)) + NUMBER_BITS - SUM_BITS)
        sums, unit = rescale(b, sums, 2.0**-lost, DType.INT32), unit * 2.0**lost
    return channels_first(b, requantize(b, sums, unit, target), shape)


NUMBER_BITS, SUM_BITS = 16, 31


def _is_on(x: Real, target: Target) -> bool:
    """Whether a tensor is on a target's scale already."""
    own = (x.value.dtype, x.scale, x.zero_point)
    return own == (target.dtype, target.scale, target.zero_point)
