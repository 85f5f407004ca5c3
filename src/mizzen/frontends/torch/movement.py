"""Operators that move elements: shapes, order, parts, copies, borders, for both profiles."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.frontends.arrangement.movement import (
    concat,
    cropped,
    edged,
    padded,
    permuted,
    put_between,
    reshape,
    rolled,
    shuffled,
    sliced,
    stepped,
    tiled,
    unshuffled,
)
from mizzen.frontends.torch.call import TRAINING, Call, Move, Term
from mizzen.graph import Value
from mizzen.ops import Builder


def by_axis(amounts: Sequence[int], rank: int) -> list[int]:
    """Return PyTorch's padding, last dimension first, as TOSA's, first dimension first."""
    border = [0] * (2 * rank)
    for index in range(len(amounts) // 2):
        axis = rank - 1 - index
        border[2 * axis], border[2 * axis + 1] = amounts[2 * index], amounts[2 * index + 1]
    return border


def start_index(start: int | None, extent: int) -> int:
    """Return where a slice starts: counted from the end if negative, within the dimension."""
    number = int(start or 0)
    return min(max(number + extent if number < 0 else number, 0), extent)


def view(call: Call[Term]) -> Term:
    """Return the same elements in another shape."""
    return call.moved(lambda value: reshape(call.b, value, call.shape))


def clone(call: Call[Term]) -> Term:
    """Return the tensor itself, perhaps in another type."""
    return call.itself()


def dropout(call: Call[Term]) -> Term:
    """Return the tensor itself: nothing is dropped outside of training."""
    call.need(not call["train"], "it drops out", TRAINING)
    return call.itself()


def permute(call: Call[Term]) -> Term:
    """Bring dimensions into another order."""
    perms = [axis % len(call.shape) for axis in call["dims"]]
    return call.moved(lambda value: permuted(call.b, value, perms))


def transpose(call: Call[Term]) -> Term:
    """Exchange two dimensions: those that are named, the first two (`t`), the last two (`mT`)."""
    rank = len(call.shape)
    perms, last = list(range(rank)), call.operator == "mT"
    first, second = (
        int(call.arguments.get(f"dim{index}", call.arguments.get(f"axis{index}", index - 2 * last)))
        % max(rank, 1)
        for index in (0, 1)
    )
    if rank > 1:
        perms[first], perms[second] = perms[second], perms[first]
    return call.moved(lambda value: permuted(call.b, value, perms))


def numpy_T(call: Call[Term]) -> Term:  # noqa: N802 - ATen's name
    """Bring dimensions into the opposite order."""
    return call.moved(lambda value: permuted(call.b, value, range(len(call.shape))[::-1]))


def movedim(call: Call[Term]) -> Term:
    """Bring dimensions to other places."""
    rank = len(call.shape)
    sources, places = (
        [int(axis) % rank for axis in ([given] if isinstance(given, int) else given)]
        for given in (call["source"], call["destination"])
    )
    order = [axis for axis in range(rank) if axis not in sources]
    for place, source in sorted(zip(places, sources, strict=True)):
        order.insert(place, source)
    return call.moved(lambda value: permuted(call.b, value, order))


def slice_(call: Call[Term]) -> Term:
    """Return a range of indices along one dimension, with a step."""
    axis = call.axis()
    start, count = start_index(call["start"], call.shape_of("self")[axis]), call.shape[axis]
    call.need(count > 0, "it takes nothing")
    return call.moved(lambda value: stepped(call.b, value, axis, start, int(call["step"]), count))


def select(call: Call[Term]) -> Term:
    """Return one index along one dimension, which goes."""
    axis = call.axis()
    index = int(call["index"]) % call.shape_of("self")[axis]
    return call.moved(
        lambda value: reshape(call.b, sliced(call.b, value, axis, index, 1), call.shape)
    )


def narrow(call: Call[Term]) -> Term:
    """Return a range of indices along one dimension."""
    axis = call.axis()
    start = start_index(call["start"], call.shape_of("self")[axis])
    return call.moved(lambda value: sliced(call.b, value, axis, start, int(call["length"])))


def split(call: Call[Term]) -> tuple[Term, ...]:
    """Return consecutive parts along one dimension."""
    axis, rank = call.axis(), len(call.shape_of("self"))
    moves: list[Move] = []
    start = 0
    for index, shape in enumerate(call.shapes):
        size = shape[axis] if len(shape) == rank else 1
        taken = _part(call.b, axis, start, size, shape)
        moves.append(taken if index in call.used else lambda value: value)
        start += size
    return call.parted(moves)


def _part(b: Builder, axis: int, start: int, size: int, shape: Sequence[int]) -> Move:
    return lambda value: reshape(b, sliced(b, value, axis, start, size), shape)


def cat(call: Call[Term]) -> Term:
    """Put tensors one after the other along one dimension."""
    nodes = [node for node in call["tensors"] if node.meta["val"].numel()]
    axis = int(call["dim"]) % len(call.shape)
    return call.alike(nodes, lambda *values: concat(call.b, values, axis))


def stack(call: Call[Term]) -> Term:
    """Put tensors one after the other along a new dimension."""
    b, axis = call.b, int(call["dim"]) % len(call.shape)
    shape = [1 if index == axis else extent for index, extent in enumerate(call.shape)]
    return call.alike(
        call["tensors"],
        lambda *values: concat(b, [reshape(b, value, shape) for value in values], axis),
    )


def slice_scatter(call: Call[Term]) -> Term:
    """Put another tensor in the place of a range of indices along one dimension."""
    axis, step = call.axis(), int(call["step"])
    extent, size = call.shape[axis], call.shape_of("src")[axis]
    start = start_index(call["start"], extent)
    if step == 1:
        return _replaced(call, axis, start, size)

    def build(value: Value, other: Value) -> Value:
        return put_between(call.b, value, other, axis, start, step)

    return call.alike([call["self"], call["src"]], build)


def select_scatter(call: Call[Term]) -> Term:
    """Put another tensor in the place of one index along one dimension."""
    axis = call.axis()
    return _replaced(call, axis, int(call["index"]) % call.shape[axis], 1)


def _replaced(call: Call[Term], axis: int, start: int, size: int) -> Term:
    b, extent = call.b, call.shape[axis]
    end = start + size
    shape = [size if index == axis else whole for index, whole in enumerate(call.shape)]

    def build(value: Value, other: Value) -> Value:
        parts = [sliced(b, value, axis, 0, start)] if start else []
        parts.append(reshape(b, other, shape))
        if end < extent:
            parts.append(sliced(b, value, axis, end, extent - end))
        return concat(b, parts, axis)

    return call.alike([call["self"], call["src"]], build)


def expand(call: Call[Term]) -> Term:
    """Copy along dimensions, new ones in front."""
    return call.moved(lambda value: tiled(call.b, value, call.shape))


def repeat_interleave(call: Call[Term]) -> Term:
    """Copy each index of a dimension, one after the other; all elements where none is named."""
    b, count, given = call.b, int(call["repeats"]), call.shape_of("self")
    axis = call.axis() if call.given("dim") else len(given) - 1
    front, rest = prod(given[: axis + 1]), prod(given[axis + 1 :])
    return call.moved(
        lambda value: reshape(
            b, tiled(b, reshape(b, value, (front, 1, rest)), (front, count, rest)), call.shape
        )
    )


def flip(call: Call[Term]) -> Term:
    """Reverse dimensions."""

    def move(value: Value) -> Value:
        for dim in call["dims"]:
            axis = int(dim) % len(call.shape)
            value = call.b("REVERSE", value, axis=axis, quantization=value.quantization)
        return value

    return call.moved(move)


def roll(call: Call[Term]) -> Term:
    """Move dimensions round; all elements as one row where no dimension is named."""
    b, shifts, dims = call.b, list(call["shifts"]), list(call["dims"])

    def move(value: Value) -> Value:
        if not dims:
            flat = reshape(b, value, (prod(call.shape),))
            return reshape(b, rolled(b, flat, int(shifts[0]), 0), call.shape)
        for shift, dim in zip(shifts, dims, strict=True):
            value = rolled(b, value, int(shift), int(dim) % len(call.shape))
        return value

    return call.moved(move)


def pad(call: Call[Term]) -> Term:
    """Add a border of one number, or of the tensor's own edge."""
    mode = str(call.arguments.get("mode", "constant"))
    border = by_axis([int(item) for item in call["pad"]], len(call.shape))
    amounts = [max(item, 0) for item in border]

    def build(value: Value, filling: Value) -> Value:
        value = cropped(call.b, value, border)
        if mode == "constant":
            return padded(call.b, value, amounts, filling)
        return edged(call.b, value, amounts, mode)

    return call.alike([call["self"], call["value"] or 0], build)


def edge_pad(call: Call[Term]) -> Term:
    """Add a border of the tensor's own edge, mirrored or repeated."""
    mode = "reflect" if call.operator.startswith("reflection") else "replicate"
    border = by_axis([int(item) for item in call["padding"]], len(call.shape))
    amounts = [max(item, 0) for item in border]
    return call.moved(lambda value: edged(call.b, cropped(call.b, value, border), amounts, mode))


def pixel_shuffle(call: Call[Term]) -> Term:
    """Make pixels of channels: [..., C*r*r, H, W] -> [..., C, H*r, W*r]."""
    return call.moved(lambda value: shuffled(call.b, value, int(call["upscale_factor"])))


def pixel_unshuffle(call: Call[Term]) -> Term:
    """Make channels of pixels: [..., C, H*r, W*r] -> [..., C*r*r, H, W]."""
    return call.moved(lambda value: unshuffled(call.b, value, int(call["downscale_factor"])))


def channel_shuffle(call: Call[Term]) -> Term:
    """Take channels of groups in turns, of [N,C,...]."""
    groups = int(call["groups"])
    count, channels, *space = call.shape

    def move(value: Value) -> Value:
        b = call.b
        value = reshape(b, value, (count, groups, channels // groups, prod(space)))
        return reshape(b, permuted(b, value, (0, 2, 1, 3)), call.shape)

    return call.moved(move)
