"""Operators that give parts of a tensor."""

from __future__ import annotations

from itertools import accumulate

from mizzen.frontends.tflite.context import Call, kept, lowers, zero
from mizzen.graph import Value


@lowers("SPLIT", "SPLIT_V")
def split(call: Call) -> tuple[Value, ...]:
    """One SLICE for each output."""
    source, axis_input = (1, 0) if call.operator.kind == "SPLIT" else (0, 2)
    value = call.value(source)
    axis = call.axis(call.integer(axis_input), value.type.rank)
    ranks = {len(tensor.shape) for tensor in call.outputs}
    call.need(ranks == {value.type.rank}, "its outputs are of another rank than its input")
    sizes = [tensor.shape[axis] for tensor in call.outputs]
    call.need(sum(sizes) == value.shape[axis], "its outputs are not all of its input")
    starts = (0, *accumulate(sizes))
    return tuple(
        _part(call, value, axis, start, size) for start, size in zip(starts, sizes, strict=False)
    )


@lowers("UNPACK")
def unpack(call: Call) -> tuple[Value, ...]:
    """SLICE and RESHAPE for each output."""
    value = call.value()
    axis = call.axis(int(call.option("axis")), value.type.rank)
    count = call.option("num", value.shape[axis])
    call.need(count == value.shape[axis] == len(call.outputs), "it has not an output for each part")
    parts = [_part(call, value, axis, index, 1) for index in range(len(call.outputs))]
    return tuple(
        call.b("RESHAPE", part, call.b.shape(tensor.shape))
        for part, tensor in zip(parts, call.outputs, strict=True)
    )


@lowers("SLICE")
def slice_(call: Call) -> Value:
    """SLICE; sizes are those of the output, -1 in the operator."""
    starts, sizes = call.integers(1), call.output().shape
    asked = call.integers(2)
    fits = len(asked) == len(sizes) and all(
        wanted in (-1, size) for wanted, size in zip(asked, sizes, strict=True)
    )
    call.need(fits, "its output has not the size that it asks for")
    return call.b("SLICE", call.value(), call.b.shape(starts), call.b.shape(sizes))


@lowers("STRIDED_SLICE")
def strided_slice(call: Call) -> Value:
    """Of axes with negative steps REVERSE; SLICE; of axes with steps RESHAPE, SLICE (behind a PAD
    where the last step ends outside); RESHAPE to the output's shape, with its new axes."""
    for name in ("ellipsis_mask", "offset"):
        call.need(not call.option(name), f"it has the option {name}")
    value = call.value()
    cuts = _cuts(call, value.shape)
    starts: list[int] = []
    for axis, cut in enumerate(cuts):
        call.need(len(cut) > 0, "it gives no elements")
        start, step = cut[0], cut.step
        if step < 0:
            value = call.b("REVERSE", value, axis=axis, quantization=kept(value))
            start = value.shape[axis] - 1 - start
        starts.append(start)
    for axis, (start, cut) in enumerate(zip(starts, cuts, strict=True)):
        value = _stepped(call, value, axis, start, len(cut), abs(cut.step))
    return call.b("RESHAPE", value, call.b.shape(call.output().shape))


def _cuts(call: Call, shape: tuple[int, ...]) -> list[range]:
    """Return which indices are taken along each axis."""
    bounds_of = [call.integers(index) for index in (1, 2, 3)]
    call.need(len(set(map(len, bounds_of))) == 1, "its bounds do not fit its input")
    masks = [int(call.option(name)) for name in ("begin_mask", "end_mask", "shrink_axis_mask")]
    added = int(call.option("new_axis_mask"))
    call.need(not (added and masks[2]), "it adds axes and drops others")
    places = [place for place in range(len(bounds_of[0])) if not added >> place & 1]
    call.need(len(places) <= len(shape), "its bounds do not fit its input")
    call.need(0 not in bounds_of[2], "it has a step of 0")
    cuts = [range(extent) for extent in shape]
    for axis, place in enumerate(places):
        first, last, step = (row[place] for row in bounds_of)
        open_start, open_end, single = (bool(mask >> place & 1) for mask in masks)
        extent = shape[axis]
        if single:
            call.need(step > 0, "it takes a single index with a negative step")
            index = 0 if open_start else first + extent if first < 0 else first
            call.need(0 <= index < extent, "it takes an index outside its input")
            cuts[axis] = range(index, index + 1)
            continue
        bounds = slice(None if open_start else first, None if open_end else last, step)
        cuts[axis] = range(*bounds.indices(extent))
    return cuts


def _stepped(call: Call, value: Value, axis: int, start: int, count: int, step: int) -> Value:
    """Take `count` elements along an axis, one of each `step`."""
    b, extent = call.b, value.shape[axis]
    if step == 1 or count == 1:
        whole = (start, count) == (0, extent)
        return value if whole else _part(call, value, axis, start, count)
    missing = start + count * step - extent
    if missing > 0:
        padding = [0] * (2 * value.type.rank)
        padding[2 * axis + 1] = missing
        value = b("PAD", value, b.shape(padding), zero(b, value.dtype), quantization=kept(value))
    value = _part(call, value, axis, start, count * step)
    shape = value.shape
    apart = (*shape[:axis], count, step, *shape[axis + 1 :])
    value = b("RESHAPE", value, b.shape(apart), quantization=kept(value))
    value = _part(call, value, axis + 1, 0, 1)
    shape = (*shape[:axis], count, *shape[axis + 1 :])
    return b("RESHAPE", value, b.shape(shape), quantization=kept(value))


def _part(call: Call, value: Value, axis: int, start: int, size: int) -> Value:
    starts, sizes = [0] * value.type.rank, list(value.shape)
    starts[axis], sizes[axis] = start, size
    shapes = call.b.shape(starts), call.b.shape(sizes)
    return call.b("SLICE", value, *shapes, quantization=kept(value))
