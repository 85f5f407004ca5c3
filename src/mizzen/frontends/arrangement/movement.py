"""Moving elements: shapes, order, parts, copies, borders. The numbers stay what they are.

The quantisation goes along. At most four dimensions at a time are transposed, and borders are made
of slices: more dimensions, and REVERSE, the NPU has not. Images have channels last, as TOSA has
them. Ref: TOSA 1.0, 2.10 data layout operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.graph import Value
from mizzen.ops import Builder

TO_CHANNELS_LAST = (0, 2, 3, 1)


TO_CHANNELS_FIRST = (0, 3, 1, 2)


LIST_SIZE = 64
"""Greatest number of tensors in a list. Ref: TOSA 1.0, 1.7 Levels, 8K, MAX_TENSOR_LIST_SIZE."""


def reshape(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Add a RESHAPE unless the value has the shape."""
    if tuple(shape) == value.shape:
        return value
    return b("RESHAPE", value, b.shape(shape), quantization=value.quantization)


def lifted(b: Builder, value: Value, rank: int) -> Value:
    """Put dimensions of 1 in front up to a rank: TOSA broadcasts only equal ranks."""
    return reshape(b, value, (*(1,) * (rank - value.type.rank), *value.shape))


def same_rank(b: Builder, *values: Value) -> list[Value]:
    """Bring values to the highest rank among them."""
    rank = max(value.type.rank for value in values)
    return [lifted(b, value, rank) for value in values]


def transposed(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Add a TRANSPOSE."""
    return b("TRANSPOSE", value, perms=tuple(perms), quantization=value.quantization)


def permuted(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Bring dimensions into another order, unless they are in it."""
    return value if list(perms) == sorted(perms) else transposed(b, value, perms)


def sliced(b: Builder, value: Value, axis: int, start: int, size: int) -> Value:
    """Add a SLICE along one axis, unless it takes everything."""
    if start == 0 and size == value.shape[axis]:
        return value
    starts = [start if index == axis else 0 for index in range(value.type.rank)]
    sizes = [size if index == axis else extent for index, extent in enumerate(value.shape)]
    quantization = value.quantization
    return b("SLICE", value, b.shape(starts), b.shape(sizes), quantization=quantization)


def concat(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Put values one after the other, in lists of lists where they are many."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) <= LIST_SIZE:
        return b("CONCAT", *parts, axis=axis, quantization=parts[0].quantization)
    starts = range(0, len(parts), LIST_SIZE)
    return concat(b, [concat(b, parts[start : start + LIST_SIZE], axis) for start in starts], axis)


def tiled(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Repeat a value to a shape whose sizes are multiples."""
    value = lifted(b, value, len(shape))
    multiples = [whole // part for whole, part in zip(shape, value.shape, strict=True)]
    if all(multiple == 1 for multiple in multiples):
        return value
    return b("TILE", value, b.shape(multiples), quantization=value.quantization)


def padded(b: Builder, value: Value, border: Sequence[int], filling: Value) -> Value:
    """Add a PAD, first dimension first, unless there is no border."""
    if not any(border):
        return value
    return b("PAD", value, b.shape(border), filling, quantization=value.quantization)


def image(b: Builder, value: Value) -> Value:
    """Return [N,C,H,W] or [N,C,W] as [N,H,W,C]."""
    batch, channels, *extents = value.shape
    lines, columns = (1, *extents)[-2:]
    source = reshape(b, value, (batch, channels, lines, columns))
    return transposed(b, source, TO_CHANNELS_LAST)


def channels_first(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Return [N,H,W,C] with channels first, in a shape that leaves out dimensions of 1."""
    return reshape(b, transposed(b, value, TO_CHANNELS_FIRST), shape)


Pads = tuple[int, int, int, int]
"""Top, bottom, left, right."""


def fit(
    b: Builder,
    source: Value,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: Pads,
) -> tuple[Value, Pads]:
    """Leave out the rows and columns that no window reaches, which TOSA does not allow.

    Padding goes first, then the input's last rows and columns. Returns the input and the padding.
    Ref: TOSA 1.0, 2.3.3: the last window must end where the padded input ends.
    """
    result = list(pads)
    sizes = list(source.shape)
    for axis in (0, 1):
        extent = source.shape[1 + axis]
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        spare = (extent + pads[2 * axis] + pads[2 * axis + 1] - reach) % stride[axis]
        from_padding = min(spare, pads[2 * axis + 1])
        result[2 * axis + 1] -= from_padding
        sizes[1 + axis] = extent - (spare - from_padding)
    if tuple(sizes) != source.shape:
        starts = b.shape([0] * len(sizes))
        source = b("SLICE", source, starts, b.shape(sizes), quantization=source.quantization)
    return source, (result[0], result[1], result[2], result[3])


def put_between(b: Builder, value: Value, other: Value, axis: int, start: int, step: int) -> Value:
    """Replace each `step`-th element along an axis from a first one on.

    As many as are followed by others up to the next are the first columns of a matrix.
    """
    before, after = value.shape[:axis], value.shape[axis + 1 :]
    extent, size = value.shape[axis], other.shape[axis]
    count = min((extent - start) // step, size)
    end = start + count * step
    parts = [sliced(b, value, axis, 0, start)] if start else []
    if count:
        cut = sliced(b, value, axis, start, count * step)
        cut = reshape(b, cut, (*before, count, step, *after))
        new = reshape(b, sliced(b, other, axis, 0, count), (*before, count, 1, *after))
        cut = concat(b, [new, sliced(b, cut, axis + 1, 1, step - 1)], axis + 1)
        parts.append(reshape(b, cut, (*before, count * step, *after)))
    if size > count:
        parts.append(sliced(b, other, axis, count, 1))
        end += 1
    if end < extent:
        parts.append(sliced(b, value, axis, end, extent - end))
    return concat(b, parts, axis)


def rolled(b: Builder, value: Value, shift: int, axis: int) -> Value:
    """Move a dimension's elements round."""
    size = value.shape[axis]
    cut = -shift % size
    if not cut:
        return value
    return concat(
        b, [sliced(b, value, axis, cut, size - cut), sliced(b, value, axis, 0, cut)], axis
    )


def cropped(b: Builder, value: Value, border: Sequence[int]) -> Value:
    """Cut off what a border is negative by, first dimension first."""
    for axis in range(value.type.rank):
        before, after = (max(-item, 0) for item in border[2 * axis : 2 * axis + 2])
        value = sliced(b, value, axis, before, value.shape[axis] - before - after)
    return value


def edged(b: Builder, value: Value, amounts: Sequence[int], mode: str) -> Value:
    """Add a border of the tensor's own edge: ``reflect``, ``replicate`` or ``circular``."""
    for axis in range(value.type.rank):
        before, after = amounts[2 * axis], amounts[2 * axis + 1]
        if before or after:
            value = _edge(b, value, axis, before, after, mode)
    return value


def _edge(b: Builder, value: Value, axis: int, before: int, after: int, mode: str) -> Value:
    extent = value.shape[axis]
    if mode == "circular":
        front = [sliced(b, value, axis, extent - before, before)] if before else []
        behind = [sliced(b, value, axis, 0, after)] if after else []
        return concat(b, [*front, value, *behind], axis)
    inner = list(range(extent))
    if mode == "reflect":
        first, last = inner[before:0:-1], inner[-2 : -2 - after : -1]
    else:
        first, last = [0] * before, [extent - 1] * after
    lines = {index: sliced(b, value, axis, index, 1) for index in (*first, *last)}
    parts = [*(lines[index] for index in first), value, *(lines[index] for index in last)]
    return concat(b, parts, axis)


def stepped(b: Builder, value: Value, axis: int, start: int, step: int, count: int) -> Value:
    """Take every `step`-th index: cut the dimension in two, and keep the first of each row."""
    if step == 1:
        return sliced(b, value, axis, start, count)
    shape, span = list(value.shape), count * step
    lacking = start + span - shape[axis]
    if lacking > 0:  # the last row is short; what it lacks is not looked at
        border = [0] * (2 * value.type.rank)
        border[2 * axis + 1] = lacking
        value = padded(b, value, border, b.constant(np.zeros(1, value.dtype.numpy), value.dtype))
    value = sliced(b, value, axis, start, span)
    extents = [*shape[:axis], count, step, *shape[axis + 1 :]]
    value = sliced(b, reshape(b, value, extents), axis + 1, 0, 1)
    return reshape(b, value, [*shape[:axis], count, *shape[axis + 1 :]])


def shuffled(b: Builder, value: Value, ratio: int) -> Value:
    """Make pixels of channels: [..., C*r*r, H, W] -> [..., C, H*r, W*r]."""
    *front, channels, height, width = value.shape
    planes = prod(front) * channels // ratio**2
    shape = (*front, channels // ratio**2, height * ratio, width * ratio)
    value = reshape(b, value, (planes * ratio, ratio, height, width))
    value = permuted(b, value, (0, 2, 3, 1))
    value = reshape(b, value, (planes, ratio, height, width * ratio))
    return reshape(b, permuted(b, value, (0, 2, 1, 3)), shape)


def unshuffled(b: Builder, value: Value, ratio: int) -> Value:
    """Make channels of pixels: [..., C, H*r, W*r] -> [..., C*r*r, H, W]."""
    *front, channels, height, width = value.shape
    planes, lines, columns = prod(front) * channels, height // ratio, width // ratio
    value = reshape(b, value, (planes, lines, ratio, width))
    value = permuted(b, value, (0, 2, 1, 3))
    value = reshape(b, value, (planes * ratio, lines, columns, ratio))
    shape = (*front, channels * ratio**2, lines, columns)
    return reshape(b, permuted(b, value, (0, 3, 1, 2)), shape)
