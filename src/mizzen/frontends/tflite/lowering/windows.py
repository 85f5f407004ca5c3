"""Windows over images: TFLite's padding schemes in the form that TOSA takes."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.frontends.tflite.context import Call, kept
from mizzen.graph import Value
from mizzen.ops import Builder

SAME, VALID = 0, 1
"""TFLite's padding schemes, as its schema numbers them."""

Pair = tuple[int, int]
"""Of height and of width."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window that goes over an image in steps; `padding` is a scheme."""

    kernel: Pair
    stride: Pair
    padding: int
    dilation: Pair = (1, 1)

    def places(self, size: int, axis: int) -> int:
        """Return the number of places along an axis (0 height, 1 width) of a size."""
        stride = self.stride[axis]
        if self.padding == SAME:
            return -(-size // stride)
        return (size - self._span(axis)) // stride + 1

    def before(self, size: int, axis: int) -> int:
        """Return the padding in front of an axis of a size: half of it, rounded down."""
        if self.padding != SAME:
            return 0
        return max(self._reach(size, axis) - size, 0) // 2

    def lay(self, b: Builder, value: Value) -> tuple[Value, tuple[int, int, int, int]]:
        """Return what the windows cover of [N,H,W,C], and padding: top, bottom, left, right.

        TOSA wants the last window to end where the padded image ends: rows and columns that no
        window reaches are cut off by a SLICE.
        """
        pads: list[int] = []
        sizes = list(value.shape)
        for axis in (0, 1):
            size = value.shape[1 + axis]
            before = self.before(size, axis)
            needed = self._reach(size, axis) - before
            pads += [before, max(needed - size, 0)]
            sizes[1 + axis] = min(size, needed)
        if tuple(sizes) != value.shape:
            start, size = b.shape([0, 0, 0, 0]), b.shape(sizes)
            value = b("SLICE", value, start, size, quantization=kept(value))
        return value, (pads[0], pads[1], pads[2], pads[3])

    def _span(self, axis: int) -> int:
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def _reach(self, size: int, axis: int) -> int:
        """Return from where the first window starts to where the last ends."""
        return (self.places(size, axis) - 1) * self.stride[axis] + self._span(axis)


def window_of(call: Call, kernel: Pair) -> Window:
    """Read stride, dilation and padding of an operator."""
    stride = int(call.option("stride_h", 1)), int(call.option("stride_w", 1))
    dilation = int(call.option("dilation_h_factor", 1)), int(call.option("dilation_w_factor", 1))
    padding = int(call.option("padding"))
    call.need(min(*stride, *dilation, *kernel) > 0, "its window has a size or step of 0")
    call.need(padding in (SAME, VALID), f"its padding is number {padding}")
    return Window(kernel, stride, padding, dilation)
