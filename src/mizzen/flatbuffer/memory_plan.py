"""Where the tensors of a network lie in the arena, as its metadata say for all subgraphs at once.

Ref: TFLite Micro, micro_allocation_info.cc: a version, the number of subgraphs, the number of
tensors of all of them, then an offset of each, subgraph by subgraph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ALLOCATION = "OfflineMemoryAllocation"
"""Name of the metadata."""

NOT_IN_ARENA = -1
"""The offset of a tensor that the runtime puts where it likes, or that has contents."""

HEAD_WORDS = 3
"""Words before the offsets."""

Offsets = Sequence[int]
"""Of the tensors of one subgraph."""


def split_plan(contents: npt.NDArray[np.uint8], tensors: Sequence[int]) -> list[Offsets] | None:
    """Return the offsets of each subgraph; None for metadata that are not of so many tensors.

    tensors  how many each subgraph has
    """
    words: list[int] = contents[: contents.nbytes // 4 * 4].view("<i4").tolist()
    if len(words) != HEAD_WORDS + sum(tensors) or words[2] != sum(tensors):
        return None
    starts = np.cumsum([HEAD_WORDS, *tensors]).tolist()
    return [words[start : start + count] for start, count in zip(starts, tensors, strict=False)]


def plan_of(subgraphs: Sequence[Offsets]) -> npt.NDArray[np.uint8]:
    """Return the metadata of subgraphs with such offsets."""
    offsets = [offset for subgraph in subgraphs for offset in subgraph]
    words = [0, len(subgraphs), len(offsets), *offsets]
    return np.array(words, "<i4").view(np.uint8)
