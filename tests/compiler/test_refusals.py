"""The one search for what a code generator refuses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mizzen.compiler.refusals import RefusalSearch, Refused, settle

UNITS = tuple(range(8))


class Generator:
    """Refuses whatever holds one of some units; counts what it was asked."""

    def __init__(self, *refused: int) -> None:
        self.refused = frozenset(refused)
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, units: Sequence[int]) -> str | None:
        self.asked.append(tuple(units))
        return "stopped" if self.refused & set(units) else None


def test_settling_tries_again_without_what_each_try_refuses() -> None:
    refused: dict[int, str] = {}

    def attempt(known: dict[int, str]) -> str | Refused:
        return Refused({len(known): "why"}) if len(known) < 3 else "done"

    assert settle(attempt, refused) == "done"
    assert refused == {0: "why", 1: "why", 2: "why"}


@pytest.mark.parametrize(("tries", "result"), [(3, None), (4, "done")])
def test_settling_ends_after_so_many_tries(tries: int, result: str | None) -> None:
    def attempt(known: dict[int, str]) -> str | Refused:
        return Refused({len(known): "why"}) if len(known) < 3 else "done"

    assert settle(attempt, dict[int, str](), tries) == result


def test_units_that_are_alike_are_compiled_alone_once() -> None:
    generator = Generator(1, 3, 5, 7)
    search = RefusalSearch(UNITS, generator, signature=lambda unit: unit % 2)
    assert search.alone(UNITS) == dict.fromkeys((1, 3, 5, 7), "stopped")
    assert generator.asked == [(0,), (1,)]


@pytest.mark.parametrize("refused", UNITS)
def test_the_shortest_beginning_that_is_refused_ends_with_the_unit(refused: int) -> None:
    generator = Generator(refused)
    found = RefusalSearch(UNITS, generator).first("said of all")
    assert found is not None
    assert found[0] == refused
    assert len(generator.asked) <= 4  # eight units are halved three times, and tried whole


def test_a_whole_that_is_taken_when_tried_again_has_no_first_refusal() -> None:
    assert RefusalSearch(UNITS, Generator()).first("said of all") is None
