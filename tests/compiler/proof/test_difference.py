"""Differences, in numbers and in words."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.compiler.proof.difference import difference, is_within
from mizzen.compiler.proof.options import Effort, ProofOptions, effort_of
from mizzen.diagnostics import MizzenError


def test_what_is_equal_does_not_differ() -> None:
    assert difference(np.ones((2, 3)), np.ones((2, 3))) is None


def test_the_first_difference_is_told() -> None:
    npu = np.zeros((2, 3, 4), np.int8)
    reference = npu.copy()
    npu[1, 2, 0], npu[1, 2, 3] = 127, 5
    reference[1, 2, 0] = -128
    found = difference(npu, reference)
    assert found is not None
    assert str(found) == (
        "2 of 24 values differ, the first at [2, 0]: 127 on the NPU, -128 in the reference"
    )
    assert (found.steps, found.share) == (255, 2 / 24)
    reason = found.reason("MUL", "somebody")
    assert (reason.rule, reason.source) == ("proof", "somebody")
    assert reason.message.startswith("the compiler's code for this MUL gives wrong numbers: 2 of")


def test_numbers_of_two_types_are_never_compared() -> None:
    with pytest.raises(AssertionError, match="the NPU gives uint8, not int8"):
        difference(np.zeros((1, 4), np.uint8), np.zeros((1, 4), np.int8))


def test_few_values_may_differ_within_a_bound() -> None:
    reference = np.arange(1000, dtype=np.int16)
    npu = reference.copy()
    npu[:20] += 1
    assert is_within(npu, reference, 1, 0.02)
    npu[20] += 1
    assert not is_within(npu, reference, 1, 0.02)
    npu[20] -= 2
    assert not is_within(npu, reference, 0, 0.5)
    npu[0] += 1
    assert not is_within(npu, reference, 1, 0.5)


def test_a_value_that_is_met_often_differs_once() -> None:
    """Inputs of two numbers alone make the same few sums everywhere."""
    reference = np.repeat(np.array([-7, 3, 5, 90], np.int8), 100)
    npu = reference + (reference == 3)
    assert is_within(npu, reference, 1, 0.01)


@pytest.mark.parametrize("values", [[4], [4, 9], [4, 9, -3], list(range(256))])
def test_all_values_moved_are_an_error(values: list[int]) -> None:
    reference = np.repeat(np.array(values, np.int16), 3)
    assert not is_within(reference + 1, reference, 1, 0.02)


def test_how_much_to_prove() -> None:
    assert [ProofOptions(row).inputs for row in Effort] == [0, 4, 64]
    assert effort_of("thorough") is Effort.THOROUGH
    with pytest.raises(MizzenError) as caught:
        effort_of("some")
    assert str(caught.value) == (
        "error[E228]: what to prove must be one of off, quick, thorough, not 'some'"
    )
