"""Copies of rows that become one copy compute the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.arrange.merged import merged
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Kernel,
    Map,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
    Tensor,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, RoundMode

from .interpreter import is_same

INT8 = np.dtype(np.int8)


def copy(shape: Shape, source: Shape, target: Shape) -> Pooling:
    return Pooling(
        Origin(),
        PoolingMode.AVERAGE,
        Map(Box(0, shape, source), INT8),
        Map(Box(1, shape, target), INT8),
        Kernel(),
        Scale(1, 0),
        Activation(-128, 127),
        rounding=RoundMode.NATURAL,
    )


def sequence(*operations: Pooling) -> Sequence:
    given = Tensor("given", (12, 9, 16), INT8, Role.INPUT)
    result = Tensor("result", (6, 9, 16), INT8, Role.OUTPUT)
    return Sequence((given, result), operations, (0,), (1,))


ROWS = [copy((1, 9, 16), (1 + 2 * row, 0, 0), (row, 0, 0)) for row in range(5)]
COLUMNS = [copy((6, 1, 16), (3, column, 0), (0, column, 0)) for column in range(9)]


@pytest.mark.parametrize("copies", [ROWS, COLUMNS])
def test_copies_at_equal_distances_are_one(copies: list[Pooling]) -> None:
    last = copy((1, 9, 16), (10, 0, 0), (5, 0, 0))
    many = sequence(*copies, last)
    found = merged(many)
    assert len(found.operations) == 2
    assert is_same(many, found)


@pytest.mark.parametrize(
    "changed",
    [
        copy((1, 9, 16), (6, 0, 0), (2, 0, 0)),  # another distance
        copy((1, 9, 16), (5, 0, 0), (4, 0, 0)),
        replace(copy((1, 9, 16), (5, 0, 0), (2, 0, 0)), scale=Scale(1, 1)),
    ],
)
def test_other_copies_stay(changed: Pooling) -> None:
    found = merged(sequence(ROWS[0], ROWS[1], changed))
    assert len(found.operations) == 2


def test_columns_that_are_not_beside_each_other_stay() -> None:
    apart = sequence(*COLUMNS[::2])
    assert merged(apart) is apart
