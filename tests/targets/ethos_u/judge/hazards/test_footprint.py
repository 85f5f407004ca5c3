"""Grids of runs against Python's sets of bytes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.targets.ethos_u.judge.hazards import footprint as footprint_module
from mizzen.targets.ethos_u.judge.hazards.footprint import (
    NOTHING,
    Footprint,
    Grid,
    expanded,
    footprint,
    grid,
    meet,
    run,
)

from .test_intervals import members

AXIS = st.tuples(st.integers(1, 5), st.integers(-40, 40))
GRIDS = st.builds(grid, st.integers(0, 60), st.integers(0, 12), AXIS, AXIS)
"""With runs that touch, overlap, interleave and go backwards."""


def sets(found: Grid | None) -> set[int]:
    return members(expanded(() if found is None else (found,)))


@given(st.integers(-5, 60), st.integers(0, 12), AXIS, AXIS)
def test_grids_are_all_sums_of_steps(
    start: int, length: int, one: tuple[int, int], other: tuple[int, int]
) -> None:
    sums = product(*([distance * i for i in range(count)] for count, distance in (one, other)))
    expected = {start + sum(parts) + i for parts in sums for i in range(length)}
    found = grid(start, length, one, other)
    assert sets(found) == expected
    if found is not None:
        assert (found.start, found.end) == (min(expected), max(expected) + 1)
        assert found.step <= found.stride or found.rows == 1
        assert found.is_run or found.step > found.length


@settings(max_examples=300, deadline=None)
@given(GRIDS, GRIDS)
def test_whether_grids_meet(one: Grid | None, other: Grid | None) -> None:
    if one is not None and other is not None:
        assert meet(one, other) == bool(sets(one) & sets(other))


@given(st.lists(GRIDS, max_size=3), st.lists(GRIDS, max_size=3))
def test_footprints_are_sets(one: list[Grid | None], other: list[Grid | None]) -> None:
    mine, theirs = footprint(one), footprint(other)
    assert members(mine.intervals) == set[int]().union(*map(sets, one))
    assert bool(mine) == bool(members(mine.intervals))
    assert mine.touches(theirs) == bool(members(mine.intervals) & members(theirs.intervals))


@pytest.mark.parametrize("distances", [(11, 601, 13, 607), (12, 602, 14, 608)])
def test_grids_with_many_pairs_of_runs_are_compared_at_once(
    distances: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Odd distances meet somewhere, even ones from an odd start nowhere."""
    a, b, c, d = distances
    one, other = grid(0, 1, (50, a), (50, b)), grid(5, 1, (50, c), (50, d))
    assert one is not None
    assert other is not None
    expected = bool(sets(one) & sets(other))
    assert expected == bool(a % 2)
    assert meet(one, other) == expected
    monkeypatch.setattr(footprint_module, "CANDIDATES", 1)
    assert meet(one, other) == expected


def test_what_is_empty() -> None:
    assert run(7, 0) is NOTHING
    assert not NOTHING
    assert grid(0, 0, (3, 5), (4, 2)) is None
    assert run(7, 2) == Footprint((Grid(7, 2, 1, 0, 1, 0),), 7, 9)
