"""What the compute engine does to a plane before it multiplies: cut, upsampled, padded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import Upsample
from mizzen.targets.ethos_n.sim.interleave import STRIDE, blocks

Array = npt.NDArray[Any]
UPSAMPLING = 2
"""Rows and columns that an upsampled plane has for each one."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The window's way over a plane of `height` x `width` x `channels`.

    height, width   of the plane that the window sees: put together again from its submaps where
                    there is a stride, upsampled where it is
    pad_top, ...    zeros before it; after it there are as many as the output needs
    """

    height: int
    width: int
    channels: int
    kernel_height: int
    kernel_width: int
    stride: int
    pad_top: int
    pad_left: int
    output_height: int
    output_width: int
    upsample: Upsample
    banks: int

    @property
    def padded_height(self) -> int:
        """Rows that the window slides over."""
        return (self.output_height - 1) * self.stride + self.kernel_height

    @property
    def padded_width(self) -> int:
        """Columns that the window slides over."""
        return (self.output_width - 1) * self.stride + self.kernel_width

    @property
    def is_pointwise(self) -> bool:
        """Whether an output element depends on the input element of its place only."""
        kernel = (self.kernel_height, self.kernel_width, self.stride)
        plane = (self.output_height, self.output_width)
        is_plain = self.upsample is Upsample.OFF and not (self.pad_top or self.pad_left)
        return kernel == (1, 1, 1) and is_plain and plane == (self.height, self.width)

    def padded(self, values: Array, zero_point: int, dtype: npt.DTypeLike) -> Array:
        """Return `[n, padded_height, padded_width, channels]` less the zero point, zeros around."""
        shape = (len(values), self.padded_height, self.padded_width, self.channels)
        result = np.zeros(shape, dtype)
        rows = min(self.height, self.padded_height - self.pad_top)
        columns = min(self.width, self.padded_width - self.pad_left)
        inner = result[
            :, self.pad_top : self.pad_top + rows, self.pad_left : self.pad_left + columns
        ]
        zero = np.dtype(dtype).type(zero_point)
        for target, part in self._parts(inner, values):
            seen = part[:, : target.shape[1], : target.shape[2]]
            np.subtract(seen, zero, out=target[:, : seen.shape[1], : seen.shape[2]])
        return result

    def _parts(self, inner: Array, values: Array) -> Iterator[tuple[Array, Array]]:
        """Return parts of the plane and what goes there."""
        if self.stride == STRIDE:
            for block in blocks(self.channels, self.banks):
                target = inner[:, block.down :: STRIDE, block.across :: STRIDE, block.whole]
                yield target, values[..., block.cut]
            return
        match self.upsample:
            case Upsample.OFF:
                yield inner, values
            case Upsample.TRANSPOSE:
                yield inner[:, ::UPSAMPLING, ::UPSAMPLING], values
            case Upsample.NEAREST_NEIGHBOUR:
                for down in range(UPSAMPLING):
                    for across in range(UPSAMPLING):
                        yield inner[:, down::UPSAMPLING, across::UPSAMPLING], values
            case Upsample.BILINEAR:
                yield inner, bilinear(values)


def bilinear(values: Array) -> Array:
    """Double a plane: elements, and between them the mean of the two or four around, half up.

    The last row and column repeat. Sums of four 8-bit numbers and a half fit 16 bits.
    """
    wide = values.astype(np.int16)
    for axis in (1, 2):
        following = np.concatenate(
            [wide.take(range(1, wide.shape[axis]), axis), wide.take([-1], axis)], axis
        )
        pairs = np.stack([wide * 2, wide + following], axis + 1)
        shape = list(wide.shape)
        shape[axis] *= 2
        wide = pairs.reshape(shape)
    return ((wide + 2) >> 2).astype(values.dtype)
