"""Data layout, scatter and gather operators. Ref: TOSA 1.0, 2.10, 2.11."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import (
    IN_OUT,
    Attribute,
    RuleError,
    Shape,
    TosaOperation,
    axis_of,
    constant,
    integers,
    known,
    ranked,
    same,
    shape,
    table,
    tensor,
    variadic,
)

CONCAT_TYPES = table(
    "in_out_t",
    """
    PRO-INT/PRO-FP bool
    PRO-INT        i8
    EXT-INT16      i16
    PRO-INT        i32
    PRO-FP         f16
    EXT-BF16       bf16
    PRO-FP         f32
    """,
)
TYPES = table(
    "in_out_t",
    """
    PRO-INT/PRO-FP bool
    PRO-INT        i8
    PRO-INT        i16
    PRO-INT        i32
    PRO-FP         f16
    EXT-BF16       bf16
    PRO-FP         f32
    """,
)


def concat(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the common shape with the sizes along the axis added."""
    axis = axis_of(operands, attributes)
    first = operands[0].type.shape
    before, after = first[:axis], first[axis + 1 :]
    total = 0
    for operand in operands:
        other = operand.type.shape
        if len(other) != len(first) or other[:axis] != before or other[axis + 1 :] != after:
            raise RuleError(
                f"operands must have one shape but for axis {axis}, and have {first} and {other}"
            )
        total += other[axis]
    return ((*before, total, *after),)


def pad(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape with the padding added; one pair, before and after, a dimension."""
    size, padding = operands[0].type.shape, known(operands[1], "padding")
    if len(padding) != 2 * len(size) or min(padding) < 0:
        raise RuleError(
            f"padding must be {2 * len(size)} numbers for {size}, none negative, and is {padding}"
        )
    return (
        tuple(
            extent + before + after
            for extent, before, after in zip(size, padding[::2], padding[1::2], strict=True)
        ),
    )


def reshape(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape that the second operand says; it must have as many elements."""
    old, new = operands[0].type.shape, known(operands[1], "shape")
    if prod(old) != prod(new) or (new and min(new) < 0):
        raise RuleError(f"the shape must have the elements of {old}, and is {new}")
    return (new,)


def reverse(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the operand's shape."""
    axis_of(operands, attributes)
    return same(operands, attributes)


def slice_(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the size that is taken; it must lie within the operand."""
    whole = operands[0].type.shape
    start, size = known(operands[1], "start"), known(operands[2], "size")
    if not len(whole) == len(start) == len(size):
        raise RuleError(f"start and size must have {len(whole)} numbers, not {start} and {size}")
    if any(
        first < 0 or extent <= 0 or first + extent > available
        for first, extent, available in zip(start, size, whole, strict=True)
    ):
        raise RuleError(f"start and size must lie within {whole}, and are {start} and {size}")
    return (size,)


def tile(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape times the multiples."""
    once, multiples = operands[0].type.shape, known(operands[1], "multiples")
    if len(once) != len(multiples) or min(multiples) < 1:
        raise RuleError(f"multiples must be {len(once)} positive numbers, and are {multiples}")
    return (tuple(a * b for a, b in zip(once, multiples, strict=True)),)


def transpose(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the permuted shape: dimension i of the result is dimension perms[i] of the operand."""
    perms: Shape = attributes["perms"]
    old = operands[0].type.shape
    if sorted(perms) != list(range(len(old))):
        raise RuleError(f"perms must permute the dimensions of {old}, and are {perms}")
    return (tuple(old[index] for index in perms),)


class Concat(
    TosaOperation,
    kind="CONCAT",
    section="2.10.1",
    results=IN_OUT,
    rows=CONCAT_TYPES,
    shapes=concat,
):
    """Tensors one after the other along an axis."""

    input1 = variadic("in_out_t", 1)
    axis = Attribute(int)


class Rearranged(TosaOperation, results=IN_OUT, rows=TYPES):
    """The elements of one tensor, at other places."""

    input1 = ranked()


class Pad(Rearranged, kind="PAD", section="2.10.2", shapes=pad):
    """A tensor with a constant around it."""

    padding = shape()
    pad_const = constant()


class Reshape(Rearranged, kind="RESHAPE", section="2.10.3", shapes=reshape):
    """The same elements in another shape."""

    input1 = tensor()
    shape = shape()


class Reverse(Rearranged, kind="REVERSE", section="2.10.4", shapes=reverse):
    """A tensor turned around along an axis."""

    axis = Attribute(int)


class Slice(Rearranged, kind="SLICE", section="2.10.5", shapes=slice_):
    """A part of a tensor."""

    start = shape()
    size = shape()


class Tile(Rearranged, kind="TILE", section="2.10.6", shapes=tile):
    """A tensor repeated."""

    multiples = shape()


class Transpose(Rearranged, kind="TRANSPOSE", section="2.10.7", shapes=transpose):
    """A tensor with its dimensions permuted."""

    perms = integers()


INDEXED = table(
    "in_out_t index_t",
    """
    PRO-INT  i8   i32
    PRO-INT  i16  i32
    PRO-INT  i32  i32
    PRO-FP   f16  i32
    EXT-BF16 bf16 i32
    PRO-FP   f32  i32
    """,
)


def gather(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,K,C], indices [N,W] -> [N,W,C]."""
    (n, _, c), (batches, w) = operands[0].type.shape, operands[1].type.shape
    if n != batches:
        raise RuleError(f"values and indices must have one batch size, not {n} and {batches}")
    return ((n, w, c),)


def scatter(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,K,C], indices [N,W], input [N,W,C] -> [N,K,C]."""
    old, (_, w), new = (operand.type.shape for operand in operands)
    n, k, c = old
    if operands[1].type.shape[0] != n or new != (n, w, c):
        raise RuleError(
            f"operands must be [N,K,C], [N,W], [N,W,C], and are "
            f"{old}, {operands[1].type.shape}, {new}"
        )
    if k < w:
        raise RuleError(f"each position is written at most once, but {w} indices are given for {k}")
    return (old,)


class Gather(
    TosaOperation, kind="GATHER", section="2.11.1", results=IN_OUT, rows=INDEXED, shapes=gather
):
    """The rows that indices name."""

    values = tensor(rank=3)
    indices = tensor("index_t", 2)


class Scatter(
    TosaOperation,
    kind="SCATTER",
    section="2.11.2",
    results=(("values_out", "in_out_t"),),
    rows=INDEXED,
    shapes=scatter,
):
    """A tensor with new rows at the places that indices name."""

    values_in = tensor(rank=3)
    indices = tensor("index_t", 2)
    input = tensor(rank=3)
