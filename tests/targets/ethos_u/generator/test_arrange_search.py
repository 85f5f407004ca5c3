"""What pays is taken, and what was taken computes the same."""

from __future__ import annotations

import math

import pytest

from mizzen.targets.ethos_u.generator.arrange import Layouts, best, variants
from mizzen.targets.ethos_u.generator.arrange.orientation import Orientation, OrientationCosts
from mizzen.targets.ethos_u.generator.operations import (
    Chain,
    Convolution,
    Copy,
    Kernel,
    Operation,
    Pooling,
    Role,
    Sequence,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .interpreter import is_same
from .sequences import Network

SMALL = ACCELERATORS["ethos-u55-128"]
FILL = 100


def slots(operation: Operation, layouts: Layouts) -> float:
    """Return cycles of an array of 1 x 2 x 8, four kernel elements or 32 channels at once."""
    if isinstance(operation, Copy):
        return operation.length_bytes
    height, width, depth = operation.ofm.shape
    units = height * math.ceil(width / 2) * math.ceil(depth / 8)
    if not isinstance(operation, Convolution | Pooling):
        return FILL + units
    steps = math.ceil(operation.kernel.height * operation.kernel.width / 4)
    if isinstance(operation, Convolution) and not operation.depthwise:
        steps *= math.ceil(operation.ifm.shape[2] / 8)
    return FILL + units * 4 * steps + 10 * layouts.count(Layout.NHWC)


def keywords() -> Sequence:
    """A network like those that spot keywords: one input channel, narrow maps, a mean."""
    made = Network()
    given = made.tensor((49, 10, 1), Role.INPUT)
    here = made.convolution(given, 16, Kernel(10, 4, 2, 2, 1, 1, 4, 1, 5, 1))
    for _ in range(2):
        here = made.convolution(here, 16, Kernel(3, 3, 1, 1, 1, 1, 1, 1, 1, 1), depthwise=True)
        here = made.convolution(here, 16, Kernel())
    mean = made.pool(here, PoolingMode.AVERAGE, Kernel(25, 5))
    return made.sequence((given,), (made.convolution(mean, 12, Kernel()),))


def cost(sequence: Sequence) -> float:
    return sum(slots(row, ()) for row in sequence.operations)


def test_every_variant_is_exact() -> None:
    sequence = keywords()
    found = list(variants(sequence, SMALL))
    assert {row.what.split(" ")[0] for row in found} == {
        "read", "gather", "pool", "see", "exchange",
    }  # fmt: skip
    for row in found:
        assert is_same(sequence, row.sequence, range(1)), row.what


def test_columns_exchange_and_pools_are_taken_together() -> None:
    sequence = keywords()
    found = best(sequence, SMALL, slots)
    assert is_same(sequence, found.sequence)
    what = [row.what for row in found.steps]
    assert any(row.startswith(("read columns", "gather")) for row in what)
    assert "exchange height and width" in what
    assert any(row.startswith("pool") for row in what)
    assert cost(found.sequence) < 0.65 * cost(sequence)
    first = next(row for row in found.steps if row.what.startswith(("read", "gather")))
    assert [origin.operator for origin in first.origins] == [0]


def test_a_judge_permits_each_step() -> None:
    sequence, asked = keywords(), list[float]()

    def judge(other: Sequence) -> float:
        asked.append(cost(other))
        return asked[-1]

    found = best(sequence, SMALL, slots, judge)
    assert cost(found.sequence) == min(asked)
    kept = best(sequence, SMALL, slots, lambda other: len(other.operations))
    assert len(kept.sequence.operations) == len(sequence.operations)


def test_what_one_exchange_brings_is_the_difference_of_all() -> None:
    whole = Orientation(keywords(), OrientationCosts(slots))
    count = len(whole.sequence.operations)
    for index in range(count):
        for flips in (frozenset[int](), frozenset(range(count))):
            other = flips ^ {index}
            totals = whole.total(flips), whole.total(other)
            if math.inf not in totals:
                assert whole.gain(index, flips, other) == pytest.approx(totals[0] - totals[1])


def test_nothing_is_done_where_nothing_pays() -> None:
    sequence = keywords()
    found = best(sequence, SMALL, lambda operation, layouts: 1.0)
    assert found.sequence is sequence
    assert not found.steps


@pytest.mark.parametrize("seed", range(8))
def test_random_networks_stay_exact_under_any_cost(seed: int) -> None:
    made = Network(seed)
    chance = made.generator

    def sides() -> tuple[int, int]:
        return int(chance.integers(1, 4)), int(chance.integers(1, 4))

    given = made.tensor((int(chance.integers(6, 12)), int(chance.integers(6, 12)), 2), Role.INPUT)
    rows = [given]
    for _ in range(5):
        source = rows[int(chance.integers(len(rows)))]
        (high, wide), (down, across) = sides(), sides()
        height, width, _ = made.tensors[source].shape
        if min(height, width) < 4:
            continue
        kernel = Kernel(high, wide, min(down, high), min(across, wide), 1, 1, high // 2, wide // 2)
        if chance.random() < 0.3:
            rows.append(made.pool(source, PoolingMode.MAX, kernel))
        else:
            depthwise = bool(chance.random() < 0.3)
            channels = made.tensors[source].shape[2] if depthwise else int(chance.integers(1, 9))
            rows.append(made.convolution(source, channels, kernel, depthwise=depthwise))
        if made.tensors[source].shape == made.tensors[rows[-1]].shape:
            rows.append(made.add(source, rows[-1]))
    sequence = made.sequence((given,), tuple(rows[1:]))

    def chaotic(operation: Operation, layouts: Layouts) -> float:
        assert not isinstance(operation, Chain | Copy)
        numbers = (*operation.ofm.shape, *operation.ifm.shape, len(layouts), seed)
        return float(hash(numbers) % 1000)

    found = best(sequence, SMALL, chaotic)
    assert is_same(sequence, found.sequence)
