"""Tensors in planes of 16 channels: bricks whose rows follow each other.

NHCWB16 has the bricks of a row one after the other, so that a map of another width cannot be seen
in it, and what sees a map in another shape needs NHWC, which the machine moves in short runs. With
all positions of one brick together, and the bricks one after another, a map of `H` x `W` is one of
`1` x `H * W` too, and both are NHCWB16 to the machine: only the strides differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.operations.maps import BRICK, Box, Bytes, Map, Tensor
from mizzen.targets.ethos_u.machine.commands_values import Layout


def as_bytes(view: Box | Bytes, tensor: Tensor) -> Bytes | None:
    """Return a view of a tensor as strides over it in NHWC; None of bricks and of tiles."""
    if isinstance(view, Bytes):
        return view if view.layout is Layout.NHWC and view.tiles is None else None
    if tensor.layout is Layout.NHCWB16:
        return None
    stride_y, stride_x, size = tensor.strides_bytes(Layout.NHWC)
    offset = view.start[0] * stride_y + view.start[1] * stride_x + view.start[2] * size
    strides = stride_y * view.steps[0], stride_x * view.steps[1], size
    return Bytes(tensor=view.tensor, shape=view.shape, offset_bytes=offset, strides_bytes=strides)


def as_box(view: Bytes, tensor: Tensor) -> Box | Bytes:
    """Return the box of its tensor that a view is, or the view where it is not one."""
    if view.layout is not Layout.NHWC or view.tiles is not None:
        return view
    stride_y, stride_x, size = tensor.strides_bytes(Layout.NHWC)
    (y, rest), steps = divmod(view.offset_bytes, stride_y), [1, 1]
    x, rest = divmod(rest, stride_x)
    for axis, pitch in enumerate((stride_y, stride_x)):
        if view.shape[axis] > 1:
            steps[axis], over = divmod(view.strides_bytes[axis], pitch)
            if over or steps[axis] < 1:
                return view
    if rest % size or (tensor.layout is Layout.NHCWB16):
        return view
    start = y, x, rest // size
    ends = [
        place + (extent - 1) * step
        for place, extent, step in zip(start, view.shape, (*steps, 1), strict=True)
    ]
    if any(end >= most for end, most in zip(ends, tensor.shape, strict=True)):
        return view
    return Box(tensor=view.tensor, shape=view.shape, start=start, steps=(steps[0], steps[1]))


@dataclass(frozen=True, slots=True)
class Planes:
    """A tensor [H, W, C] whose positions are to be in planes."""

    tensor: Tensor

    @property
    def in_planes(self) -> Tensor:
        """The tensor as it lies then: a row for each plane, and bricks for channels."""
        height, width, depth = self.tensor.shape
        shape = -(-depth // BRICK), height * width, BRICK
        return replace(self.tensor, shape=shape, layout=Layout.NHWC)

    def has_rows(self, map_: Map) -> bool:
        """Whether the rows of a map are at positions, and all of them at the same channels."""
        seen, size = as_bytes(map_.view, self.tensor), self.tensor.dtype.itemsize
        if seen is None:
            return False
        return map_.shape[0] == 1 or not seen.strides_bytes[0] % (self.tensor.shape[2] * size)

    def view(self, map_: Map) -> Bytes | None:
        """Return a map of the tensor in planes; None where its channels are not whole bricks.

        Rows may be positions, or channels, or both.
        """
        seen, size = as_bytes(map_.view, self.tensor), self.tensor.dtype.itemsize
        if seen is None or map_.dtype.itemsize != size or seen.strides_bytes[2] != size:
            return None
        rows, columns, channels = self.tensor.shape
        height, width, depth = seen.shape
        position, start = divmod(seen.offset_bytes // size, channels)
        stride_y, stride_x = (stride // size for stride in seen.strides_bytes[:2])
        down, deeper = divmod(stride_y, channels) if height > 1 else (0, 0)
        across = width == 1 or stride_x == channels
        inside = start + (height - 1) * deeper + depth <= channels
        if start % BRICK or deeper % BRICK or not across or not inside:
            return None
        step, plane = BRICK * size, rows * columns * BRICK * size
        return Bytes(
            tensor=seen.tensor,
            shape=seen.shape,
            offset_bytes=start // BRICK * plane + position * step,
            strides_bytes=(down * step + deeper // BRICK * plane, step, plane),
            layout=Layout.NHCWB16,
        )
