"""Bytes followed through writes and reads that are made by hand."""

from __future__ import annotations

from mizzen.analysis.memory.lifetimes import Event, joined, live_bytes, values_of
from mizzen.report.memory import Use
from mizzen.targets.ethos_u.judge.hazards.footprint import footprint, grid, run


def write(at: int, start: int, size: int, name: str, use: Use = Use.FEATURE_MAP) -> Event:
    return Event(at, "arena", run(start, size).intervals, name, use)


def read(at: int, start: int, size: int) -> Event:
    return Event(at, "arena", run(start, size).intervals)


def test_a_value_lives_to_its_last_read() -> None:
    values = values_of([write(0, 0, 8, "a"), read(1, 0, 4), write(1, 8, 8, "b"), read(3, 8, 1)])
    assert [(row.name, row.first, row.last) for row in values] == [("a", 0, 1), ("b", 1, 3)]
    assert live_bytes(values, 4) == (8, 16, 8, 8)


def test_what_overwrites_a_value_ends_it() -> None:
    values = values_of([write(0, 0, 8, "a"), read(0, 0, 8), write(1, 0, 8, "b"), read(2, 0, 8)])
    assert [(row.name, row.first, row.last) for row in values] == [("a", 0, 0), ("b", 1, 2)]


def test_in_place_counts_bytes_once() -> None:
    values = values_of([write(0, 0, 8, "a"), read(1, 0, 8), write(1, 0, 8, "b"), read(2, 0, 8)])
    assert live_bytes(values, 3) == (8, 8, 8)


def test_stripes_are_one_tensor() -> None:
    rows = [write(0, 0, 8, "a"), write(1, 8, 8, "a"), read(2, 0, 16)]
    (found,) = joined(values_of(rows))
    assert (found.bytes.size, found.first, found.last) == (16, 0, 2)


def test_one_name_at_different_times_is_several_tensors() -> None:
    rows = [write(0, 0, 8, "a"), read(1, 0, 8), write(2, 0, 8, "a"), read(3, 0, 8)]
    assert len(joined(values_of(rows))) == 2


def test_state_is_written_where_it_lies() -> None:
    rows = [write(0, 0, 8, "s", Use.STATE), read(1, 0, 8), write(1, 0, 8, "next"), read(2, 0, 8)]
    (found,) = values_of(rows)
    assert (found.name, found.last) == ("s", 2)


def test_a_brick_is_taken_as_a_whole() -> None:
    pixels = footprint([grid(0, 8, (4, 16))])  # 8 of 16 channels of 4 pixels
    event = Event(0, "arena", pixels.intervals, "a", Use.FEATURE_MAP, 16)
    (value,) = values_of([event])
    assert value.bytes.size == 32
    assert value.taken.size == 64
    assert live_bytes([value], 1) == (64,)


def test_columns_of_one_map_are_two_values() -> None:
    left, right = (footprint([grid(at, 8, (4, 16))]).intervals for at in (0, 8))
    rows = [Event(0, "arena", left, "a"), Event(1, "arena", right, "b"), read(2, 0, 64)]
    assert [row.bytes.size for row in values_of(rows)] == [32, 32]
