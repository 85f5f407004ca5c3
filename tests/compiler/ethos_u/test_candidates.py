"""How much is scheduled is counted, and grows with the search that is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.compiler.ethos_u.search.candidates import WORK, Budget, arranged, rounds
from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.cascade import peak_bytes
from mizzen.targets.ethos_u.generator.operations import Chain, Copy, Sequence, Tensor
from mizzen.targets.ethos_u.machine.config import Feature, Search
from mizzen.targets.ethos_u.machine.system_config import resolve

from ...targets.ethos_u.generator.chained_networks import (  # noqa: TID252 tests are no package with a name
    chainable,
)

ROOMY_BYTES = 1 << 20


def of(count: int) -> Sequence:
    tensors = (Tensor("given", (1, 1, 16), np.dtype("int8")),) * 2
    return Sequence(tensors, (Copy(Origin(), 0, 0, 1, 0, 16),) * count, (), ())


def granted(search: Search, count: int) -> int:
    budget = Budget(WORK[search], granted=True)
    return sum(budget.grants(of(count)) for _ in range(1000))


@pytest.mark.parametrize("count", [10, 60, 200, 2000])
def test_the_first_is_always_granted_and_more_of_what_is_short(count: int) -> None:
    fast, thorough = (granted(search, count) for search in (Search.FAST, Search.THOROUGH))
    assert 1 <= fast <= thorough < 1000
    assert granted(Search.FAST, count) <= granted(Search.FAST, count // 2)


def test_a_sequence_that_is_too_long_leaves_room_for_a_shorter_one() -> None:
    budget = Budget(WORK[Search.FAST], granted=False)
    assert not budget.grants(of(2000))
    assert budget.grants(of(20))


def test_what_is_estimated_to_be_much_slower_waits_until_nothing_else_is_taken() -> None:
    configuration = resolve("ethos-u55-128")
    short, long = of(20), of(40)
    assert list(rounds([short, long], configuration, ROOMY_BYTES)) == [[short], [long]]
    slower = of(21)
    assert list(rounds([short, slower], configuration, ROOMY_BYTES)) == [[short, slower]]


def test_chains_are_left_where_they_are_disabled() -> None:
    """Only U85 has them."""
    sequence = chainable(1)
    u55, u85 = resolve("ethos-u55-128"), resolve("ethos-u85-256")
    assert has_chains(arranged(sequence, u85))
    assert not has_chains(arranged(sequence, u55))
    assert not has_chains(arranged(sequence, replace(u85, disabled=(Feature.CHAINING,))))


def has_chains(sequences: list[Sequence]) -> bool:
    return any(isinstance(each, Chain) for row in sequences for each in row.operations)


def test_what_is_short_is_all_scheduled() -> None:
    few, twice = of(4), of(8)
    assert list(rounds([few, twice], resolve("ethos-u55-128"), ROOMY_BYTES)) == [[few, twice]]


def test_what_fits_without_padding_is_scheduled_with_the_first_on_u85() -> None:
    tensors = (Tensor("given", (4, 4, 17), np.dtype("int8")),) * 2
    operations = (Copy(Origin(), 0, 0, 1, 0, 272),)
    sequence = Sequence(tensors, operations, (0,), (1,))
    assert peak_bytes(sequence) > (limit_bytes := 600)
    u55, u85 = resolve("ethos-u55-128"), resolve("ethos-u85-256")
    slower = of(1)
    assert next(rounds([sequence, slower], u85, limit_bytes)) == [sequence, slower]
    assert list(rounds([sequence, slower], u55, limit_bytes)) == [[slower], [sequence]]
