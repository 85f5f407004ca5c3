"""The engine of the legal tables, with a table of a toy's own."""

from __future__ import annotations

from enum import Enum

import pytest

from mizzen.diagnostics import Reason
from mizzen.targets.rules import (
    Breach,
    ForEach,
    Head,
    Level,
    Rule,
    Table,
    judged,
    listed,
    no_form,
    rules_of,
)


class Toy(Enum):
    A = "Toy-A"
    B = "Toy-B"


Numbers = tuple[int, ...]


@pytest.fixture
def short() -> Rule[Numbers]:
    @Head("short", "a book", frozenset({"ADD", "MUL"}), (Toy.A,)).must_have(
        "at most 2 numbers", "split it"
    )
    def measure(numbers: Numbers) -> str | None:
        return None if len(numbers) < 3 else f"{len(numbers)} numbers"

    return measure


@pytest.fixture
def small() -> Rule[Numbers]:
    @Head("small", "", listed("ADD SUB"), tuple(Toy), Level.ESTIMATE_ONLY).must_have(
        "digits", "scale it", "%d > %d"
    )
    def measure(numbers: Numbers) -> Breach | None:
        large = [number for number in numbers if number > 9]
        return Breach(str(large[0]), (large[0], 9)) if large else None

    return measure


def test_breaches_are_told_in_the_order_of_the_table(
    short: Rule[Numbers], small: Rule[Numbers]
) -> None:
    table = Table((small, short))
    told = [reason.message for reason in table.reasons((1, 20, 3), "ADD", Toy.A)]
    assert told == [
        "ADD must have digits, and has 20",
        "ADD must have at most 2 numbers, and has 3 numbers",
    ]


def test_a_rule_is_tested_for_its_kinds_and_npus_only(
    short: Rule[Numbers], small: Rule[Numbers]
) -> None:
    table = Table((small, short))
    assert [reason.rule for reason in table.reasons((1, 20, 3), "ADD", Toy.B)] == ["small"]
    assert [reason.rule for reason in table.reasons((1, 20, 3), "MUL", Toy.A)] == ["short"]
    assert [reason.rule for reason in table.reasons((1, 20, 3), "SUB", Toy.A)] == ["small"]
    assert not list(table.reasons((1, 20, 3), "DIV", Toy.A))


def test_a_table_has_its_own_sentence(short: Rule[Numbers]) -> None:
    table = Table((short,), "on {on}, {kind}: {limit}, not {actual}")
    assert list(table.reasons((1, 2, 3), "ADD", Toy.A)) == [
        Reason(
            "short",
            "on Toy-A, ADD: at most 2 numbers, not 3 numbers",
            "at most 2 numbers",
            "3 numbers",
            "split it",
            "a book",
        )
    ]


def test_a_rule_without_a_source_takes_that_of_the_asker(small: Rule[Numbers]) -> None:
    breach = small.breach((20,))
    assert breach is not None
    assert small.reason(breach, "ADD", source="a query").source == "a query"
    assert small.text(breach) == "20 > 9"


def test_rules_for_each_part_are_tested_part_by_part(
    short: Rule[Numbers], small: Rule[Numbers]
) -> None:
    steps = (short, ForEach(lambda numbers: ((number,) for number in numbers), (small, short)))
    assert rules_of(steps) == (short, small, short)
    found = [(rule.id, breach and breach.actual) for rule, breach in judged(steps, (20, 30))]
    assert found == [
        ("short", None),
        ("small", "20"),
        ("short", None),
        ("small", "30"),
        ("short", None),
    ]


def test_an_operation_without_a_form_says_who_has_one() -> None:
    reason = no_form("DIV", Toy.A, (Toy.B,), "multiply", "a book")
    assert reason.message == "Toy-A has no form of DIV, but Toy-B has"
    assert no_form("DIV", Toy.A, (), "", "").message == "Toy-A has no form of DIV"
