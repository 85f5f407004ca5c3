"""Windows over images as nodes have them: convolutions and pools, for both profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mizzen.frontends.arrangement.movement import Pads, lifted
from mizzen.frontends.arrangement.windows import Convolution, Window, adaptive, greatest, pooled
from mizzen.frontends.torch.call import Arguments, Call, Term


def convolution_of(call: Call[Any]) -> Convolution:
    """Take a convolution's node apart."""
    spatial, *kernel = len(call.shape_of("weight")) - 2, *call.shape_of("weight")[2:]
    dilation = pair(call["dilation"], 1)
    pads = pads_of(call["padding"], spatial, pair(kernel, 1), dilation)
    return Convolution(pair(call["stride"], 1), dilation, pads, int(call["groups"]))


def transposed_convolution_of(call: Call[Any]) -> Convolution:
    """Take a transposed convolution's node apart."""
    (top, left), (below, right) = pair(call["padding"], 0), pair(call["output_padding"], 0)
    pads = (top, top - below, left, left - right)
    stride, dilation = pair(call["stride"], 1), pair(call["dilation"], 1)
    return Convolution(stride, dilation, pads, int(call["groups"]))


def pair(value: Sequence[int] | int, lead: int) -> tuple[int, int]:
    """Return the numbers for height and width; one dimension is the width."""
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


def window_pair(
    value: Sequence[int] | int, is_line: bool = False, lead: int = 1
) -> tuple[int, int]:
    """Return the numbers for height and width; one number is both, or that of one row."""
    items = [value] if isinstance(value, int) else list(value)
    if len(items) == 1:
        return (lead if is_line else int(items[0])), int(items[0])
    return int(items[0]), int(items[1])


def window_of(call: Call[Any]) -> Window:
    """Take a pool's node apart."""
    is_line = spatial_of(call) == 1
    kernel = window_pair(call["kernel_size"], is_line)
    stride = window_pair(call["stride"], is_line) if call["stride"] else kernel
    high, wide = window_pair(call["padding"], is_line, 0)
    dilation = window_pair(call.arguments.get("dilation", 1), is_line)
    call.need(dilation == (1, 1), "its window is dilated", "pool without dilation")
    return Window(kernel, stride, (high, high, wide, wide))


def spatial_of(call: Call[Any]) -> int:
    """Return how many dimensions of an image an operator is for: 2, or 1 for rows."""
    return 1 if "1d" in str(call.node.target) else 2


def max_pool2d(call: Call[Term]) -> Term:
    """Return the greatest of each window."""
    b, window, rank = call.b, window_of(call), spatial_of(call) + 2
    return call.moved(
        lambda value: pooled(b, lifted(b, value, rank), window, greatest(b), call.shapes[0])
    )


def max_pool2d_with_indices(call: Call[Term]) -> tuple[Term, ...]:
    """Return the greatest of each window; where it was, TOSA does not say."""
    call.need(call.used <= {0}, "it gives indices", "use max_pool2d without return_indices")
    return (max_pool2d(call),)


def adaptive_max_pool2d(call: Call[Term]) -> tuple[Term, ...]:
    """Return the greatest of windows that cut an image into a given number of rows and columns."""
    call.need(call.used <= {0}, "it gives indices", "pool without return_indices")
    b, rank = call.b, spatial_of(call) + 2
    return (
        call.moved(lambda value: adaptive(b, lifted(b, value, rank), greatest(b), call.shapes[0])),
    )
