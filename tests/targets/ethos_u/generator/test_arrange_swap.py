"""Height and width exchanged give the numbers that they gave."""

from __future__ import annotations

from itertools import combinations

import pytest

from mizzen.targets.ethos_u.generator.arrange import swap
from mizzen.targets.ethos_u.generator.operations import (
    Box,
    Bytes,
    Convolution,
    Kernel,
    Role,
    Sequence,
    Tensor,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode

from .interpreter import is_same
from .sequences import Network

SAME = Kernel(3, 3, 1, 1, 1, 1, 1, 1, 1, 1)


def network() -> Sequence:
    """A residual network: windows that differ along height and width, pools, a sum."""
    made = Network()
    given = made.tensor((12, 5, 2), Role.INPUT)
    first = made.convolution(given, 8, Kernel(3, 2, 2, 1, 1, 1, 1, 0, 0, 1))
    deep = made.convolution(first, 8, SAME, depthwise=True)
    both = made.add(first, deep)
    pooled = made.pool(both, PoolingMode.MAX, Kernel(2, 1, 2, 1))
    mean = made.pool(pooled, PoolingMode.AVERAGE, Kernel(3, 5))
    last = made.convolution(mean, 4, Kernel())
    return made.sequence((given,), (last, both))


@pytest.mark.parametrize(
    "chosen", [row for count in range(1, 7) for row in combinations(range(6), count)]
)
def test_any_operations_may_be_exchanged(chosen: tuple[int, ...]) -> None:
    found = swap(network(), chosen)
    assert found is not None
    assert is_same(network(), found, range(1))


def test_tensors_inside_lie_exchanged_and_those_of_the_caller_stay() -> None:
    found = swap(network(), range(6))
    assert found is not None
    shapes = [row.shape for row in found.tensors]
    assert shapes == [
        (12, 5, 2), (5, 6, 8), (5, 6, 8), (6, 5, 8), (5, 3, 8), (1, 1, 8), (1, 1, 4),
    ]  # fmt: skip
    first, *_, last = found.operations
    assert isinstance(first, Convolution)
    assert isinstance(last, Convolution)
    views = [first.ifm.view, first.ofm.view, last.ifm.view, last.ofm.view]
    assert [type(view) for view in views] == [Bytes, Box, Box, Box]


def test_twice_is_none() -> None:
    once = swap(network(), range(6))
    assert once is not None
    twice = swap(once, range(6))
    assert twice is not None
    assert [row.shape for row in twice.tensors] == [row.shape for row in network().tensors]
    assert is_same(network(), twice)


def test_bricks_that_stay_are_not_seen_exchanged() -> None:
    made = Network()
    given = made.tensor((12, 5, 2), Role.INPUT)
    first = made.convolution(given, 8, SAME)
    second = made.convolution(first, 8, SAME)
    made.tensors[first] = Tensor("bricks", (12, 5, 8), made.tensors[first].dtype,
                                 layout=Layout.NHCWB16)  # fmt: skip
    sequence = made.sequence((given,), (second,))
    assert swap(sequence, [0]) is None
    whole = swap(sequence, [0, 1])
    assert whole is not None
    assert is_same(sequence, whole)
