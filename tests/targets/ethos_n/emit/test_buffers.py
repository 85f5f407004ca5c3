"""Places of intermediate buffers in DRAM."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.emit.emission import ALIGNMENT_BYTES, Entry, first_fit
from mizzen.targets.ethos_n.program import BufferKind


def entry(size: int, first: int, length: int) -> Entry:
    """A buffer that commands `first` to `first + length` use."""
    return Entry(BufferKind.INTERMEDIATE, size, first_command=first, last_command=first + length)


ENTRIES = st.lists(
    st.builds(entry, st.integers(1, 1000), st.integers(0, 12), st.integers(0, 6)), max_size=20
)


def in_use_together(one: Entry, other: Entry) -> bool:
    """Whether a command uses both, or one while the other must be kept."""
    return one.first_command <= other.last_command and other.first_command <= one.last_command


@given(ENTRIES)
def test_buffers_that_are_in_use_together_do_not_overlap(entries: list[Entry]) -> None:
    offsets = first_fit(entries)
    assert all(offset % ALIGNMENT_BYTES == 0 for offset in offsets)
    rows = list(zip(entries, offsets, strict=True))
    for place, (one, offset) in enumerate(rows):
        for other, behind in rows[:place]:
            if in_use_together(one, other):
                assert offset + one.size <= behind or behind + other.size <= offset


def test_a_place_is_used_again_from_the_command_behind_the_last() -> None:
    entries = [entry(100, 0, 1), entry(10, 1, 0), entry(64, 2, 3), entry(65, 2, 0)]
    assert first_fit(entries) == [0, 128, 0, 64]
