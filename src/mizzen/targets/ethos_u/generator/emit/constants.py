"""The read-only region: blobs, tables and constant tensors, equal bytes once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import Blob, Issue, Schedule, WeightPart

ALIGNMENT_BYTES = 16


def weights_of(blob: Blob, part: WeightPart) -> bytes:
    """Return the weight stream of a core."""
    start = part.weights_offset_bytes
    return blob.data[start : start + part.weights_bytes]


def shared_weights(schedule: Schedule) -> frozenset[bytes]:
    """Return the weight streams that several blobs have, all of which are read where they lie."""
    issues = [item for item in schedule.items if isinstance(item, Issue) and item.blob is not None]
    staged = {issue.blob for issue in issues if issue.staging is not None}
    counts: Counter[bytes] = Counter()
    for place, blob in enumerate(schedule.blobs):
        streams = {weights_of(blob, part) for part in blob.cores} - {b""}
        counts.update(streams)
        if place in staged:
            counts.subtract(dict.fromkeys(streams, len(schedule.blobs)))
    return frozenset(stream for stream, count in counts.items() if count > 1)


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
