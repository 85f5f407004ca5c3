"""What the compute engine does to a plane before it multiplies, and where that is, for messages.

A plane is cut, upsampled, padded; a message names the command and the port of a tensor.

A plane cut 2 x 2 lies in the channels as four submaps. Blocks of as many channels as there are SRAM
banks alternate: a block of submap 0 (even rows, even columns), of 1 (even, odd), of 2 (odd, even),
of 3 (odd, odd), then the next block of submap 0. The last block of submap 3 ends with the channels,
so 3 channels over 16 banks make 51.

Ref: Ethos-N driver stack 25.03, `Interleave_2x2_2_2.cpp`; 23.02, `GetNumSubmapChannels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.targets.ethos_n.commands_values import TensorRecord, Upsample


@dataclass(frozen=True, slots=True)
class Where:
    """A command: its number and name, and its word offset in the stream."""

    number: int
    name: str
    offset_words: int

    @property
    def origin(self) -> Origin:
        """The place in the stream."""
        return Origin(command=self.offset_words)

    def __str__(self) -> str:
        return f"command {self.number} {self.name}"

    def fault(self, code: str, message: str, help: str | None = None) -> MizzenError:
        """Make the error for `raise`: the command cannot be executed."""
        return fail(code, f"{self}: {message}", origin=self.origin, help=help)


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor of a command: `role` says which one (`input`, `output`)."""

    where: Where
    role: str
    record: TensorRecord

    def fault(self, code: str, message: str, help: str | None = None) -> MizzenError:
        """Make the error for `raise`: the message is about the tensor."""
        return self.where.fault(code, f"{self.role} {message}", help)


Array = npt.NDArray[Any]

STRIDE = 2
SUBMAPS = STRIDE * STRIDE


@dataclass(frozen=True, slots=True)
class Block:
    """Channels of the plane (`whole`) and of one submap (`cut`) that are the same."""

    down: int
    across: int
    whole: slice
    cut: slice


def blocks(channels: int, banks: int) -> Iterator[Block]:
    """Return the blocks of all submaps of `channels` channels."""
    for start in range(0, channels, banks):
        count = min(banks, channels - start)
        for submap in range(SUBMAPS):
            at = SUBMAPS * start + submap * banks
            down, across = divmod(submap, STRIDE)
            yield Block(down, across, slice(start, start + count), slice(at, at + count))


def interleaved_channels(channels: int, banks: int) -> int:
    """Return the number of channels of all submaps."""
    last = channels % banks
    return SUBMAPS * -(-channels // banks) * banks - (banks - last if last else 0)


def interleave(values: Array, banks: int) -> Array:
    """Cut `[n, H, W, C]` into submaps `[n, ceil(H/2), ceil(W/2), channels]`, zeros between."""
    n, height, width, channels = values.shape
    shape = (n, -(-height // 2), -(-width // 2), interleaved_channels(channels, banks))
    cut = np.zeros(shape, values.dtype)
    for block in blocks(channels, banks):
        part = values[:, block.down :: STRIDE, block.across :: STRIDE, block.whole]
        cut[:, : part.shape[1], : part.shape[2], block.cut] = part
    return cut


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
        lines = min(self.height, self.padded_height - self.pad_top)
        columns = min(self.width, self.padded_width - self.pad_left)
        inner = result[
            :, self.pad_top : self.pad_top + lines, self.pad_left : self.pad_left + columns
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
