"""Windows over images as nodes have them: convolutions and pools, for both profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mizzen.frontends.arrangement.movement import Pads, lifted
from mizzen.frontends.arrangement.windows import (
    Convolution,
    Pair,
    Pool,
    Window,
    adaptive,
    greatest,
    pooled,
)
from mizzen.frontends.torch.call import Arguments, Call, Term
from mizzen.graph import Value


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


def pair(value: Sequence[int] | int, lead: int | None = None) -> Pair:
    """Return the numbers for height and width; of one number, `lead` is that for height, if any."""
    items = [value] if isinstance(value, int) else list(value)
    if len(items) == 1:
        return (int(items[0]) if lead is None else lead), int(items[0])
    return int(items[0]), int(items[1])


def pads_of(padding: Sequence[int] | int | str, spatial: int, kernel: Pair, dilation: Pair) -> Pads:
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


def window_of(call: Call[Any]) -> Window:
    """Take a pool's node apart."""
    one, none = (1, 0) if spatial_of(call) == 1 else (None, None)
    kernel = pair(call["kernel_size"], one)
    stride = pair(call["stride"], one) if call["stride"] else kernel
    high, wide = pair(call["padding"], none)
    dilation = pair(call.arguments.get("dilation", 1), one)
    call.need(dilation == (1, 1), "its window is dilated", "pool without dilation")
    return Window(kernel, stride, (high, high, wide, wide))


def spatial_of(call: Call[Any]) -> int:
    """Return how many dimensions of an image an operator is for: 2, or 1 for rows."""
    return 1 if "1d" in str(call.node.target) else 2


def image_of(call: Call[Any], value: Value) -> Value:
    """Return a pool's input with a dimension for the batch."""
    return lifted(call.b, value, spatial_of(call) + 2)


def by_windows(call: Call[Any], value: Value, pool: Pool, filling: int | None = None) -> Value:
    """Pool as a node's windows are; padding counts, as a number, only where that is given."""
    x, window = image_of(call, value), window_of(call)
    return pooled(call.b, x, window, pool, call.shapes[0], filling)


def by_tiles(call: Call[Any], value: Value, pool: Pool) -> Value:
    """Pool windows that cut an image into as many rows and columns as the result has."""
    return adaptive(call.b, image_of(call, value), pool, call.shapes[0])


def max_pool2d(call: Call[Term]) -> Term:
    """Return the greatest of each window."""
    return call.moved(lambda value: by_windows(call, value, greatest(call.b)))


def max_pool2d_with_indices(call: Call[Term]) -> tuple[Term, ...]:
    """Return the greatest of each window; where it was, TOSA does not say."""
    call.need(call.used <= {0}, "it gives indices", "use max_pool2d without return_indices")
    return (max_pool2d(call),)


def adaptive_max_pool2d(call: Call[Term]) -> tuple[Term, ...]:
    """Return the greatest of windows that cut an image into a given number of rows and columns."""
    call.need(call.used <= {0}, "it gives indices", "pool without return_indices")
    return (call.moved(lambda value: by_tiles(call, value, greatest(call.b))),)
