"""Each operator of TFLite through our rules, bit for bit what TFLite Micro's kernels give."""

from __future__ import annotations

from collections import defaultdict

import pytest

from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case

from .lowered_networks import differing, rules_for

BY_OPERATOR: dict[str, list[Case]] = defaultdict(list)
for _case in cases():
    BY_OPERATOR[_case.operator].append(_case)

WHOLE = (
    "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D EXPAND_DIMS FULLY_CONNECTED "
    "GATHER HARD_SWISH LEAKY_RELU LOGISTIC MAXIMUM MAX_POOL_2D MINIMUM MUL PACK PAD PADV2 "
    "QUANTIZE RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE SLICE SPLIT SPLIT_V SQUEEZE "
    "STRIDED_SLICE SUB TANH TRANSPOSE TRANSPOSE_CONV UNPACK"
)
"""Operators that have rules."""

REFUSED = {
    "add_1x5x6x7_1x5x6x7_int32",
    "add_1x5x6x7_1x1x1x7_int32",
    "average_pool_2d_1x300x2x3_k260x1_s1x1_d1x1_valid_int8",
    "concatenation_of_scales",
    "leaky_relu_1x5x7x9_int16",
    "logistic_1x5x7x9_int16",
    "logistic_wide_1x5x7x9_int16",
    "max_pool_2d_1x300x2x3_k260x1_s1x1_d1x1_valid_int8",
    "maximum_1x5x6x7_1x5x6x7_int32",
    "maximum_1x5x6x7_1x1x1x7_int32",
    "minimum_1x5x6x7_1x5x6x7_int32",
    "minimum_1x5x6x7_1x1x1x7_int32",
    "mul_1x5x6x7_1x5x6x7_int32",
    "mul_1x5x6x7_1x1x1x7_int32",
    "quantize_int32_int8",
    "quantize_int32_int16",
    "relu_1x5x7x9_int32",
    "relu6_1x5x7x9_int32",
    "relu_0_to_1_1x5x7x9_int32",
    "relu_n1_to_1_1x5x7x9_int32",
    "sub_1x5x6x7_1x5x6x7_int32",
    "sub_1x5x6x7_1x1x1x7_int32",
    "tanh_1x5x7x9_int16",
    "tanh_wide_1x5x7x9_int16",
}
"""Cases of these that no rule takes."""


@pytest.mark.parametrize("operator", WHOLE.split())
def test_an_operator_is_what_the_kernels_compute(operator: str) -> None:
    for case in BY_OPERATOR[operator]:
        lowered = rules_for(case.build(), case.name).lowered
        assert (lowered.sequence is None) == (case.name in REFUSED), case.name
        if lowered.sequence is not None:
            assert not any(differing(case) or ()), case.name
