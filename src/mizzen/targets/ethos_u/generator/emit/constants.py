"""The read-only region: blobs, tables and constant tensors, equal bytes once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ALIGNMENT_BYTES = 16


class PackedConstants:
    """Collects bytes in the order in which they are asked for."""

    def __init__(self) -> None:
        self._found: dict[bytes, int] = {}
        self._size = 0

    def offset_of(self, data: bytes) -> int:
        """Return where some bytes lie in the region."""
        offset = self._found.get(data)
        if offset is None:
            offset = self._found[data] = self._size
            self._size += -(-len(data) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return offset

    def packed(self) -> npt.NDArray[np.uint8]:
        """Return the region, uint8 [bytes]; what is between is zero."""
        region = np.zeros(self._size, np.uint8)
        for data, offset in self._found.items():
            region[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        return region
