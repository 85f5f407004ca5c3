"""How windows go over images, as ONNX says it: strides, dilations, pads of each end, `auto_pad`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.frontends.arrangement.movement import Pads
from mizzen.frontends.onnx.lowering.call import OnnxCall

Pair = tuple[int, int]

NOTSET, VALID, SAME_UPPER, SAME_LOWER = "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where windows are, for height and width; images of one row have a height of 1.

    pads  top, bottom, left, right
    """

    kernel: Pair
    stride: Pair
    dilation: Pair
    pads: Pads


def placement(call: OnnxCall, kernel: Sequence[int]) -> Placement:
    """Return where the windows of a convolution or pool are."""
    spatial = len(call.shape_of(0)) - 2
    call.need(
        spatial in (1, 2),
        f"its input has {spatial + 2} dimensions, and windows go over 3 or 4: batch, channels, "
        "height and width",
        "take the images of a volume one by one",
    )
    call.need(len(kernel) == spatial, "its kernel has not as many dimensions as its images")
    stride, dilation = (call.wholes(name, (1,) * spatial) for name in ("strides", "dilations"))
    call.need(len(stride) == len(dilation) == spatial, "its strides do not fit its images")
    before, after = _pads(call, kernel, stride, dilation)
    call.need(min((*before, *after)) >= 0, "a pad is negative", "put a Slice before it")
    (top, left), (below, right) = _pair(before, 0), _pair(after, 0)
    return Placement(
        _pair(kernel, 1), _pair(stride, 1), _pair(dilation, 1), (top, below, left, right)
    )


def _pads(
    call: OnnxCall, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Return pads in front and behind."""
    way, spatial = call.text("auto_pad", NOTSET), len(kernel)
    if way == VALID:
        return (0,) * spatial, (0,) * spatial
    if way in (SAME_UPPER, SAME_LOWER):
        totals = [
            max((-(-extent // step) - 1) * step + (size - 1) * spread + 1 - extent, 0)
            for extent, size, step, spread in zip(
                call.shape_of(0)[2:], kernel, stride, dilation, strict=True
            )
        ]
        less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
        return (less, more) if way == SAME_UPPER else (more, less)
    pads = call.wholes("pads", (0,) * (2 * spatial))
    call.need(len(pads) == 2 * spatial, "its pads do not fit its images")
    return pads[:spatial], pads[spatial:]


def pair(call: OnnxCall, name: str, default: int, spatial: int) -> Pair:
    """Return an attribute with a number for each dimension of an image."""
    values = call.wholes(name, (default,) * spatial)
    call.need(len(values) == spatial, f"its {name} do not fit its images")
    return _pair(values, default)


def _pair(values: Sequence[int], lead: int) -> Pair:
    if len(values) == 1:
        return lead, values[0]
    return values[0], values[1]
