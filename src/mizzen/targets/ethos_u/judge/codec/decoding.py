"""Decompress weight streams, of U55 and U65 and the standard ones of U85."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.targets.ethos_u.judge.codec.chunks import DamagedError, Slice, Walk, windows
from mizzen.targets.ethos_u.judge.codec.numbers import weights_of, within_limit

Weights = npt.NDArray[np.int16]

BATCH_SYMBOLS = 1 << 17
"""Symbols decoded at once, nearly: more take as long each, and more memory."""


def decode(streams: Sequence[bytes]) -> list[Weights]:
    """Decompress weight streams; each gives its weights in the stream's order.

    Values lie in -255..255, in streams that are not damaged: the compiler has already subtracted
    the weights' zero point. Raises E624 for a stream that is cut, or of more
    weights than any has.
    """
    starts = np.cumsum([0, *(len(stream) for stream in streams)]).tolist()
    words = windows(b"".join(streams))
    parts: list[list[Weights]] = [[] for _ in streams]
    sizes = [0] * len(streams)
    try:
        for owners, slices in _batches(array("I", words.tobytes()), starts):
            weights, counts = weights_of(slices, words)
            for owner, part in zip(owners, np.split(weights, np.cumsum(counts)[:-1]), strict=True):
                sizes[owner] = within_limit(sizes[owner] + len(part))
                parts[owner].append(part)
    except DamagedError as error:
        raise _damaged(str(error)) from None
    return [np.concatenate([np.zeros(0, np.int16), *those]) for those in parts]


def _batches(
    words: Sequence[int], starts: Sequence[int]
) -> Iterator[tuple[list[int], list[Slice]]]:
    """Return the slices of all streams, some at a time, and the stream that each is of."""
    owners: list[int] = []
    slices: list[Slice] = []
    waiting = 0
    for owner, (start, stop) in enumerate(pairwise(starts)):
        for part in Walk(words, start, stop).slices():
            owners.append(owner)
            slices.append(part)
            waiting += part.count
            if waiting >= BATCH_SYMBOLS:
                yield owners, slices
                owners, slices, waiting = [], [], 0
    if slices:
        yield owners, slices


def _damaged(how: str) -> MizzenError:
    return fail(
        "E624",
        f"a weight stream must be whole, and this one {how}",
        rule="compressed weight streams of Ethos-U",
        help="the artifact is damaged; compile it again",
    )
