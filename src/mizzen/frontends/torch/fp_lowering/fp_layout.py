"""Moving elements: shapes, order, parts, copies. Ref: TOSA 1.0, 2.10 data layout operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_context import Call, Result, lowers
from mizzen.frontends.torch.fp_lowering.fp_shapes import concat, permuted, reshape, slice_
from mizzen.frontends.torch.geometry import by_axis, start_index
from mizzen.graph import Value
from mizzen.ops import Builder


@lowers(
    "aten.view.default",
    "aten.reshape.default",
    "aten.reshape_as.default",
    "aten.view_as.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.unsqueeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.squeeze.default",
    "aten._unsafe_view.default",
)
def reshaped(call: Call) -> Value:
    """The same elements in another shape."""
    return reshape(call.b, call.value(call.first), call.shape)


@lowers(
    "aten.contiguous.default",
    "aten.clone.default",
    "aten.alias.default",
    "aten.detach.default",
    "aten.dropout.default",
    "aten.feature_dropout.default",
    "aten.alpha_dropout.default",
    "aten.lift_fresh_copy.default",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.other",
    "aten.type_as.default",
    "aten.float.default",
    "aten._to_copy.default",
    "aten.identity.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
)
def same(call: Call) -> Value:
    """The tensor itself, perhaps in another type."""
    call.need(
        not ("dropout" in call.node.target.__name__ and call.arguments.get("train")),
        "it drops out",
        "call `model.eval()` before export",
    )
    return a.cast(call.b, call.value(call.first), call.dtype)


@lowers("aten.permute.default")
def in_order(call: Call) -> Value:
    """Dimensions in another order."""
    rank = len(call.shape)
    return permuted(call.b, call.value("self"), [axis % rank for axis in call["dims"]])


@lowers(
    "aten.transpose.int",
    "aten.t.default",
    "aten.numpy_T.default",
    "aten.mT.default",
    "aten.swapaxes.default",
    "aten.swapdims.default",
)
def swapped(call: Call) -> Value:
    """Two dimensions exchanged."""
    x = call.value("self")
    rank = x.type.rank
    name = call.node.target.__name__
    if rank < 2:
        return x
    if name.startswith("numpy_T"):
        return permuted(call.b, x, range(rank)[::-1])
    perms = list(range(rank))
    last = name.startswith("mT")
    pairs = (("dim0", "axis0", -2 if last else 0), ("dim1", "axis1", -1 if last else 1))
    first, second = (
        int(call.arguments.get(one, call.arguments.get(other, default))) % rank
        for one, other, default in pairs
    )
    perms[first], perms[second] = perms[second], perms[first]
    return permuted(call.b, x, perms)


@lowers("aten.movedim.int")
def moved(call: Call) -> Value:
    """One dimension in another place."""
    rank = len(call.shape)
    source, target = int(call["source"]) % rank, int(call["destination"]) % rank
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return permuted(call.b, call.value("self"), order)


@lowers("aten.slice.Tensor")
def sliced(call: Call) -> Value:
    """A range of indices along one dimension, with a step."""
    x, axis = call.value("self"), call.axis()
    start = start_index(call["start"], x.shape[axis])
    call.need(call.shape[axis] > 0, "it takes nothing")
    return stepped(call.b, x, axis, start, int(call["step"]), call.shape[axis])


@lowers("aten.select.int")
def selected(call: Call) -> Value:
    """One index along one dimension, which goes."""
    x, axis = call.value("self"), call.axis()
    index = int(call["index"]) % x.shape[axis]
    return reshape(call.b, slice_(call.b, x, axis, index, 1), call.shape)


@lowers("aten.narrow.int")
def narrowed(call: Call) -> Value:
    """A range of indices along one dimension."""
    x, axis = call.value("self"), call.axis()
    return slice_(call.b, x, axis, start_index(call["start"], x.shape[axis]), int(call["length"]))


@lowers(
    "aten.split.Tensor",
    "aten.split.sizes",
    "aten.split_with_sizes.default",
    "aten.chunk.default",
    "aten.unbind.int",
    "aten.tensor_split.sections",
)
def parts(call: Call) -> Result:
    """Consecutive parts along one dimension."""
    b, x, axis = call.b, call.value("self"), call.axis()
    found: list[Value] = []
    start = 0
    used = {user.args[1] for user in call.node.users if len(user.args) > 1}
    for index, meta in enumerate(call.node.meta["val"]):
        shape = tuple(map(int, meta.shape))
        size = shape[axis] if len(shape) == x.type.rank else 1
        taken = slice_(b, x, axis, start, size) if index in used else x
        found.append(reshape(b, taken, shape) if index in used else x)
        start += size
    return tuple(found)


@lowers("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def joined(call: Call) -> Value:
    """Tensors one behind the other along one dimension."""
    b, rank = call.b, len(call.shape)
    nodes = [node for node in call["tensors"] if node.meta["val"].numel()]
    items = [a.cast(b, call.context.value(node), call.dtype) for node in nodes]
    return concat(b, items, int(call["dim"]) % rank)


@lowers("aten.stack.default")
def stacked(call: Call) -> Value:
    """Tensors one behind the other along a new dimension."""
    axis = int(call["dim"]) % len(call.shape)
    shape = [1 if index == axis else extent for index, extent in enumerate(call.shape)]
    items = [
        reshape(call.b, a.cast(call.b, value, call.dtype), shape)
        for value in call.values("tensors")
    ]
    return concat(call.b, items, axis)


@lowers(
    "aten.expand.default",
    "aten.expand_as.default",
    "aten.repeat.default",
    "aten.tile.default",
    "aten.broadcast_to.default",
)
def repeated(call: Call) -> Value:
    """Copies along dimensions, new ones in front."""
    return tiled(call.b, call.value("self"), call.shape)


def tiled(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Repeat a value to a shape whose sizes are multiples."""
    value = a.lifted(b, value, len(shape))
    multiples = [whole // part for whole, part in zip(shape, value.shape, strict=True)]
    if all(multiple == 1 for multiple in multiples):
        return value
    return b("TILE", value, b.shape(multiples))


@lowers("aten.flip.default")
def flipped(call: Call) -> Value:
    """Dimensions in reverse."""
    value = call.value("self")
    for axis in call["dims"]:
        value = call.b("REVERSE", value, axis=int(axis) % value.type.rank)
    return value


@lowers("aten.roll.default")
def rolled(call: Call) -> Value:
    """Dimensions moved round."""
    b, value = call.b, call.value("self")
    if not len(call["dims"]):
        flat = reshape(b, value, (value.type.elements,))
        return reshape(b, _rolled(b, flat, int(call["shifts"][0]), 0), call.shape)
    for shift, dim in zip(call["shifts"], call["dims"], strict=True):
        value = _rolled(b, value, int(shift), int(dim) % value.type.rank)
    return value


def _rolled(b: Builder, value: Value, shift: int, axis: int) -> Value:
    size = value.shape[axis]
    cut = -shift % size
    if not cut:
        return value
    first, second = slice_(b, value, axis, cut, size - cut), slice_(b, value, axis, 0, cut)
    return concat(b, [first, second], axis)


@lowers("aten.pad.default", "aten.constant_pad_nd.default")
def padded(call: Call) -> Value:
    """A border of one number, or of the tensor's own edge (reflect, replicate, circular)."""
    b, value = call.b, call.value("self")
    mode = call.arguments.get("mode", "constant")
    border = by_axis([int(item) for item in call["pad"]], value.type.rank)
    for axis in range(value.type.rank):
        before, after = (max(-item, 0) for item in border[2 * axis : 2 * axis + 2])
        value = slice_(b, value, axis, before, value.shape[axis] - before - after)
    amounts = [max(item, 0) for item in border]
    if not any(amounts):
        return value
    if mode != "constant":
        return _mirrored(call, value, amounts, str(mode))
    filling = a.number(b, call["value"] or 0, value.dtype, 1)
    return b("PAD", value, b.shape(amounts), filling)


@lowers(
    "aten.reflection_pad1d.default",
    "aten.reflection_pad2d.default",
    "aten.replication_pad1d.default",
    "aten.replication_pad2d.default",
)
def edged(call: Call) -> Value:
    """A border of the tensor's own edge."""
    value = call.value("self")
    mode = "reflect" if "reflection" in call.node.target.__name__ else "replicate"
    amounts = by_axis([int(item) for item in call["padding"]], value.type.rank)
    return _mirrored(call, value, amounts, mode)


def _mirrored(call: Call, value: Value, amounts: Sequence[int], mode: str) -> Value:
    b = call.b
    for axis in range(value.type.rank):
        before, after = amounts[2 * axis], amounts[2 * axis + 1]
        parts = [
            *_edge(b, value, axis, before, mode, first=0),
            value,
            *_edge(b, value, axis, after, mode, first=1),
        ]
        value = concat(b, parts, axis)
    return value


def _edge(b: Builder, value: Value, axis: int, count: int, mode: str, first: int) -> list[Value]:
    """Return what stands in front of the first index (`first` 0) or behind the last (1)."""
    size = value.shape[axis]
    if not count:
        return []
    match mode:
        case "replicate":
            multiples = [count if dim == axis else 1 for dim in range(value.type.rank)]
            line = slice_(b, value, axis, first * (size - 1), 1)
            return [b("TILE", line, b.shape(multiples))]
        case "reflect":
            start = size - 1 - count if first else 1
            return [b("REVERSE", slice_(b, value, axis, start, count), axis=axis)]
        case _:
            return [slice_(b, value, axis, 0 if first else size - count, count)]


def stepped(b: Builder, value: Value, axis: int, start: int, step: int, count: int) -> Value:
    """Take every `step`-th index: cut the dimension in two, and keep the first of each row."""
    if step == 1:
        return slice_(b, value, axis, start, count)
    shape, span = list(value.shape), count * step
    lacking = start + span - shape[axis]
    if lacking > 0:  # the last row is short; what it lacks is not looked at
        border = [0] * (2 * value.type.rank)
        border[2 * axis + 1] = lacking
        value = b("PAD", value, b.shape(border), a.number(b, 0, value.dtype, 1))
    value = slice_(b, value, axis, start, span)
    rows = [*shape[:axis], count, step, *shape[axis + 1 :]]
    value = slice_(b, reshape(b, value, rows), axis + 1, 0, 1)
    return reshape(b, value, [*shape[:axis], count, *shape[axis + 1 :]])


@lowers("aten.pixel_shuffle.default")
def spread(call: Call) -> Value:
    """Channels become pixels: [N, C*r*r, H, W] -> [N, C, H*r, W*r]."""
    b, x, ratio = call.b, call.value("self"), int(call["upscale_factor"])
    *front, channels, height, width = x.shape
    shape = (prod(front), channels // ratio**2, ratio, ratio, height, width)
    parts = reshape(b, x, shape)
    return reshape(b, permuted(b, parts, (0, 1, 4, 2, 5, 3)), call.shape)


@lowers("aten.pixel_unshuffle.default")
def gathered(call: Call) -> Value:
    """Pixels become channels: [N, C, H*r, W*r] -> [N, C*r*r, H, W]."""
    b, x, ratio = call.b, call.value("self"), int(call["downscale_factor"])
    *front, channels, height, width = x.shape
    parts = reshape(
        b,
        x,
        (prod(front), channels, height // ratio, ratio, width // ratio, ratio),
    )
    return reshape(b, permuted(b, parts, (0, 1, 3, 5, 2, 4)), call.shape)


@lowers("aten.channel_shuffle.default")
def shuffled(call: Call) -> Value:
    """Channels of groups in turns."""
    b, x, groups = call.b, call.value("self"), int(call["groups"])
    count, channels, *space = x.shape
    parts = reshape(b, x, (count, groups, channels // groups, prod(space)))
    return reshape(b, permuted(b, parts, (0, 2, 1, 3)), call.shape)
