"""Bytes that are written one access after another, against Python's sets."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.targets.ethos_u.judge.hazards.footprint import Grid, footprint, grid, run
from mizzen.targets.ethos_u.judge.hazards.intervals import EMPTY
from mizzen.targets.ethos_u.judge.hazards.written import Written, joined

from .test_footprint import sets
from .test_intervals import members

# Few distances, so that many grids have the same two and grow together.
AXIS = st.tuples(st.integers(1, 4), st.sampled_from([8, 20, 64]))
GRIDS = st.builds(grid, st.integers(0, 90), st.integers(1, 12), AXIS, AXIS)
STEPS = st.tuples(st.sampled_from(["add", "add", "remove", "ask"]), GRIDS)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_written_bytes_are_a_set(steps: list[tuple[str, Grid | None]]) -> None:
    written, expected = Written(), set[int]()
    for what, item in steps:
        bytes_ = footprint((item,))
        ours = members(bytes_.intervals)
        match what:
            case "add":
                written.add(bytes_)
                expected |= ours
            case "remove":
                written.remove(bytes_.intervals.runs)
                expected -= ours
            case _:
                assert members(written.missing(bytes_)) == ours - expected
                assert members(written.shared(bytes_)) == ours & expected
                assert written.touches(bytes_) == bool(ours & expected)
    assert members(written.missing(run(0, 400))) == set(range(400)) - expected


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 90), st.integers(1, 7), st.data())
def test_joined_grids_have_the_bytes_of_both(start: int, length: int, data: st.DataObject) -> None:
    def made() -> Grid | None:
        counts = data.draw(st.tuples(*[st.integers(1, 4)] * 2))
        offset = data.draw(st.sampled_from([0, 0, 1, 4, 20, 40, 64, 128]))
        extent = data.draw(st.sampled_from([length, length, 3]))
        return grid(start + offset, extent, (counts[0], 20), (counts[1], 64))

    one, other = made(), made()
    assert one is not None
    assert other is not None
    found = joined(one, other)
    assert found is None or sets(found) == sets(one) | sets(other)


def test_slices_and_stripes_become_the_whole() -> None:
    """Channels beside each other, then rows below each other: one run in the end."""
    written = Written()
    for top in (0, 4, 8):
        for channel, depth in ((24, 16), (0, 24)):
            slice_ = grid(top * 400 + channel, depth, (10, 40), (4, 400))
            written.add(footprint((slice_,)))
    assert written.missing(run(0, 12 * 400)) is EMPTY
    # No run of the set is looked at: one grid of it has them all.
    assert written.holds(run(0, 12 * 400))


def test_a_box_of_a_map_is_found_in_it() -> None:
    written = Written()
    written.add(footprint((grid(0, 8, (1000, 16), (1000, 32_000)),)))
    assert written.holds(footprint((grid(64_032, 8, (10, 16), (5, 32_000)),)))
    assert not written.holds(footprint((grid(64_032, 9, (10, 16), (5, 32_000)),)))
