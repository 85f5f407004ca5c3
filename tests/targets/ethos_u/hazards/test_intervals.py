"""Sets of bytes as intervals against Python's sets, and bytes of maps against the formula."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_u.hazards.intervals import EMPTY, Intervals, grid, interval, merged
from mizzen.targets.ethos_u.hazards.maps import Box, Kind, Map, MemoryBlock, bytes_of

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
    assert ours.holds(theirs) == (other <= one)
    assert ours.size == len(one)
    assert bool(ours) == bool(one)


@given(
    st.integers(-5, 5),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 9)), max_size=3),
)
def test_grids_are_all_sums_of_steps(start: int, length: int, steps: list[tuple[int, int]]) -> None:
    sums = product(*([stride * i for i in range(count)] for count, stride in steps))
    expected = {start + sum(parts) + i for parts in sums for i in range(length)}
    assert members(grid(start, length, tuple(steps))) == expected


def test_an_interval_of_nothing_is_empty() -> None:
    assert interval(7, 0) is EMPTY
    assert members(interval(7, 2)) == {7, 8}


@st.composite
def maps(draw: st.DrawFn) -> Map:
    stride = st.integers(-90, 90)
    return Map(
        place=MemoryBlock(Kind.REGION, 1),
        shape=draw(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 40))),
        element_bytes=draw(st.sampled_from([1, 2, 4])),
        bases=draw(st.tuples(*[st.integers(0, 3000)] * 4)),
        height_0=draw(st.integers(1, 5)),
        height_1=draw(st.integers(1, 5)),
        width_0=draw(st.integers(1, 4)),
        stride_y=draw(stride),
        stride_x=draw(stride),
        stride_c=draw(stride),
        bricks=draw(st.booleans()),
        stacked=draw(st.booleans()),
    )


def address(fm: Map, y: int, x: int, c: int) -> int:
    """The address of one element as the programmer's manuals define it."""
    base = fm.bases[0]
    if fm.stacked:
        if y >= max(fm.height_0, fm.height_1):
            y, base = y - fm.height_1, fm.bases[2]
        elif y >= fm.height_0:
            y, base = y - fm.height_0, fm.bases[1]
    elif x >= fm.width_0:
        x, base = x - fm.width_0, fm.bases[1]
        if y >= fm.height_1:
            y, base = y - fm.height_1, fm.bases[3]
    elif y >= fm.height_0:
        y, base = y - fm.height_0, fm.bases[2]
    if fm.bricks:
        brick = c // 16 * fm.stride_c + (x * 16 + c % 16) * fm.element_bytes
        return base + y * fm.stride_y + brick
    return base + y * fm.stride_y + x * fm.stride_x + c * fm.element_bytes


@given(maps(), st.data())
def test_bytes_of_a_box_are_those_of_its_elements(fm: Map, data: st.DataObject) -> None:
    starts = [data.draw(st.integers(0, size)) for size in fm.shape]
    stops = [data.draw(st.integers(low, size)) for low, size in zip(starts, fm.shape, strict=True)]
    box = Box((starts[0], starts[1], starts[2]), (stops[0], stops[1], stops[2]))
    elements = product(*(range(low, high) for low, high in zip(starts, stops, strict=True)))
    expected = {address(fm, y, x, c) + i for y, x, c in elements for i in range(fm.element_bytes)}
    assert members(bytes_of(fm, box).intervals) == expected
