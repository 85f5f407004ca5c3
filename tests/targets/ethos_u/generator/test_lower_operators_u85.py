"""Each operator of TFLite through the rules of U85, bit for bit what the kernels give."""

from __future__ import annotations

from collections import defaultdict

import pytest

from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.targets.ethos_u.generator.operations import Pooling
from mizzen.targets.ethos_u.machine.commands_values import Arch, PoolingMode

from .lowered_networks import differing, rules_for

STATE = {"ASSIGN_VARIABLE", "READ_VARIABLE", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
"""Operators whose sequence takes state too: tests of that are elsewhere."""

BY_OPERATOR: dict[str, list[Case]] = defaultdict(list)
for _case in cases():
    if _case.operator not in STATE:
        BY_OPERATOR[_case.operator].append(_case)

REFUSED = {
    "batch_matmul_uint8",
    "elu_table_1x5x7x9_int16",
    "elu_table_1x5x7x9_uint8",
    "gelu_table_1x5x7x9_int16",
    "gelu_table_approximate_1x5x7x9_int16",
    "log_table_1x5x7x9_uint8",
    "quantize_int32_int16",
    "quantize_int32_int8",
    "rsqrt_table_1x5x7x9_uint8",
}
"""Cases that no rule takes."""


@pytest.mark.parametrize("operator", sorted(BY_OPERATOR))
def test_an_operator_is_what_the_kernels_compute(operator: str) -> None:
    for case in BY_OPERATOR[operator]:
        lowered = rules_for(case.build(), case.name, Arch.U85).lowered
        refused = lowered.sequence is None
        if refused and case.name in REFUSED:
            continue
        assert not refused, (case.name, lowered.refusals)
        assert case.name not in REFUSED
        assert not any(differing(case, arch=Arch.U85) or ()), case.name


@pytest.mark.parametrize("operator", ["SUM", "MEAN", "SOFTMAX"])
def test_sums_of_16_bits_read_32(operator: str) -> None:
    """Others report that they are zeros on Arm's model of Corstone-320 where they read 16."""
    wide = [case for case in BY_OPERATOR[operator] if "int16" in case.name]
    assert wide
    for case in wide:
        sequence = rules_for(case.build(), case.name, Arch.U85).lowered.sequence
        assert sequence is not None
        read = {
            operation.ifm.dtype.itemsize
            for operation in sequence.operations
            if isinstance(operation, Pooling) and operation.mode is PoolingMode.REDUCE_SUM
        }
        assert 2 not in read, case.name
