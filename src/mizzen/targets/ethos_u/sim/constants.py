"""What the simulator knows of memory before it runs: bytes that are the same for every input.

Compilers move weights, scales and tables by DMA before they use them. Following those transfers
while planning lets every stream be decoded once, and finds uses of bytes that are no constants.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.sim.memory import pieces
from mizzen.targets.ethos_u.sim.operations import FeatureMap

Bytes = npt.NDArray[np.uint8]


class KnownBytes:
    """Shadow of all regions: which bytes are known, and what they are."""

    def __init__(self, sizes: dict[int, int], constants: dict[int, Bytes]) -> None:
        self._bytes = {
            region: constants[region] if region in constants else np.zeros(size, np.uint8)
            for region, size in sizes.items()
        }
        self._known = {
            region: np.full(size, region in constants, np.bool_) for region, size in sizes.items()
        }

    def read(self, region: int, offset: int, length: int) -> Bytes | None:
        """Return bytes of a region, or None if any of them depends on the input."""
        span = slice(offset, offset + length)
        return self._bytes[region][span] if self._known[region][span].all() else None

    def write(self, region: int, offset: int, data: Bytes) -> None:
        """Note that these bytes are known from here on."""
        span = slice(offset, offset + len(data))
        self._bytes[region][span] = data
        self._known[region][span] = True

    def forget(self, region: int, offset: int, length: int) -> None:
        """Note that these bytes depend on the input from here on."""
        self._known[region][offset : offset + length] = False

    def forget_map(self, fm: FeatureMap) -> None:
        """Note that an operation computes this feature map."""
        known = self._known[fm.region]
        for piece in pieces(fm):
            cells = np.ndarray(
                piece.counts, f"V{piece.cell_bytes}", known.data, piece.offset, piece.strides
            )
            cells[...] = np.zeros((), f"V{piece.cell_bytes}")
