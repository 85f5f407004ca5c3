"""Tensors put together, taken apart, and given borders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.frontends.arrangement.movement import concat, cropped, padded, sliced
from mizzen.frontends.onnx.lowering.call import Move, OnnxCall
from mizzen.frontends.onnx.lowering.picking import picked
from mizzen.frontends.onnx.lowering.types import NUMBERS, offset_of, signed
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.scales import typed
from mizzen.frontends.quantized.terms import Pending, Plain, Quantized, Real, Target, Term
from mizzen.graph import DType, Value, integer_range


def _mirrored(places: Array, extent: int) -> Array:
    period = max(2 * (extent - 1), 1)
    turned = places % period
    return np.minimum(turned, period - turned) if extent > 1 else np.zeros_like(places)


EDGES: dict[str, Callable[[Array, int], Array]] = {
    "reflect": _mirrored,
    "edge": lambda places, extent: places.clip(0, extent - 1),
    "wrap": lambda places, extent: places % extent,
}
"""Borders made of the tensor's own elements: places beyond the edges to those inside."""


def concatenated(call: OnnxCall) -> Term:
    """Put tensors one after the other along one dimension; empty ones add nothing."""
    axis = call.axis(1)
    filled = [index for index in range(call.count) if np.prod(call.shape_of(index))]
    call.need(bool(filled), "all its inputs are empty")
    return call.alike(filled, lambda *values: concat(call.b, values, axis))


def split(call: OnnxCall) -> tuple[Term, ...]:
    """Return consecutive parts along one dimension."""
    axis, moves, start = call.axis(0), list[Move](), 0
    for name, size in zip(call.node.outputs, _sizes(call, axis), strict=True):
        moves.append(_part(call, axis, start, size) if name else _nothing)
        start += size
    return call.parted(moves)


def _sizes(call: OnnxCall, axis: int) -> list[int]:
    if call.given(1):
        sizes: list[int] = call.array(1).reshape(-1).tolist()
    else:
        extent = call.shape_of(0)[axis]
        count = call.whole("num_outputs", len(call.node.outputs))
        size = -(-extent // count)
        sizes = [min(size, extent - start) for start in range(0, count * size, size)]
    fits = len(sizes) == len(call.node.outputs) and sum(sizes) == call.shape_of(0)[axis]
    call.need(fits, f"its parts are {sizes} of {call.shape_of(0)[axis]}")
    return sizes


def _part(call: OnnxCall, axis: int, start: int, size: int) -> Move:
    return lambda value: sliced(call.b, value, axis, start, size)


def _nothing(value: Value) -> Value:
    return value


def slice_(call: OnnxCall) -> Term:
    """Return ranges of indices along dimensions, with steps, which may be negative."""
    shape, cuts = call.shape_of(0), dict[int, range]()
    starts, ends = call.array(1).reshape(-1).tolist(), call.array(2).reshape(-1).tolist()
    axes = call.array(3).reshape(-1).tolist() if call.given(3) else list(range(len(starts)))
    steps = call.array(4).reshape(-1).tolist() if call.given(4) else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        call.need(-len(shape) <= axis < len(shape), f"its input has no dimension {axis}")
        call.need(step != 0, "its step is 0")
        extent = shape[axis % len(shape)]
        cuts[axis % len(shape)] = range(extent)[slice(start, _end(end, extent, step), step)]
    call.need(all(cuts.values()), "it takes nothing")

    def move(value: Value) -> Value:
        for axis, cut in cuts.items():
            value = picked(call.b, value, axis, np.array(cut))
        return value

    return call.moved(move)


def _end(end: int, extent: int, step: int) -> int | None:
    """Return an end as Python has it: none for one in front of the first element."""
    return None if step < 0 and end < -extent else end


def pad(call: OnnxCall) -> Term:
    """Add a border of one number, or of the tensor's own elements; a negative one is cut off."""
    border, mode = _border(call), call.text("mode", "constant")
    if mode == "constant":
        return _filled(call, border)
    call.need(mode in EDGES, f'its mode is "{mode}"')
    amounts = [max(item, 0) for item in border]

    def move(value: Value) -> Value:
        value = cropped(call.b, value, border)
        for axis, extent in enumerate(value.shape):
            ends = (amounts[2 * axis], amounts[2 * axis + 1])
            if any(ends):
                places = np.arange(-ends[0], extent + ends[1])
                value = picked(call.b, value, axis, EDGES[mode](places, extent))
        return value

    return call.moved(move)


def _border(call: OnnxCall) -> list[int]:
    """Return how much is added before and after, first dimension first."""
    rank = len(call.shape)
    amounts: list[int] = call.array(1).reshape(-1).tolist()
    axes: list[int] = call.array(3).reshape(-1).tolist() if call.given(3) else list(range(rank))
    call.need(len(amounts) == 2 * len(axes), "its borders are not two for each dimension")
    border = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        border[2 * (axis % rank)] = amounts[place]
        border[2 * (axis % rank) + 1] = amounts[place + len(axes)]
    return border


def _filled(call: OnnxCall, border: list[int]) -> Term:
    """Add a border of one number, which is on the tensor's scale or on that of the result."""
    b, term = call.b, call.term(0)

    def surrounded(value: Value, filling: int) -> Value:
        amounts = [max(item, 0) for item in border]
        number = b.constant([filling], value.dtype)
        return padded(b, cropped(b, value, border), amounts, number)

    if call.dtype.kind != "f":
        value = call.integers(0)
        result = surrounded(value, _integer(call, value.dtype))
        return Quantized(result) if result.dtype in NUMBERS else Plain(result)
    number = call.scalar(2) if call.given(2) else 0.0
    if isinstance(term, Real):
        filling = exact(term, number)
        if filling is not None:
            return Real(surrounded(term.value, filling))
    emit = call.emitter(0)

    def padding(target: Target) -> Value:
        return typed(surrounded(emit(target), target.quantize(number)), target)

    return Pending(padding, call.shape)


def _integer(call: OnnxCall, dtype: DType) -> int:
    """Return what a tensor of integers is filled with, as the graph has it."""
    if not call.given(2):
        return -offset_of(call.dtype) if dtype in NUMBERS else 0
    array = call.array(2)
    call.need(array.size == 1, "its filling is more than one number")
    return int(signed(array).reshape(()))


def exact(real: Real, number: float) -> int | None:
    """Return the integer that stands for a number in a tensor, None if none does exactly."""
    if not np.isfinite(number):
        return None
    integer = int(np.rint(np.float32(number) / np.float32(real.scale))) + real.zero_point
    low, high = integer_range(real.value.dtype)
    stands_for = np.float32(integer - real.zero_point) * np.float32(real.scale)
    return integer if low <= integer <= high and stands_for == np.float32(number) else None
