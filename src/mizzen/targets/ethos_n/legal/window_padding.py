"""The paddings of windows that move over a plane."""

from __future__ import annotations

from mizzen.targets.ethos_n.tensors import Padding, Shape, Stride

VALID = Padding()
REGISTER_LARGEST = 7
"""What the hardware's fields of padding hold; release 25.03 uses all of them."""


def same_paddings(shape: Shape, size: tuple[int, int], stride: Stride) -> tuple[Padding, ...]:
    """Return the three paddings that count as SAME, for a window of `size` (height, width).

    Output extents are then ceil(extent / stride). An odd element is on neither side alone: it is
    added to both, to the first, or to the second.
    """
    high, low = _shares(shape[1], size[0], stride.y)
    wide, narrow = _shares(shape[2], size[1], stride.x)
    return (
        Padding(high, high, wide, wide),
        Padding(high, low, wide, narrow),
        Padding(low, high, narrow, wide),
    )


def _shares(extent: int, size: int, stride: int) -> tuple[int, int]:
    """Halve the padding of an axis: the greater half, the lesser half."""
    padded = (-(-extent // stride) - 1) * stride + size
    total = max(padded - extent, 0)
    greater = -(-total // 2)
    return greater, total - greater


def sides(padding: Padding) -> tuple[int, int, int, int]:
    """Return the elements at the four sides."""
    return padding.top, padding.bottom, padding.left, padding.right


def padding_text(padding: Padding) -> str:
    """Write a padding."""
    top, bottom, left, right = sides(padding)
    return f"top {top}, bottom {bottom}, left {left}, right {right}"
