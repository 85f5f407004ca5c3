"""Rules of what combines two feature maps element by element.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`; `Multiplication` is of 25.03 only.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.legal.operation_rule import (
    Case,
    Measure,
    OperationRule,
    Step,
    rule,
    shape_text,
)
from mizzen.targets.ethos_n.legal.quantization_rules import ONE_SCALE, output_zero_point, zero_point
from mizzen.targets.ethos_n.legal.tensor_rules import (
    FEATURE_MAP_FORMATS,
    OUTPUT_INFO,
    batch,
    data_type,
    depth,
    first,
    layout,
    second,
)
from mizzen.targets.ethos_n.network import Addition, Multiplication
from mizzen.targets.rules import Level

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
    found = [str(axis) for axis in axes if axis is not None]
    return f"scales along axis {' and '.join(found)}" if found else None


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
