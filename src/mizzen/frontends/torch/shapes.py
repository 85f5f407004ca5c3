"""Moving elements of the graph's tensors: shape, order, parts, images and windows over them.

The quantisation goes along. Ref: TOSA 1.0, 2.10 data layout operators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.frontends.torch.call import Arguments
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


def transpose(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Add a TRANSPOSE."""
    return b("TRANSPOSE", value, perms=tuple(perms), quantization=value.quantization)


def permuted(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Bring dimensions into another order, unless they are in it."""
    return value if list(perms) == sorted(perms) else transpose(b, value, perms)


def slice_(b: Builder, value: Value, axis: int, start: int, size: int) -> Value:
    """Add a SLICE along one axis, unless it takes everything."""
    if start == 0 and size == value.shape[axis]:
        return value
    starts = [start if index == axis else 0 for index in range(value.type.rank)]
    sizes = [size if index == axis else extent for index, extent in enumerate(value.shape)]
    quantization = value.quantization
    return b("SLICE", value, b.shape(starts), b.shape(sizes), quantization=quantization)


def concat(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Put values one behind the other, in lists of lists where they are many."""
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


def image(b: Builder, value: Value, spatial: int) -> Value:
    """Return [N,C,H,W], [C,H,W], [N,C,W] or [C,W] as [N,H,W,C]; `spatial` is 2 or 1."""
    shape = value.shape if value.type.rank == spatial + 2 else (1, *value.shape)
    if spatial == 1:
        shape = (*shape[:2], 1, shape[2])
    return transpose(b, reshape(b, value, shape), TO_CHANNELS_LAST)


def channels_first(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Return [N,H,W,C] with channels first, in a shape that leaves out dimensions of 1."""
    return reshape(b, transpose(b, value, TO_CHANNELS_FIRST), shape)


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


def pair(value: Sequence[int] | int, lead: int) -> tuple[int, int]:
    """Return what is meant for height and width; one dimension is the width."""
    items = [value] if isinstance(value, int) else list(value)
    if len(items) == 1:
        return lead, int(items[0])
    return int(items[0]), int(items[1])


def pads_of(
    padding: Sequence[int] | int | str,
    spatial: int,
    kernel: tuple[int, int],
    dilation: tuple[int, int],
) -> Pads:
    """Return top, bottom, left, right."""
    if padding == "valid":
        return 0, 0, 0, 0
    if padding == "same":
        total = [step * (extent - 1) for step, extent in zip(dilation, kernel, strict=True)]
        before = [extent // 2 for extent in total]
        return before[0], total[0] - before[0], before[1], total[1] - before[1]
    assert not isinstance(padding, str)
    items = [padding] if isinstance(padding, int) else list(padding)
    if len(items) == 1:
        items = [0 if spatial == 1 else items[0], items[0]]
    return items[0], items[0], items[1], items[1]


def need_batch(call: Arguments, rank: int) -> None:
    """Refuse a node whose operator is for images or rows and whose input is a single one."""
    call.need(
        len(call.shape_of(call.first)) == rank,
        "its input has no batch dimension",
        "add a batch dimension of 1 to the model's input",
    )


def window_pair(value: Sequence[int] | int, row: bool = False, lead: int = 1) -> tuple[int, int]:
    """Return what is meant for height and width; one number is both, or that of one row."""
    items = [value] if isinstance(value, int) else list(value)
    if len(items) == 1:
        return (lead if row else int(items[0])), int(items[0])
    return int(items[0]), int(items[1])


def cuts_of(extent: int, count: int) -> list[tuple[int, int]]:
    """Return the start and end of each part, as PyTorch cuts them."""
    return [(index * extent // count, -(-(index + 1) * extent // count)) for index in range(count)]


def regular_step(cuts: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Return size and step if all parts have the same."""
    sizes = {end - start for start, end in cuts}
    steps = set(np.diff([start for start, _ in cuts]).tolist())
    if len(sizes) > 1 or len(steps) > 1:
        return None
    return sizes.pop(), int(steps.pop()) if steps else 1


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
