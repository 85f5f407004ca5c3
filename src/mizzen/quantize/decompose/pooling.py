"""Windows whose sums are divided by a number of the user's."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from mizzen.quantize.decompose.arithmetic import argument, scaled
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of


def avg_pool2d(rewriter: Rewriter, node: Node) -> Node | None:
    """Means by another divisor are means, padding included, times a number."""
    divisor = argument(node, 6, "divisor_override")
    if divisor is None:
        return None
    kernel = _both(argument(node, 1, "kernel_size"))
    stride = _both(argument(node, 2, "stride", None) or kernel)
    padding = _both(argument(node, 3, "padding", 0))
    value = node.args[0]
    assert isinstance(value, Node)
    if argument(node, 4, "ceil_mode", False):
        value = rewriter.call(
            aten.constant_pad_nd.default, value, _overhanging(node, kernel, stride, padding), 0.0
        )
        padding = [0, 0]
    means = rewriter.call(aten.avg_pool2d.default, value, kernel, stride, padding)
    return scaled(rewriter, means, kernel[0] * kernel[1] / divisor)


def _both(extents: Any) -> list[int]:
    """Return rows and columns of what is given once for both, or for each."""
    values = [extents] if isinstance(extents, int) else list(extents)
    return [values[0], values[-1]]


def _overhanging(node: Node, kernel: list[int], stride: list[int], padding: list[int]) -> list[int]:
    """Return the zeros around an image with which every window of ``ceil_mode`` lies inside.

    As `constant_pad_nd` wants them: of the columns, then of the rows, before and after.
    """
    image, results = (shape_of(part)[-2:] for part in (node.all_input_nodes[0], node))
    border: list[int] = []
    for axis in (1, 0):
        reach = (results[axis] - 1) * stride[axis] + kernel[axis]
        border += [padding[axis], max(reach - image[axis] - padding[axis], 0)]
    return border
