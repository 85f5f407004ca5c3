"""Moving elements: shapes, order, parts, copies. The integers stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.context import Call, Result, lowers
from mizzen.frontends.torch.geometry import by_axis, start_index
from mizzen.frontends.torch.int_lowering.int_convolution import reshape, slice_, transpose
from mizzen.frontends.torch.int_lowering.int_elementwise import as_target
from mizzen.frontends.torch.values import Constant, Pending, Plain, Quantized, Real, Target, Term
from mizzen.graph import Value


def _moved(call: Call, term: Term, move: Callable[[Value], Value]) -> Term:
    """Move a tensor's elements, whatever it stands for."""
    match term:
        case Real(value):
            return Real(move(value))
        case Quantized(value):
            return Quantized(move(value))
        case Pending(emit, _, low, high):
            return Pending(lambda target: move(emit(target)), call.shape, low, high)
        case _:
            raise RefusedError(
                "its input is not quantised", "quantise the model's part in front of it"
            )


def moved_input(call: Call, move: Callable[[Value], Value]) -> Term:
    """Move the elements of a call's input."""
    return _moved(call, _input(call), move)


def _input(call: Call) -> Term:
    term = call.term("self" if "self" in call.arguments else "input")
    if isinstance(term, Constant):
        return call.real("self")
    if isinstance(term, Plain):
        raise RefusedError("its input is not quantised", "quantise the part in front of it")
    return term


@lowers(
    "aten.view.default",
    "aten.reshape.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.unsqueeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.squeeze.default",
    "aten._unsafe_view.default",
    "aten.view_copy.default",
)
def reshaped(call: Call) -> Term:
    """The same elements in another shape."""
    return moved_input(call, lambda value: reshape(call.b, value, call.shape))


@lowers(
    "aten.contiguous.default",
    "aten.clone.default",
    "aten.alias.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.dropout.default",
    "aten.dropout_.default",
    "aten.feature_dropout.default",
    "aten.lift_fresh_copy.default",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten._to_copy.default",
)
def same(call: Call) -> Term:
    """The tensor itself."""
    given = call.shape_of("self" if "self" in call.arguments else "input")
    call.need(given == call.shape, "it changes the shape")
    node = call["self" if "self" in call.arguments else "input"]
    call.need(
        node.meta["val"].dtype == call.node.meta["val"].dtype,
        "it changes the type of the elements",
    )
    return moved_input(call, lambda value: value)


@lowers("aten.permute.default")
def permuted(call: Call) -> Term:
    """Dimensions in another order."""
    rank = len(call.shape)
    perms = [axis % rank for axis in call["dims"]]
    return moved_input(call, lambda value: transpose(call.b, value, perms))


@lowers("aten.transpose.int", "aten.t.default", "aten.numpy_T.default", "aten.swapaxes.default")
def swapped(call: Call) -> Term:
    """Two dimensions exchanged."""
    rank = len(call.shape)
    perms = list(range(rank))
    first = int(call.arguments.get("dim0", 0)) % rank
    second = int(call.arguments.get("dim1", 1)) % rank
    perms[first], perms[second] = perms[second], perms[first]
    return moved_input(call, lambda value: transpose(call.b, value, perms))


@lowers("aten.slice.Tensor")
def sliced(call: Call) -> Term:
    """A range of indices along one dimension, with a step."""
    given = call.shape_of("self")
    axis = int(call["dim"]) % len(given)
    start, step = start_index(call["start"], given[axis]), int(call["step"])
    count = call.shape[axis]
    return moved_input(call, lambda value: _stepped(call, value, axis, start, step, count))


@lowers("aten.select.int")
def selected(call: Call) -> Term:
    """One index along one dimension, which goes."""
    given = call.shape_of("self")
    axis = int(call["dim"]) % len(given)
    index = int(call["index"]) % given[axis]

    def move(value: Value) -> Value:
        return reshape(call.b, slice_(call.b, value, axis, index, 1), call.shape)

    return moved_input(call, move)


@lowers("aten.narrow.int")
def narrowed(call: Call) -> Term:
    """A range of indices along one dimension."""
    given = call.shape_of("self")
    axis = int(call["dim"]) % len(given)
    start, size = start_index(call["start"], given[axis]), int(call["length"])
    return moved_input(call, lambda value: slice_(call.b, value, axis, start, size))


@lowers(
    "aten.split.Tensor",
    "aten.split_with_sizes.default",
    "aten.chunk.default",
    "aten.unbind.int",
    "aten.tensor_split.sections",
)
def parts(call: Call) -> Result:
    """Consecutive parts along one dimension."""
    given = call.shape_of("self")
    axis = int(call["dim"]) % len(given)
    term = _input(call)
    if isinstance(term, Pending):
        raise RefusedError("its input is not quantised", "quantise the operator in front of it")
    found: list[Term] = []
    start = 0
    for meta in call.node.meta["val"]:
        shape = tuple(meta.shape)
        size = shape[axis] if len(shape) == len(given) else 1
        found.append(_moved(call, term, _part(call, axis, start, size, shape)))
        start += size
    return tuple(found)


def _part(
    call: Call, axis: int, start: int, size: int, shape: tuple[int, ...]
) -> Callable[[Value], Value]:
    return lambda value: reshape(call.b, slice_(call.b, value, axis, start, size), shape)


@lowers("aten.cat.default", "aten.concat.default")
def joined(call: Call) -> Pending:
    """Tensors one behind the other along one dimension."""
    found = [call.real_of(node) for node in call["tensors"] if _elements(node)]
    axis = int(call["dim"]) % len(call.shape)

    def emit(target: Target) -> Value:
        items = [as_target(call.b, item, target) for item in found]
        if len(items) == 1:
            return items[0]
        return call.b("CONCAT", *items, axis=axis, quantization=target.quantization)

    return Pending(emit, call.shape)


@lowers("aten.stack.default")
def stacked(call: Call) -> Pending:
    """Tensors one behind the other along a new dimension."""
    found = [call.real_of(node) for node in call["tensors"]]
    axis = int(call["dim"]) % len(call.shape)
    shape = [1 if index == axis else extent for index, extent in enumerate(call.shape)]

    def emit(target: Target) -> Value:
        items = [reshape(call.b, as_target(call.b, item, target), shape) for item in found]
        return call.b("CONCAT", *items, axis=axis, quantization=target.quantization)

    return Pending(emit, call.shape)


@lowers("aten.expand.default", "aten.repeat.default", "aten.tile.default", "aten.expand_as.default")
def repeated(call: Call) -> Term:
    """Copies along dimensions, new ones in front."""
    given = call.shape_of("self")
    lifted = (*(1,) * (len(call.shape) - len(given)), *given)
    multiples = [whole // part for whole, part in zip(call.shape, lifted, strict=True)]

    def move(value: Value) -> Value:
        value = reshape(call.b, value, lifted)
        if all(multiple == 1 for multiple in multiples):
            return value
        quantization = value.quantization
        return call.b("TILE", value, call.b.shape(multiples), quantization=quantization)

    return moved_input(call, move)


@lowers("aten.flip.default")
def flipped(call: Call) -> Term:
    """Dimensions in reverse."""
    rank = len(call.shape)

    def move(value: Value) -> Value:
        for axis in call["dims"]:
            value = call.b("REVERSE", value, axis=axis % rank, quantization=value.quantization)
        return value

    return moved_input(call, move)


@lowers("aten.pad.default", "aten.constant_pad_nd.default")
def padded(call: Call) -> Pending:
    """A border of one number, or of the tensor's own edge (reflect, replicate)."""
    x = call.real("self")
    mode = call.arguments.get("mode", "constant")
    amounts = [int(item) for item in call["pad"]]
    number = float(call["value"] or 0.0)

    def emit(target: Target) -> Value:
        value = as_target(call.b, x, target)
        if mode != "constant":
            return _mirrored(call, value, amounts, str(mode))
        value = _cropped(call, value, amounts)
        border = [max(item, 0) for item in by_axis(amounts, value.type.rank)]
        if not any(border):
            return value
        filling = call.b.constant([target.quantize(number)], target.dtype)
        padding = call.b.shape(border)
        return call.b("PAD", value, padding, filling, quantization=target.quantization)

    return Pending(emit, call.shape)


def _mirrored(call: Call, value: Value, amounts: Sequence[int], mode: str) -> Value:
    call.need(mode in ("reflect", "replicate"), f"its padding is {mode}")
    border = by_axis(amounts, value.type.rank)
    for axis in range(value.type.rank):
        before, after = border[2 * axis], border[2 * axis + 1]
        if before or after:
            value = _mirror(call, value, axis, before, after, mode)
    return value


def _mirror(call: Call, value: Value, axis: int, before: int, after: int, mode: str) -> Value:
    extent = value.shape[axis]
    inner = list(range(extent))
    if mode == "reflect":
        first, last = inner[before:0:-1], inner[-2 : -2 - after : -1]
    else:
        first, last = [0] * before, [extent - 1] * after
    pieces = [slice_(call.b, value, axis, index, 1) for index in first]
    pieces.append(value)
    pieces += [slice_(call.b, value, axis, index, 1) for index in last]
    return call.b("CONCAT", *pieces, axis=axis, quantization=value.quantization)


def _cropped(call: Call, value: Value, amounts: Sequence[int]) -> Value:
    border = by_axis(amounts, value.type.rank)
    for axis in range(value.type.rank):
        before, after = (max(-item, 0) for item in border[2 * axis : 2 * axis + 2])
        value = slice_(call.b, value, axis, before, value.shape[axis] - before - after)
    return value


def _stepped(call: Call, value: Value, axis: int, start: int, step: int, count: int) -> Value:
    """Take every `step`-th index: cut the dimension in two, and keep the first of each row."""
    if step == 1:
        return slice_(call.b, value, axis, start, count)
    extent = value.shape[axis]
    span = count * step
    shape = list(value.shape)
    if start + span > extent:  # the last row is short; what it lacks is not looked at
        border = [0] * (2 * value.type.rank)
        border[2 * axis + 1] = start + span - extent
        filling = call.b.constant([0], value.dtype)
        value = call.b("PAD", value, call.b.shape(border), filling, quantization=value.quantization)
    value = slice_(call.b, value, axis, start, span)
    rows = [*shape[:axis], count, step, *shape[axis + 1 :]]
    value = slice_(call.b, reshape(call.b, value, rows), axis + 1, 0, 1)
    return reshape(call.b, value, [*shape[:axis], count, *shape[axis + 1 :]])


def _elements(node: Any) -> bool:
    return node.meta["val"].numel() > 0
