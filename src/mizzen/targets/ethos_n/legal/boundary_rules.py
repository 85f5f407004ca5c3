"""Rules of what a network takes and gives, of its constants, and of what is only estimated.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    FEATURE_MAP_FORMATS,
    OUTPUT_INFO,
    Case,
    Step,
    data_type,
    depth,
    first,
    input_layout,
    input_per_tensor,
    input_zero_point,
    rule,
    zero_point,
    zero_point_fits,
)
from mizzen.targets.ethos_n.network import Constant, EstimateOnly, Output
from mizzen.targets.rules import Level


@rule("output-format").must_have(
    "an output in NHWC or NHWCB",
    "give it in NHWC",
    "An Output layer's format must be NHWC or NHWCB",
)
def _output_format(case: Case[Output]) -> str | None:
    format_ = case.operation.format
    return None if format_ in FEATURE_MAP_FORMATS else format_.value


@rule("outputs-zero-point").must_have(
    "zero points of the outputs from 0 to 255 for UINT8, from -128 to 127 for INT8",
    "give other zero points",
    "Zero point out of range for at least one output info in EstimateOnlyInfo",
)
def _given_zero_points(case: Case[EstimateOnly]) -> str | None:
    for info in case.operation.outputs:
        if not zero_point_fits(info.data_type, info.quantization):
            return f"{info.quantization.zero_point} for {info.data_type.value}"
    return None


@rule("estimate", Level.ESTIMATE_ONLY).must_have(
    "another form", "replace it by operations that are supported"
)
def _reason(case: Case[EstimateOnly]) -> str | None:
    return case.operation.reason or "no form"


INPUT = (
    BATCH,
    depth("input-depth", "Input layer", first),
    data_type("input-type", "Input layer", first),
    input_layout("Input layer must be NHWC or NHWCB"),
    *input_per_tensor("Input layer"),
    OUTPUT_INFO,
    input_zero_point(),
)
OUTPUT: tuple[Step[Output], ...] = (
    BATCH,
    depth("input-depth", "Input layer", first),
    data_type("input-type", "Output layer's input", first),
    input_layout("An Output layer's input must be NHWC or NHWCB"),
    _output_format,
    *input_per_tensor("Output layer"),
    input_zero_point(),
)
CONSTANT: tuple[Step[Constant], ...] = (
    depth("constant-depth", "Constant layer", first),
    zero_point("constant-zero-point", "constant info", first),
)
ESTIMATE_ONLY: tuple[Step[EstimateOnly], ...] = (
    _given_zero_points,
    OUTPUT_INFO,
    _reason,
)
