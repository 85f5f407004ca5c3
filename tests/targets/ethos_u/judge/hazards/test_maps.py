"""Bytes of maps against the formula of the manuals, and maps whose boxes tell what they share."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.targets.ethos_u.judge.hazards.maps import (
    Box,
    Kind,
    Map,
    MemoryBlock,
    are_alike,
    bytes_of,
)

from .test_intervals import members


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


@st.composite
def dense(draw: st.DrawFn, like: Map | None = None) -> Map:
    """A map with room between rows, columns and bricks; like another one, but for its shape."""
    height, width, depth = shape = draw(st.tuples(*[st.integers(1, 4)] * 2, st.integers(1, 40)))
    gap = st.sampled_from([0, 0, 0, 8, -8])
    bricks = draw(st.booleans())
    row = width * (16 if bricks else depth)
    found = Map(
        place=MemoryBlock(Kind.REGION, 1),
        shape=shape,
        element_bytes=1,
        bases=(256, 256, 256, 256),
        height_0=draw(st.sampled_from([4, 4, 4, 2])),
        height_1=4,
        width_0=draw(st.sampled_from([4, 4, 4, 2])),
        stride_y=row * draw(st.sampled_from([1, 3])) + draw(gap),
        stride_x=depth + draw(gap),
        stride_c=row * draw(st.sampled_from([1, height])) + draw(gap),
        bricks=bricks,
        stacked=draw(st.booleans()),
    )
    return found if like is None else replace(like, shape=shape)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_elements_of_alike_maps_share_bytes_where_they_are_the_same(data: st.DataObject) -> None:
    one = data.draw(dense())
    other = data.draw(dense(like=one))
    for _ in range(4 if are_alike(one, other) else 0):
        mine, theirs = data.draw(boxes(one)), data.draw(boxes(other))
        assert mine.meets(theirs) == bytes_of(one, mine).touches(bytes_of(other, theirs))


@st.composite
def boxes(draw: st.DrawFn, fm: Map) -> Box:
    starts = [draw(st.integers(0, size - 1)) for size in fm.shape]
    stops = [draw(st.integers(low + 1, size)) for low, size in zip(starts, fm.shape, strict=True)]
    return Box((starts[0], starts[1], starts[2]), (stops[0], stops[1], stops[2]))


def test_which_maps_are_alike() -> None:
    one = Map(
        place=MemoryBlock(Kind.REGION, 1),
        shape=(4, 4, 24),
        element_bytes=1,
        bases=(0, 0, 0, 0),
        height_0=4,
        height_1=4,
        width_0=4,
        stride_y=96,
        stride_x=24,
        stride_c=1,
        bricks=False,
        stacked=False,
    )
    bricks = replace(one, bricks=True, stride_y=128, stride_c=64)
    assert are_alike(one, one)
    assert are_alike(one, replace(one, shape=(3, 4, 8), stride_c=77, bases=(0, 9, 9, 9)))
    assert are_alike(bricks, replace(bricks, shape=(2, 4, 24), stride_x=77))
    for changed in (
        replace(one, element_bytes=2),
        replace(one, place=MemoryBlock(Kind.REGION, 2)),
        replace(one, bases=(1, 0, 0, 0)),
        replace(one, stride_y=97),
        replace(one, stride_x=25),
        replace(one, height_0=3),
        replace(one, width_0=3),
        replace(one, shape=(4, 5, 24)),
        replace(one, shape=(4, 4, 25)),
        bricks,
    ):
        assert not are_alike(one, changed)
    assert not are_alike(bricks, replace(bricks, stride_c=63))
    assert not are_alike(bricks, replace(bricks, shape=(4, 4, 33)))
