"""What a target's operations can, as data: neutral parts are given it, and know no target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Of depthwise convolutions: the longest stride, and the most rows or columns of a kernel."""

    longest_stride: int
    largest_kernel: int
    longest_upscale: int | None = None
    """The longest stride of transposed convolutions; None where they stay as they are."""
