"""Places in SRAM: what is taken is free, what is given back is whole again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.schedule.attempt import Side, Sram, take

CAPACITY = 64
SIZES = st.lists(st.tuples(st.integers(1, 30), st.sampled_from(Side)), max_size=12)


def test_first_fit_from_either_side() -> None:
    holes = ((0, 4), (10, 20), (30, 50))
    assert take(holes, 5, Side.BEGIN) == (((0, 4), (15, 20), (30, 50)), 10)
    assert take(holes, 5, Side.END) == (((0, 4), (10, 20), (30, 45)), 45)
    assert take(holes, 10, Side.BEGIN) == (((0, 4), (30, 50)), 10)
    assert take(holes, 21, Side.END) is None


@given(SIZES)
def test_places_do_not_overlap_and_all_come_back(sizes: list[tuple[int, Side]]) -> None:
    sram = Sram[int](((0, CAPACITY),))
    taken: dict[int, tuple[int, int]] = {}
    for owner, (size, side) in enumerate(sizes):
        found = take(sram.holes, size, side)
        if found is None:
            assert all(end - begin < size for begin, end in sram.holes)
            continue
        assert all(found[1] + size <= at or at + more <= found[1] for at, more in taken.values())
        sram.keep(found[1], size, owner)
        assert sram.holes == found[0]
        taken[owner] = found[1], size
    assert sum(end - begin for begin, end in sram.holes) == CAPACITY - sum(
        size for _, size in taken.values()
    )
    for owner, (offset, _) in taken.items():
        sram.release(offset, owner)
    assert sram.holes == ((0, CAPACITY),)


def test_a_map_stays_until_its_last_user_is_done() -> None:
    sram = Sram[str](((0, CAPACITY),))
    sram.keep(16, 8, "maker")
    sram.share(16, "reader")
    sram.share(16, "reader")
    sram.release(16, "maker")
    sram.release(16, "reader")
    assert sram.holes == ((0, 16), (24, CAPACITY))
    sram.release(16, "reader")
    assert sram.holes == ((0, CAPACITY),)
