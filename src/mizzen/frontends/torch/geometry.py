"""Windows over images: what PyTorch's arguments say, in the form that TOSA takes it.

Lists have height before width; one dimension is the width of one row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.frontends.torch.call import Arguments
from mizzen.graph import Value
from mizzen.ops import Builder

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
