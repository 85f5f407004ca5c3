"""Orders of operations: the numbers stay, and least is alive at the most."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from mizzen.targets.ethos_u.generator.cascade import order, reordered
from mizzen.targets.ethos_u.generator.operations import (
    Kernel,
    Operation,
    Role,
    Sequence,
    tensor_written,
    tensors_read,
)

from .interpreter import is_same
from .sequences import Network

HALVED = Kernel(2, 2, 2, 2)


def branches(seed: int, count: int = 3) -> Sequence:
    """Branches that get large and small again, written one layer of all branches after another."""
    chance = random.Random(seed)
    network = Network()
    source = network.tensor((8, 8, 8), Role.INPUT)
    large = [network.convolution(source, 16 * chance.randint(1, 3), Kernel()) for _ in range(count)]
    small = [network.convolution(row, 8, HALVED) for row in large]
    last = small[0]
    for row in small[1:]:
        last = network.add(last, row)
    return network.sequence((source,), (last,))


def most_alive(sequence: Sequence) -> int:
    """Return what is alive at the most, an output being over the largest input that ends there."""
    spans = sequence.lifetimes()
    sizes = [row.shape[0] * row.shape[1] * -(-row.shape[2] // 16) * 16 for row in sequence.tensors]
    sizes = [
        row.shape[0] * row.shape[1] * row.shape[2] if row.shape[2] <= 8 else size
        for row, size in zip(sequence.tensors, sizes, strict=True)
    ]
    most = 0
    for index, operation in enumerate(sequence.operations):
        live = sum(size for size, (a, b) in zip(sizes, spans, strict=True) if a <= index <= b)
        ending = [sizes[row] for row in tensors_read(operation) if spans[row][1] == index]
        most = max(most, live - min(sizes[tensor_written(operation)], max(ending, default=0)))
    return most


def test_branches_are_done_one_after_the_other() -> None:
    for seed in range(3):
        whole = branches(seed)
        found = reordered(whole)
        assert is_same(whole, found, range(1))
        assert most_alive(found) < most_alive(whole)


def test_no_other_order_is_better() -> None:
    for seed in range(3):
        whole = branches(seed, 2)
        found = most_alive(reordered(whole))
        for chosen in itertools.permutations(range(len(whole.operations))):
            known = set(whole.inputs)
            for index in chosen:
                if not known.issuperset(tensors_read(whole.operations[index])):
                    break
                known.add(tensor_written(whole.operations[index]))
            else:
                operations = tuple(whole.operations[index] for index in chosen)
                assert found <= most_alive(replace(whole, operations=operations))


def test_a_chain_stays_as_it_is() -> None:
    network = Network()
    source = last = network.tensor((8, 8, 8), Role.INPUT)
    for _ in range(4):
        last = network.convolution(last, 8, Kernel())
    whole = network.sequence((source,), (last,))
    assert reordered(whole) is whole


def test_a_thousand_copies_side_by_side_are_no_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network()
    source = network.tensor((8, 8, 8), Role.INPUT)
    made = network.convolution(source, 8, Kernel())
    whole = network.sequence((source,), (made,))
    operation = whole.operations[0]
    asked = 0

    def counted(row: Operation) -> tuple[int, ...]:
        nonlocal asked
        asked += 1
        return tensors_read(row)

    monkeypatch.setattr(order, "tensors_read", counted)
    many = replace(whole, operations=(operation,) * 1000)
    assert reordered(many) is many
    assert asked < 10_000


def test_orders_are_kept_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = branches(0)
    monkeypatch.setattr(order, "STEPS", 3)
    found = reordered(whole)
    assert is_same(whole, found, range(1))
    assert most_alive(found) <= most_alive(whole)
