"""Elements looked up by index: constant ones are slices that are joined, others GATHER's."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.lookup import elements, numbered, taken
from mizzen.frontends.arrangement.movement import reshape, same_rank
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.picking import picked, picked_of_all
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.scales import centered, requantize, typed
from mizzen.frontends.quantized.terms import Integers, Pending, Plain, Real, Target, Term
from mizzen.graph import DType, Value, integer_range


def gather(call: OnnxCall) -> Term:
    """Take indices along one dimension, which theirs replace."""
    axis, shape, b = call.axis(0), call.shape_of(0), call.b
    indices = _constant(call, 1, shape[axis])
    if indices is not None:
        call.need(indices.size > 0, "it takes nothing")
        return call.moved(lambda value: reshape(b, picked(b, value, axis, indices), call.shape))
    places = numbered(b, [_index(call, 1, shape[axis])], shape[axis : axis + 1])
    return call.moved(lambda value: reshape(b, taken(b, value, axis, 1, places), call.shape))


def gather_elements(call: OnnxCall) -> Term:
    """Take one element for each index along one dimension."""
    axis, shape, b = call.axis(0), call.shape_of(0), call.b
    fits = len(call.shape) == len(shape) and all(
        dim == axis or extent <= shape[dim] for dim, extent in enumerate(call.shape)
    )
    call.need(fits, f"its indices, {list(call.shape)}, do not fit its input, {list(shape)}")
    indices = _constant(call, 1, shape[axis])
    if indices is not None:
        places = list(np.indices(call.shape))
        places[axis] = indices
        return _of_all(call, np.asarray(np.ravel_multi_index(tuple(places), shape)))
    wanted = elements(b, _index(call, 1, shape[axis]), axis, shape)

    def move(value: Value) -> Value:
        flat = reshape(b, value, (value.type.elements,))
        return reshape(b, taken(b, flat, 0, 1, wanted), call.shape)

    return call.moved(move)


def gather_nd(call: OnnxCall) -> Term:
    """Take what constant indices of several dimensions name."""
    batches, shape, indices = call.whole("batch_dims", 0), call.shape_of(0), call.array(1)
    depth = batches + indices.shape[-1]
    sizes = np.array(shape[batches:depth])
    inside = depth <= len(shape) and indices.ndim > batches >= 0
    call.need(inside and bool(np.all((indices >= -sizes) & (indices < sizes))),
              f"an index is beyond the shape {list(shape)}")  # fmt: skip
    named = tuple(np.moveaxis(indices % sizes, -1, 0))
    first = tuple(
        np.arange(shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(named[0].ndim)])
        for axis in range(batches)
    )
    together = tuple(np.broadcast_arrays(*first, *named))
    return _of_all(call, np.asarray(np.ravel_multi_index(together, shape[:depth])), depth)


def reverse_sequence(call: OnnxCall) -> Term:
    """Turn the first elements of each sequence of a batch, constant numbers of them."""
    lengths = call.array(1).reshape(-1)
    time, batch = call.whole("time_axis", 0), call.whole("batch_axis", 1)
    call.need({time, batch} == {0, 1}, "its sequences are not along the first two dimensions")
    sequence, step = np.meshgrid(
        np.arange(call.shape[batch]), np.arange(call.shape[time]), indexing="ij"
    )
    limit = lengths[:, None]
    turned = np.where(step < limit, limit - 1 - step, step)
    pair = (turned, sequence) if time == 0 else (sequence, turned)
    places = np.asarray(np.ravel_multi_index(pair, call.shape[:2]))
    return _of_all(call, places.T if time == 0 else places, 2)


def _of_all(call: OnnxCall, places: Array, dimensions: int | None = None) -> Term:
    """Take places among all of some dimensions, the first ones; of all where none are named."""
    b, count = call.b, len(call.shape_of(0)) if dimensions is None else dimensions
    call.need(places.size > 0, "it takes nothing")

    def move(value: Value) -> Value:
        return reshape(b, picked_of_all(b, value, count, places), call.shape)

    return call.moved(move)


def _constant(call: OnnxCall, index: int, size: int) -> Array | None:
    """Return constant indices, counted from the front; None for those that are computed."""
    term = call.term(index)
    if not isinstance(term, Integers):
        return None
    inside = not term.array.size or (term.array.min() >= -size and term.array.max() < size)
    call.need(bool(inside), f"an index is beyond the {size} that there are")
    return np.asarray(term.array.astype(np.int64) % size)


def _index(call: OnnxCall, index: int, size: int) -> Value:
    """Return computed indices, 32 bits; negative ones count from the end."""
    b, value = call.b, call.integers(index)
    call.need(value.dtype is DType.INT32, "its indices are not of 32 or 64 bits")
    value, zero, extent = same_rank(
        b, value, *(b.constant([number], DType.INT32) for number in (0, size))
    )
    return b("SELECT", b("GREATER", zero, value), b("ADD", value, extent), value)


def one_hot(call: OnnxCall) -> Term:
    """Put one number where a computed index is, and another one everywhere else."""
    b, depth, rank = call.b, int(call.scalar(1)), len(call.shape)
    axis = call.whole("axis", -1) % rank
    index = _index(call, 0, depth)
    extents = list(call.shape)
    extents[axis] = 1
    steps = np.arange(depth).reshape([-1 if dim == axis else 1 for dim in range(rank)])
    where = b("EQUAL", reshape(b, index, extents), b.constant(steps, DType.INT32))
    off, on = call.array(2).reshape(-1)[:2]

    def chosen(low: int, high: int, dtype: DType) -> Value:
        numbers = (b.constant(np.full((1,) * rank, each), dtype) for each in (high, low))
        return b("SELECT", where, *numbers)

    if call.dtype.kind == "f":
        return Pending(
            lambda target: typed(chosen(*_ends(target, off, on), target.dtype), target),
            call.shape,
        )
    call.need(call.dtype == np.int32, f"its numbers are of {call.dtype.name}")
    return Plain(chosen(int(off), int(on), DType.INT32))


def _ends(target: Target, off: float, on: float) -> tuple[int, int]:
    return target.quantize(float(off)), target.quantize(float(on))


def hardmax(call: OnnxCall) -> Pending:
    """Put 1 where the greatest along a dimension is, the first of several, and 0 elsewhere."""
    b, x, rank = call.b, call.real(0), len(call.shape)
    axis = call.axis(-1)
    extents = [1 if dim == axis else extent for dim, extent in enumerate(call.shape)]
    steps = np.arange(call.shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(rank)])
    place = reshape(b, b("ARGMAX", x.value, axis=axis), extents)
    where = b("EQUAL", place, b.constant(steps, DType.INT32))

    def emit(target: Target) -> Value:
        one, zero = (
            b.constant(np.full((1,) * rank, target.quantize(number)), target.dtype)
            for number in (1.0, 0.0)
        )
        return typed(b("SELECT", where, one, zero), target)

    return Pending(emit, call.shape)


def trilu(call: OnnxCall) -> Term:
    """Keep what is above or below a diagonal of each matrix; the rest is zero."""
    offset = int(call.scalar(1)) if call.given(1) else 0
    ones = np.ones(call.shape[-2:], np.int64)
    kept = np.triu(ones, offset) if call.whole("upper", 1) else np.tril(ones, offset)
    mask = kept.reshape((*(1,) * (len(call.shape) - 2), *kept.shape))
    if call.dtype.kind != "f":
        return _kept(call, mask)
    b, x = call.b, call.real(0)

    def emit(target: Target) -> Value:
        product = b("MUL", centered(b, x), b.constant(mask, DType.INT32),
                    b.constant([0], DType.INT8))  # fmt: skip
        return requantize(b, product, x.scale, target)

    same = Target(x.value.dtype, x.quantization, *integer_range(x.value.dtype))
    return Real(emit(same))


def _kept(call: OnnxCall, mask: Array) -> Term:
    b, value = call.b, call.integers(0)
    zero = b.constant(np.full((1,) * len(call.shape), -call.offset(0)), value.dtype)
    result = b("SELECT", b.constant(mask.astype(bool), DType.BOOL), value, zero)
    return call.whole_result(result)
