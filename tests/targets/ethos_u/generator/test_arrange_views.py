"""Maps in another shape give the numbers that they gave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.targets.ethos_u.generator.arrange.views import (
    elements_view,
    pool_view,
    positions_view,
    view_shapes,
)
from mizzen.targets.ethos_u.generator.operations import (
    Convolution,
    Elementwise,
    Kernel,
    Pooling,
    Role,
    Sequence,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .interpreter import is_same
from .sequences import Network

ACCELERATORS_OF_TWO = ("ethos-u55-128", "ethos-u55-256")


def pool(mode: PoolingMode, kernel: Kernel, channels: int = 24) -> Sequence:
    made = Network()
    given = made.tensor((5, 7, channels), Role.INPUT)
    return made.sequence((given,), (made.pool(given, mode, kernel),))


@pytest.mark.parametrize("mode", [PoolingMode.AVERAGE, PoolingMode.MAX])
@pytest.mark.parametrize("columns", [2, 4, 8])
def test_pools_of_all_positions(mode: PoolingMode, columns: int) -> None:
    sequence = pool(mode, Kernel(5, 7))
    found = pool_view(sequence, 0, columns)
    assert found is not None
    row = found.operations[0]
    assert isinstance(row, Pooling)
    assert row.ofm.shape == (1, columns, 24 // columns)
    assert is_same(sequence, found)


def test_pools_that_pad_or_leave_positions_or_do_not_divide_stay() -> None:
    assert pool_view(pool(PoolingMode.AVERAGE, Kernel(5, 5)), 0, 2) is None
    padded = Kernel(5, 9, pad_left=1, pad_right=1)
    assert pool_view(pool(PoolingMode.AVERAGE, padded), 0, 2) is None
    assert pool_view(pool(PoolingMode.AVERAGE, Kernel(5, 7), 9), 0, 2) is None


def test_means_with_weights_of_one_are_pools() -> None:
    made = Network()
    given = made.tensor((5, 7, 8), Role.INPUT)
    last = made.convolution(given, 8, Kernel(5, 7), depthwise=True)
    sequence = made.sequence((given,), (last,))
    assert pool_view(sequence, 0, 2) is None, "its channels differ"
    row = sequence.operations[0]
    assert isinstance(row, Convolution)
    scales = replace(
        row.scales,
        biases=np.tile(row.scales.biases[:4], 2),
        multipliers=np.tile(row.scales.multipliers[:4], 2),
    )
    alike = replace(row, weights=np.ones_like(row.weights), scales=scales)
    sequence = replace(sequence, operations=(alike,))
    found = pool_view(sequence, 0, 2)
    assert found is not None
    assert is_same(sequence, found)
    assert pool_view(sequence, 0, 4) is None, "scales repeat twice only"


def test_positions_of_1x1_convolutions() -> None:
    made = Network()
    given = made.tensor((6, 5, 5), Role.INPUT)
    sequence = made.sequence((given,), (made.convolution(given, 9, Kernel()),))
    row = sequence.operations[0]
    assert isinstance(row, Convolution)
    shapes = {name: list(view_shapes(row, ACCELERATORS[name])) for name in ACCELERATORS_OF_TWO}
    assert shapes == {"ethos-u55-128": [], "ethos-u55-256": [(1, 30, 9)]}, "5 x 6 fills 1 x 2"
    for shape in ((1, 30), (3, 10)):
        found = positions_view(sequence, 0, shape)
        assert found is not None
        assert is_same(sequence, found)
    assert positions_view(sequence, 0, (6, 5)) is None
    strided = made.sequence((given,), (made.convolution(given, 9, Kernel(1, 1, 2, 2)),))
    assert positions_view(strided, 1, (1, 9)) is None


def test_elements_of_sums() -> None:
    made = Network()
    given = made.tensor((6, 5, 8), Role.INPUT)
    other = made.tensor((6, 5, 8), Role.INPUT)
    row = made.tensor((1, 5, 8), Role.INPUT)
    both = made.add(given, other)
    sequence = made.sequence((given, other, row), (both, made.add(both, row)))
    operation = sequence.operations[0]
    assert isinstance(operation, Elementwise)
    shapes = list(view_shapes(operation, ACCELERATORS["ethos-u55-128"]))
    assert shapes == [(1, 15, 16)]
    found = elements_view(sequence, 0, shapes[0])
    assert found is not None
    assert is_same(sequence, found)
    assert elements_view(sequence, 1, shapes[0]) is None, "a broadcast map is not dense"
