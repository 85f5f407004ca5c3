"""Rules of concatenation and splitting.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.legal.operation_rule import (
    V23_02,
    Case,
    OperationRule,
    Step,
    each_input,
    rule,
    shape_text,
)
from mizzen.targets.ethos_n.legal.quantization_rules import (
    ONE_SCALE,
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
    deep,
    depth,
    depth_rule,
    first,
    input_layout,
    is_too_deep,
    output,
)
from mizzen.targets.ethos_n.network import Concatenation, Split
from mizzen.targets.rules import Breach, Level

Along = Concatenation | Split

BATCH_AXIS = 0
CHANNEL_AXIS = 3
CHANNEL_STEP = 16
"""Channels of a brick: what is joined in the DRAM along them starts at a brick."""


@rule("inputs").must_have("at least one input", "leave it out", "Must have at least one input")
def _no_input(case: Case[Concatenation]) -> str | None:
    return None if case.inputs else "none"


def _axis(case: Case[Along]) -> str | None:
    axis = case.operation.axis
    return None if 0 <= axis <= CHANNEL_AXIS else f"axis {axis}"


def _batch_axis(case: Case[Along]) -> str | None:
    return None if case.operation.axis != BATCH_AXIS else "axis 0"


@rule("inputs-shape").must_have(
    "inputs with the same extents along all axes but its own",
    "export the network again",
    "Input tensors must have the same size along all dimensions except the concatenation dimension",
)
def _other_extents(case: Case[Concatenation]) -> str | None:
    axis, wanted = case.operation.axis, case.input.shape
    for info in case.inputs:
        pairs = zip(info.shape, wanted, strict=True)
        if any(have != want for at, (have, want) in enumerate(pairs) if at != axis):
            return f"{shape_text(case.input)} and {shape_text(info)}"
    return None


@rule("inputs-axis").must_have(
    "inputs without an axis of quantisation",
    ONE_SCALE,
    "Quantization Dim should not be used on any Inputs of Concat",
)
def _input_axes(case: Case[Concatenation]) -> str | None:
    axes = (info.quantization.axis for info in case.inputs)
    return next((f"scales along axis {axis}" for axis in axes if axis is not None), None)


def _uneven(axis: int, channels: tuple[int, ...]) -> str | None:
    if axis != CHANNEL_AXIS or not any(count % CHANNEL_STEP for count in channels):
        return None
    return ", ".join(map(str, channels))


@rule("channels", Level.ESTIMATE_ONLY, V23_02).must_have(
    "inputs with a multiple of 16 channels, where it is along the channels",
    "let what comes before give a multiple of 16 channels",
    "Concatenation along the channels dimension (axis 3) requires input tensors with a "
    "multiple of 16 channels",
)
def _uneven_inputs(case: Case[Concatenation]) -> str | None:
    return _uneven(case.operation.axis, tuple(info.channels for info in case.inputs))


@rule("channels", Level.ESTIMATE_ONLY, V23_02).must_have(
    "sizes that are multiples of 16, where it is along the channels",
    "let what comes before give a multiple of 16 channels for each part",
    "Split along the channels dimension (axis 3) requires all output sizes (specified in "
    "splitInfo.m_Sizes) to be multiples of 16",
)
def _uneven_outputs(case: Case[Split]) -> str | None:
    return _uneven(case.operation.axis, case.operation.sizes)


def _axis_rule(message: str) -> OperationRule[Along]:
    return rule("axis").must_have(
        "an axis from 0 to 3",
        "give the feature maps four dimensions, and count the axis from 0",
        message,
    )(_axis)


def _batch_axis_rule(what: str, level: Level) -> OperationRule[Along]:
    return rule("batch-axis", level).must_have(
        "another axis than that of the batch",
        "reshape so that the axis is height, width or channels",
        f"{what} cannot be performed along batch axis (axis 0)",
    )(_batch_axis)


CONCATENATION: tuple[Step[Concatenation], ...] = (
    _no_input,
    each_input(
        BATCH,
        depth("input-depth", "Input tensors", first),
        data_type("input-type", "Input tensors", first),
        input_layout("Input to concatenation must be NHWC or NHWCB"),
    ),
    _axis_rule("Concatenation axis must refer to a valid dimension (0-3)"),
    _other_extents,
    _input_axes,
    *output_per_tensor("Concatenation"),
    each_input(input_zero_point("at least one input info"), output_zero_point("concatInfo")),
    each_input(identity_scale("Output scales")),
    depth("output-depth", "Output of concatenation", output),
    OUTPUT_INFO,
    _batch_axis_rule("Concatenation", Level.ESTIMATE_ONLY),
    _uneven_inputs,
)


@rule("outputs").must_have("at least one output", "leave it out", "Must have at least 1 output")
def _no_output(case: Case[Split]) -> str | None:
    return None if case.operation.sizes else "none"


@rule("sizes").must_have(
    "sizes that sum to the input's extent",
    "export the network again",
    "Sizes must sum to the total size of the input tensor along the split axis",
)
def _sum(case: Case[Split]) -> str | None:
    extent, found = case.input.shape[case.operation.axis], sum(case.operation.sizes)
    return None if found == extent else f"{found} where the input has {extent}"


@rule("output-infos").must_have(
    "as many output infos given as outputs, where any are",
    OUTPUT_INFO.help,
    "Provided outputInfos array has incorrect size",
)
def _count(case: Case[Split]) -> str | None:
    if case.expected is None or len(case.expected) == len(case.operation.sizes):
        return None
    return f"{len(case.expected)} for {len(case.operation.sizes)} outputs"


def _wrong_part(case: Case[Split]) -> int | None:
    """Find the first output that is not as the given info says."""
    for index, (given, made) in enumerate(zip(case.expected or (), case.outputs, strict=False)):
        if given.elements and given != made:
            return index
    return None


def _part_depth(case: Case[Split]) -> Breach | None:
    # The library looks at depth and info of one output after the other.
    sram_bytes = case.capabilities.sram_bytes
    wrong = _wrong_part(case)
    parts = case.outputs if wrong is None else case.outputs[: wrong + 1]
    found = (deep(info, sram_bytes) for info in parts if is_too_deep(info, sram_bytes))
    return next(found, None)


@rule(OUTPUT_INFO.id, OUTPUT_INFO.level, fills=True).must_have(
    OUTPUT_INFO.limit, OUTPUT_INFO.help, "Provided outputInfo at index %d is incorrect"
)
def _part_info(case: Case[Split]) -> Breach | None:
    index = _wrong_part(case)
    if index is None:
        return None
    return Breach(f"{shape_text(case.outputs[index])} as output {index}", (index,))


SPLIT: tuple[Step[Split], ...] = (
    BATCH,
    depth("input-depth", "Input tensor", first),
    _no_output,
    data_type("input-type", "Input tensor", first),
    input_layout("Input tensor must be NHWC or NHWCB"),
    _axis_rule("Axis must refer to a valid dimension (0-3)"),
    _sum,
    *input_per_tensor("Split"),
    input_zero_point(),
    _count,
    depth_rule("output-depth", "Output of split", _part_depth),
    _part_info,
    _batch_axis_rule("Split", Level.UNSUPPORTED),
    _uneven_outputs,
)
