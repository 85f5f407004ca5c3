"""Placement: nothing overlaps, nothing is below the bound, what is told as optimal is."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.placement import Block, Partner, Placed, in_lines, place

LINE = 16
"""Bytes of a line of memory, in which blocks begin."""


@st.composite
def networks(draw: st.DrawFn, most: int = 30) -> list[Block]:
    blocks: list[Block] = []
    for index in range(draw(st.integers(0, most))):
        first = draw(st.integers(0, 20))
        partners = [row for row in range(index) if blocks[row].last == first]
        if partners and draw(st.booleans()):
            reaches = st.integers(-6000, 6000)
            exact = st.sampled_from([None, 0, -64, -160])
            over = tuple(Partner(row, draw(reaches), draw(exact)) for row in partners)
            size = draw(st.integers(0, 5000))
            blocks.append(Block(size, first, first + 2, over))
        else:
            size = draw(st.integers(0, 5000))
            blocks.append(Block(size, first, first + draw(st.integers(0, 8))))
    return blocks


def is_best(placed: Placed) -> bool:
    return placed.peak_bytes == placed.bound_bytes


def may_lie_over(block: Block, other: int, at: int, where: int) -> bool:
    return any(
        at <= where + row.reach_bytes
        or (row.exact_bytes is not None and at == where + row.exact_bytes)
        for row in block.partners
        if row.block == other
    )


def assert_holds(blocks: list[Block], placed: Placed) -> None:
    for block, at in zip(blocks, placed.offsets_bytes, strict=True):
        assert at >= 0
        assert at % LINE == 0
        assert not block.size_bytes or at + block.size_bytes <= placed.end_bytes
    for (i, one), (j, other) in itertools.combinations(enumerate(blocks), 2):
        if not one.size_bytes or not other.size_bytes:
            continue
        a, b = placed.offsets_bytes[i], placed.offsets_bytes[j]
        apart = one.last < other.first or other.last < one.first
        above = a + one.size_bytes <= b or b + other.size_bytes <= a
        over = may_lie_over(other, i, b, a) or may_lie_over(one, j, a, b)
        assert apart or above or over, (i, j)
    assert placed.bound_bytes <= placed.peak_bytes
    assert placed.end_bytes <= placed.peak_bytes


@given(networks())
@settings(max_examples=80)
def test_blocks_never_overlap(blocks: list[Block]) -> None:
    assert_holds(blocks, place(blocks, states=200))


def fits(blocks: list[Block], height: int, offsets: tuple[int, ...] = ()) -> bool:
    """Return whether any offsets at all hold blocks below a height: by trying all."""
    index = len(offsets)
    if index == len(blocks):
        return True
    block = blocks[index]
    for at in range(0, height - block.size_bytes + 1, LINE):
        if all(
            each.last < block.first
            or block.last < each.first
            or where + each.size_bytes <= at
            or at + block.size_bytes <= where
            or may_lie_over(block, other, at, where)
            for other, (each, where) in enumerate(zip(blocks, offsets, strict=False))
        ) and fits(blocks, height, (*offsets, at)):
            return True
    return False


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_what_is_told_as_optimal_is(seed: int) -> None:
    chance = random.Random(seed)
    blocks: list[Block] = []
    for index in range(5):
        first = chance.randrange(6)
        partners = tuple(
            Partner(row, chance.randint(-50, 50), chance.choice([None, None, 0, -LINE]))
            for row in range(index)
            if blocks[row].last == first
        )
        last = first + chance.randrange(4)
        blocks.append(Block(LINE * chance.randint(1, 4), first, last, partners))
    placed = place(blocks)
    assert_holds(blocks, placed)
    assert fits(blocks, placed.peak_bytes)
    assert not fits(blocks, placed.bound_bytes - 1)
    if not any(row.partners for row in blocks):
        assert is_best(placed)


def test_the_search_proves_that_the_live_set_cannot_be_reached() -> None:
    """Every step takes at most 4 lines, and no placement in 4 lines holds them."""
    spans = [(2, 0, 0), (2, 0, 1), (1, 1, 4), (1, 1, 3), (2, 2, 2), (1, 3, 3), (1, 3, 4)]
    spans += [(2, 4, 5), (2, 5, 5)]
    blocks = [Block(LINE * lines, first, last) for lines, first, last in spans]
    for step in range(6):
        assert sum(row.size_bytes for row in blocks if row.first <= step <= row.last) <= 4 * LINE
    placed = place(blocks)
    assert_holds(blocks, placed)
    assert is_best(placed)
    assert placed.peak_bytes == 5 * LINE
    assert not fits(blocks, 4 * LINE)


def test_networks_reach_the_bound() -> None:
    """Chains with branches, of as many operations as networks have."""
    for seed, operations in itertools.product(range(5), (30, 100, 300)):
        chance = random.Random(seed)
        blocks = [
            Block(16 * chance.randint(1, 400), at, at + life)
            for at in range(operations)
            for life in [1 if chance.random() > 0.3 else chance.randint(2, 8)]
        ]
        assert is_best(place(blocks)), (seed, operations)


def test_an_operation_in_place_takes_no_bytes_of_its_own() -> None:
    chain = [
        Block(100, 0, 1),
        Block(100, 1, 2, partners=(Partner(0),)),
        Block(100, 2, 3, partners=(Partner(1),)),
    ]
    placed = place(chain)
    assert placed.offsets_bytes == (0, 0, 0)
    assert placed.peak_bytes == placed.bound_bytes == 112


def test_in_place_holds_where_other_places_would_overtake() -> None:
    blocks = [Block(96, 0, 1), Block(96, 1, 2, partners=(Partner(0, -64),))]
    assert place(blocks).peak_bytes == 96
    blocks = [Block(96, 0, 1), Block(96, 1, 2, partners=(Partner(0, -64, exact_bytes=None),))]
    assert place(blocks).peak_bytes == 160


def test_one_place_before_the_start_holds_too() -> None:
    blocks = [Block(96, 0, 1), Block(96, 1, 2, partners=(Partner(0, -64, -16),))]
    assert place(blocks).peak_bytes == 112


def test_one_place_is_taken_over_once() -> None:
    blocks = [
        Block(64, 0, 1),
        Block(64, 1, 2, partners=(Partner(0),)),
        Block(64, 1, 2, partners=(Partner(0),)),
    ]
    placed = place(blocks)
    assert_holds(blocks, placed)
    assert placed.peak_bytes == 128


def test_writing_follows_reading() -> None:
    """Maps of one size, each written three rows of 16 bytes behind where it is read."""
    chain = [Block(256, 0, 1)] + [
        Block(256, at, at + 1, partners=(Partner(at - 1, -48, exact_bytes=None),))
        for at in range(1, 4)
    ]
    placed = place(chain)
    assert_holds(chain, placed)
    assert placed.bound_bytes == 256 + 48
    assert placed.peak_bytes == 256 + 2 * 48 + 48


def test_writing_may_begin_behind_the_start_of_what_is_read() -> None:
    """What shrinks frees its bytes faster than it takes new ones."""
    blocks = [
        Block(256, 0, 1),
        Block(64, 1, 5, partners=(Partner(0, 96, exact_bytes=None),)),
        Block(96, 2, 5),
    ]
    placed = place(blocks)
    assert_holds(blocks, placed)
    assert placed.peak_bytes == 256


def test_a_limit_ends_the_search() -> None:
    chance = random.Random(3)
    blocks = [
        Block(16 * chance.randint(1, 99), first, first + chance.randrange(9))
        for first in (chance.randrange(40) for _ in range(60))
    ]
    bound = place(blocks).bound_bytes
    placed = place(blocks, limit_bytes=2 * bound, states=0)
    assert placed.peak_bytes <= 2 * bound


def test_the_same_blocks_come_to_the_same_places() -> None:
    chance = random.Random(11)
    blocks = [
        Block(chance.randint(1, 999), first, first + chance.randrange(30))
        for first in (chance.randrange(60) for _ in range(90))
    ]
    assert place(blocks) == place(blocks)


def test_nothing_takes_nothing() -> None:
    assert place([]) == Placed((), 0, 0, 0)


def test_the_last_block_may_end_within_a_line() -> None:
    placed = place([Block(20, 0, 1), Block(4, 1, 2)])
    assert (placed.peak_bytes, placed.end_bytes, in_lines(placed.end_bytes)) == (48, 36, 48)
    assert place([Block(0, 0, 3), Block(16, 0, 3)]).peak_bytes == 16


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([Block(-1, 0, 0)], "E295: block 0 is not one: its size is negative"),
        ([Block(1, 2, 1)], "E295: block 0 is not one: it ends before it begins"),
        (
            [Block(16, 0, 3), Block(16, 1, 4, partners=(Partner(0),))],
            "E296: block 1 cannot lie over block 0",
        ),
    ],
)
def test_contradictions_are_refused(blocks: list[Block], said: str) -> None:
    with pytest.raises(MizzenError) as refused:
        place(blocks)
    code, _, message = said.partition(": ")
    assert refused.value.diagnostic.code == code
    assert refused.value.diagnostic.message.startswith(message)
