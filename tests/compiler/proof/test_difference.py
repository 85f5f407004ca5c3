"""Differences, in numbers and in words."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.compiler.proof.difference import difference
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


def test_how_much_to_prove() -> None:
    assert [ProofOptions(row).inputs for row in Effort] == [0, 4, 64]
    assert effort_of("thorough") is Effort.THOROUGH
    with pytest.raises(MizzenError) as caught:
        effort_of("some")
    assert str(caught.value) == (
        "error[E228]: what to prove must be one of off, quick, thorough, not 'some'"
    )
