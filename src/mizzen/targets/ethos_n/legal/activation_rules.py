"""Rules of activations and of changes of quantisation.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`.
"""

from __future__ import annotations

import numpy as np

from mizzen.targets.ethos_n.legal.operation_rule import Case, Step, rule
from mizzen.targets.ethos_n.legal.quantization_rules import (
    identity_scale,
    input_per_tensor,
    input_zero_point,
    output_per_tensor,
    output_zero_point,
)
from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    OUTPUT_INFO,
    data_type,
    depth,
    first,
    input_layout,
    output,
)
from mizzen.targets.ethos_n.network import (
    LeakyRelu,
    Operation,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Sigmoid,
    Tanh,
)
from mizzen.targets.rules import Level


@rule("bounds").must_have(
    "a lower bound of at most the upper bound",
    "leave it out or correct its bounds",
    "Relu has lower bound > upper bound",
)
def _bounds(case: Case[Relu]) -> str | None:
    lower, upper = case.operation.lower, case.operation.upper
    return None if lower <= upper else f"{lower} and {upper}"


@rule("alpha", Level.ESTIMATE_ONLY).must_have(
    "a slope over 0 and under 1",
    "use a ReLU for a slope of 0, or another slope",
    "Leaky relu alpha must be less than 1 and greater than 0",
)
def _alpha(case: Case[LeakyRelu]) -> str | None:
    with np.errstate(all="ignore"):
        alpha = float(np.float32(case.operation.alpha))
    # Not `0 < alpha < 1`: the library takes what is no number.
    return f"{alpha:.6g}" if alpha >= 1 or alpha <= 0 else None


def _function(what: str, quantized: str) -> tuple[Step[Operation], ...]:
    """Make the rules of a function of one feature map; its format is not looked at."""
    return (
        BATCH,
        depth("input-depth", f"Input to {what} layer", first),
        data_type("input-type", f"Input to {what} layer", first),
        *input_per_tensor(quantized),
        input_zero_point(),
        OUTPUT_INFO,
    )


RELU: tuple[Step[Relu], ...] = (
    BATCH,
    depth("input-depth", "Input to relu", first),
    _bounds,
    data_type("input-type", "Input to relu", first),
    input_layout("Input to relu must be NHWC or NHWCB"),
    *input_per_tensor("Relu"),
    input_zero_point(),
    OUTPUT_INFO,
)
LEAKY_RELU: tuple[Step[LeakyRelu], ...] = (
    BATCH,
    depth("input-depth", "Input to leaky relu", first),
    data_type("input-type", "Input to leaky relu", first),
    input_layout("Input to leaky relu must be NHWC or NHWCB"),
    *input_per_tensor("Leaky Relu"),
    *output_per_tensor("Leaky Relu"),
    input_zero_point(),
    output_zero_point("leakyReluInfo"),
    OUTPUT_INFO,
    _alpha,
)
SIGMOID: tuple[Step[Sigmoid], ...] = _function("sigmoid", "Sigmoid")
TANH: tuple[Step[Tanh], ...] = _function("tanh", "tanh")
REQUANTIZE: tuple[Step[Requantize], ...] = (
    BATCH,
    depth("input-depth", "Input to requantize", first),
    data_type("input-type", "Input to requantize", first),
    input_layout("Input to requantize must be NHWC or NHWCB"),
    *input_per_tensor("Requantize"),
    *output_per_tensor("Requantize"),
    identity_scale("Output scale"),
    input_zero_point(),
    output_zero_point("requantizeInfo"),
    data_type("output-type", "Expected quantization output", output),
    OUTPUT_INFO,
)
REINTERPRET_QUANTIZATION: tuple[Step[ReinterpretQuantization], ...] = (
    BATCH,
    depth("input-depth", "Input to reinterpret quantization", first),
    data_type("input-type", "Input to reinterpret quantization", first),
    input_layout("Input to reinterpret quantization must be NHWC or NHWCB"),
    input_zero_point(),
    output_zero_point("reinterpretQuantizationInfo"),
    OUTPUT_INFO,
)
