"""Tensors in planes give the same numbers, and are maps of other shapes too."""

from __future__ import annotations

from collections.abc import Sequence as Rows

from mizzen.targets.ethos_u.generator.arrange.planes import in_planes
from mizzen.targets.ethos_u.generator.operations import (
    Bytes,
    Convolution,
    Copy,
    Kernel,
    Operation,
    Role,
    Sequence,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .interpreter import is_same
from .sequences import Network

WINDOW = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)

SMALL = ACCELERATORS["ethos-u55-128"]


def separable(channels: int = 24) -> Sequence:
    """A depthwise convolution, a 1x1 convolution, a depthwise one."""
    made = Network()
    given = made.tensor((5, 7, channels), Role.INPUT)
    first = made.convolution(given, channels, WINDOW, depthwise=True)
    second = made.convolution(first, 40, Kernel())
    return made.sequence((given,), (made.convolution(second, 40, WINDOW, depthwise=True),))


def rows(operation: Operation, layouts: Rows[Layout | None]) -> float:
    """An array that computes 4 columns of a row at once."""
    assert not isinstance(operation, Copy)
    height, width, _ = operation.ofm.shape
    return height * -(-width // 4)


def test_a_convolution_of_positions_sees_one_row() -> None:
    sequence = separable()
    found = in_planes(sequence, SMALL, rows)
    changed = found.operations[1]
    assert isinstance(changed, Convolution)
    assert changed.ofm.shape == (1, 35, 40)
    assert isinstance(changed.ofm.view, Bytes)
    assert changed.ofm.view.layout is Layout.NHCWB16
    assert found.tensors[changed.ofm.tensor].shape == (3, 35, 16), "three bricks of channels"
    first = found.operations[0]
    assert isinstance(first, Convolution)
    assert first.ofm.shape == (5, 7, 24)
    assert is_same(sequence, found)


def test_what_costs_no_less_stays() -> None:
    sequence = separable()
    assert in_planes(sequence, SMALL, lambda operation, layouts: 1.0) is sequence


def test_what_a_caller_sees_stays() -> None:
    made = Network()
    given = made.tensor((5, 7, 16), Role.INPUT)
    sequence = made.sequence((given,), (made.convolution(given, 16, Kernel()),))
    assert in_planes(sequence, SMALL, rows) is sequence
