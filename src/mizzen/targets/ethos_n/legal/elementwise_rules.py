"""Rules of what works element by element: activations, changes of quantisation, two feature maps.

ReLUs in a row are one clamp of the compute engines, with the bounds that all of them and the type
have in common. The library does not ask whether there are any; no public source says what engines
do with a lower bound above the upper one, so clamps that would keep no number are found here.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`; `Multiplication` is of 25.03 only;
23.02, `McePlePass.cpp`: the bounds that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Reason
from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    FEATURE_MAP_FORMATS,
    ONE_SCALE,
    OUTPUT_INFO,
    Case,
    Measure,
    OperationRule,
    Step,
    batch,
    data_type,
    depth,
    first,
    identity_scale,
    input_layout,
    input_per_tensor,
    input_zero_point,
    layout,
    output,
    output_per_tensor,
    output_zero_point,
    rule,
    second,
    shape_text,
    zero_point,
)
from mizzen.targets.ethos_n.network import (
    Addition,
    LeakyRelu,
    Multiplication,
    Network,
    Node,
    Operand,
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


Binary = Addition | Multiplication

AXES = ("Height", "Width", "Channels")
"""Dimensions 1 to 3 in the library's messages."""


def _shapes(case: Case[Binary]) -> str:
    return " and ".join(shape_text(info) for info in case.inputs)


def _incompatible(dimension: int) -> Measure[Binary]:
    def measure(case: Case[Binary]) -> str | None:
        one, other = (info.shape[dimension] for info in case.inputs)
        return None if one == other or 1 in (one, other) else f"{one} and {other}"

    return measure


def _types(case: Case[Binary]) -> str | None:
    one, other = (info.data_type for info in case.inputs)
    return None if one is other else f"{one.value} and {other.value}"


def _axes(case: Case[Binary]) -> str | None:
    axes = [info.quantization.axis for info in case.inputs]
    along = [str(axis) for axis in axes if axis is not None]
    return f"scales along axis {' and '.join(along)}" if along else None


def _stretched(case: Case[Binary]) -> str | None:
    one, other = case.inputs
    return None if one.shape[1:] == other.shape[1:] else _shapes(case)


def _compatible_rule(dimension: int) -> OperationRule[Binary]:
    axis = AXES[dimension - 1]
    return rule(axis.lower()).must_have(
        f"inputs of the same {axis.lower()}, or one with 1",
        "reshape or slice the inputs to the same shape",
        f"{axis} must be either equal or one of the tensor's height must be 1",
    )(_incompatible(dimension))


def _table(name: str, title: str) -> tuple[Step[Binary], ...]:
    """Make the rules; `name` and `title` are the operation in the library's messages."""
    layout_message = "Input to addition must be NHWC or NHWCB"
    return (
        batch(first, second),
        depth("input-depth", f"Input0 to {name}", first),
        depth("second-input-depth", f"Input1 to {name}", second),
        zero_point("input-zero-point", "input0 info", first),
        zero_point("second-input-zero-point", "input1 info", second),
        _compatible_rule(1),
        _compatible_rule(2),
        _compatible_rule(3),
        data_type("input-type", f"Input to {name}", first),
        data_type("second-input-type", f"Input to {name}", second),
        rule("inputs-type").must_have(
            "inputs of the same type",
            "quantise both to the same type",
            f"Inputs to {name} must have the same data type",
        )(_types),
        output_zero_point("outputQuantizationInfo"),
        layout("input-format", FEATURE_MAP_FORMATS, layout_message, first),
        layout("second-input-format", FEATURE_MAP_FORMATS, layout_message, second),
        rule("inputs-axis").must_have(
            "inputs without an axis of quantisation",
            ONE_SCALE,
            f"Quantization Dim should not be used on any Inputs of {title}",
        )(_axes),
        OUTPUT_INFO,
        rule("broadcast", Level.ESTIMATE_ONLY).must_have(
            "inputs of the same shape",
            "give both the same shape; what is constant can be folded into a convolution's bias "
            "or weights",
            "Cannot stretch along the requested dimensions.",
        )(_stretched),
    )


ADDITION: tuple[Step[Addition], ...] = _table("addition", "Addition")
MULTIPLICATION: tuple[Step[Multiplication], ...] = _table("Multiplication", "Multiplication")


SOURCE = "Ethos-N driver stack 23.02, activationMin and activationMax of MceData"
HELP = "leave the operation to the CPU, or correct its bounds"


@dataclass(frozen=True, slots=True)
class Emptied:
    """A ReLU that keeps none of the numbers `least` to `largest` that are left for it."""

    node: Node
    relu: Relu
    least: int
    largest: int

    @property
    def reason(self) -> Reason:
        """Say what must hold, and what came."""
        limit = f"some of the numbers {self.least} to {self.largest} that its input can have"
        actual = f"{self.relu.lower} to {self.relu.upper}"
        message = f"Relu must keep {limit}, and keeps {actual}"
        return Reason("clamped-range", message, limit, actual, HELP, SOURCE)


def emptied(network: Network) -> Iterator[Emptied]:
    """Return the ReLUs of a network, whose feature maps have 8 bits, that keep no number."""
    users = network.users()
    left: dict[Operand, tuple[int, int]] = {}
    for node in network:
        relu = node.operation
        if not isinstance(relu, Relu):
            continue
        (operand,) = node.inputs
        kind = operand.info.data_type
        least, largest = left.get(operand, (kind.lowest, kind.highest))
        if relu.lower > largest or relu.upper < least:
            yield Emptied(node, relu, least, largest)
        elif len(users[node.operand]) == 1:
            left[node.operand] = max(least, relu.lower), min(largest, relu.upper)
