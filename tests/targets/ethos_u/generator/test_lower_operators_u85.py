"""Each operator of TFLite through the rules of U85, bit for bit what the kernels give."""

from __future__ import annotations

from collections import defaultdict

import pytest

from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.targets.ethos_u.machine.commands_values import Arch

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
