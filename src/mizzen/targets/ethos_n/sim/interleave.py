"""How the four submaps of a plane cut 2 x 2 lie in the channels.

Blocks of as many channels as there are SRAM banks alternate: a block of submap 0 (even rows, even
columns), of 1 (even, odd), of 2 (odd, even), of 3 (odd, odd), then the next block of submap 0. The
last block of submap 3 ends with the channels, so 3 channels over 16 banks make 51.

Ref: Ethos-N driver stack 25.03, `Interleave_2x2_2_2.cpp`; 23.02, `GetNumSubmapChannels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
