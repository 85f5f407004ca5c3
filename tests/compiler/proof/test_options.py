"""How many inferences a proof executes: fewer for large networks, never none."""

from __future__ import annotations

import pytest

from mizzen.compiler.proof.options import (
    LARGE_VALUES_BYTES,
    LARGEST_VALUES_BYTES,
    Effort,
    ProofOptions,
)


@pytest.mark.parametrize(
    ("effort", "values_bytes", "inputs"),
    [
        (Effort.QUICK, 0, 16),
        (Effort.QUICK, LARGE_VALUES_BYTES, 4),
        (Effort.QUICK, LARGE_VALUES_BYTES + 1, 2),
        (Effort.QUICK, LARGEST_VALUES_BYTES, 1),
        (Effort.QUICK, 3 * LARGEST_VALUES_BYTES, 1),
        (Effort.THOROUGH, LARGE_VALUES_BYTES + 1, 64),
        (Effort.THOROUGH, LARGEST_VALUES_BYTES // 8, 8),
        (Effort.OFF, 1, 0),
    ],
)
def test_inputs_depend_on_what_values_take(effort: Effort, values_bytes: int, inputs: int) -> None:
    assert ProofOptions(effort).inputs_for(values_bytes) == inputs
