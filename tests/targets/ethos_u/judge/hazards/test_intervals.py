"""Sets of bytes as intervals against Python's sets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals, merged

SETS = st.lists(st.tuples(st.integers(-40, 60), st.integers(0, 12)), max_size=12)


def made(pairs: list[tuple[int, int]]) -> Intervals:
    starts = np.array([start for start, _ in pairs], np.int64)
    return merged(starts, starts + np.array([length for _, length in pairs], np.int64))


def members(found: Intervals) -> set[int]:
    pairs = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    for (_, end), (start, _) in pairwise(pairs):
        assert end < start, "intervals are sorted and do not touch"
    return {byte for start, end in pairs for byte in range(start, end)}


def bytes_in(pairs: list[tuple[int, int]]) -> set[int]:
    return {start + i for start, length in pairs for i in range(length)}


@given(SETS, SETS)
def test_intervals_are_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    ours, theirs, one, other = made(a), made(b), bytes_in(a), bytes_in(b)
    assert members(ours) == one
    assert members(ours & theirs) == one & other
    assert members(ours | theirs) == one | other
    assert members(ours - theirs) == one - other
    assert ours.touches(theirs) == bool(one & other)
    assert ours.size == len(one)
    assert bool(ours) == bool(one)
