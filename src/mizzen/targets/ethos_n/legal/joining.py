"""Rules of concatenation and splitting.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.legal.quantization import (
    ONE_SCALE,
    identity_scale,
    input_per_tensor,
    input_zero_point,
    output_per_tensor,
    output_zero_point,
)
from mizzen.targets.ethos_n.legal.rule import (
    V23_02,
    Breach,
    Case,
    EachInput,
    Level,
    Rule,
    Step,
    shape_text,
)
from mizzen.targets.ethos_n.legal.tensors import (
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

Along = Concatenation | Split

BATCH_AXIS = 0
CHANNEL_AXIS = 3
CHANNEL_STEP = 16
"""Channels of a brick: what is joined in the DRAM along them starts at a brick."""


def _no_input(case: Case[Concatenation]) -> Breach | None:
    return None if case.inputs else Breach("none")


def _axis(case: Case[Along]) -> Breach | None:
    axis = case.operation.axis
    return None if 0 <= axis <= CHANNEL_AXIS else Breach(f"axis {axis}")


def _batch_axis(case: Case[Along]) -> Breach | None:
    return None if case.operation.axis != BATCH_AXIS else Breach("axis 0")


def _other_extents(case: Case[Concatenation]) -> Breach | None:
    axis, wanted = case.operation.axis, case.input.shape
    for info in case.inputs:
        pairs = zip(info.shape, wanted, strict=True)
        if any(have != want for at, (have, want) in enumerate(pairs) if at != axis):
            return Breach(f"{shape_text(case.input)} and {shape_text(info)}")
    return None


def _input_axes(case: Case[Concatenation]) -> Breach | None:
    axes = (info.quantization.axis for info in case.inputs)
    return next((Breach(f"scales along axis {axis}") for axis in axes if axis is not None), None)


def _uneven(axis: int, channels: tuple[int, ...]) -> Breach | None:
    if axis != CHANNEL_AXIS or not any(count % CHANNEL_STEP for count in channels):
        return None
    return Breach(", ".join(map(str, channels)))


def _uneven_inputs(case: Case[Concatenation]) -> Breach | None:
    return _uneven(case.operation.axis, tuple(info.channels for info in case.inputs))


def _uneven_outputs(case: Case[Split]) -> Breach | None:
    return _uneven(case.operation.axis, case.operation.sizes)


def _axis_rule(message: str) -> Rule[Along]:
    return Rule(
        "axis",
        Level.UNSUPPORTED,
        "an axis from 0 to 3",
        message,
        _axis,
        "give the feature maps four dimensions, and count the axis from 0",
    )


def _batch_axis_rule(what: str, level: Level) -> Rule[Along]:
    return Rule(
        "batch-axis",
        level,
        "another axis than that of the batch",
        f"{what} cannot be performed along batch axis (axis 0)",
        _batch_axis,
        "reshape so that the axis is height, width or channels",
    )


CONCATENATION: tuple[Step[Concatenation], ...] = (
    Rule(
        "inputs",
        Level.UNSUPPORTED,
        "at least one input",
        "Must have at least one input",
        _no_input,
        "leave it out",
    ),
    EachInput(
        (
            BATCH,
            depth("input-depth", "Input tensors", first),
            data_type("input-type", "Input tensors", first),
            input_layout("Input to concatenation must be NHWC or NHWCB"),
        )
    ),
    _axis_rule("Concatenation axis must refer to a valid dimension (0-3)"),
    Rule(
        "inputs-shape",
        Level.UNSUPPORTED,
        "inputs with the same extents along all axes but its own",
        "Input tensors must have the same size along all dimensions except the concatenation "
        "dimension",
        _other_extents,
        "export the network again",
    ),
    Rule(
        "inputs-axis",
        Level.UNSUPPORTED,
        "inputs without an axis of quantisation",
        "Quantization Dim should not be used on any Inputs of Concat",
        _input_axes,
        ONE_SCALE,
    ),
    *output_per_tensor("Concatenation"),
    EachInput((input_zero_point("at least one input info"), output_zero_point("concatInfo"))),
    EachInput((identity_scale("Output scales"),)),
    depth("output-depth", "Output of concatenation", output),
    OUTPUT_INFO,
    _batch_axis_rule("Concatenation", Level.ESTIMATE_ONLY),
    Rule(
        "channels",
        Level.ESTIMATE_ONLY,
        "inputs with a multiple of 16 channels, where it is along the channels",
        "Concatenation along the channels dimension (axis 3) requires input tensors with a "
        "multiple of 16 channels",
        _uneven_inputs,
        "let what comes before give a multiple of 16 channels",
        V23_02,
    ),
)


def _no_output(case: Case[Split]) -> Breach | None:
    return None if case.operation.sizes else Breach("none")


def _sum(case: Case[Split]) -> Breach | None:
    extent, found = case.input.shape[case.operation.axis], sum(case.operation.sizes)
    return None if found == extent else Breach(f"{found} where the input has {extent}")


def _count(case: Case[Split]) -> Breach | None:
    if case.expected is None or len(case.expected) == len(case.operation.sizes):
        return None
    return Breach(f"{len(case.expected)} for {len(case.operation.sizes)} outputs")


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


def _part_info(case: Case[Split]) -> Breach | None:
    index = _wrong_part(case)
    if index is None:
        return None
    return Breach(f"{shape_text(case.outputs[index])} as output {index}", (index,))


SPLIT: tuple[Step[Split], ...] = (
    BATCH,
    depth("input-depth", "Input tensor", first),
    Rule(
        "outputs",
        Level.UNSUPPORTED,
        "at least one output",
        "Must have at least 1 output",
        _no_output,
        "leave it out",
    ),
    data_type("input-type", "Input tensor", first),
    input_layout("Input tensor must be NHWC or NHWCB"),
    _axis_rule("Axis must refer to a valid dimension (0-3)"),
    Rule(
        "sizes",
        Level.UNSUPPORTED,
        "sizes that sum to the input's extent",
        "Sizes must sum to the total size of the input tensor along the split axis",
        _sum,
        "export the network again",
    ),
    *input_per_tensor("Split"),
    input_zero_point(),
    Rule(
        "output-infos",
        Level.UNSUPPORTED,
        "as many output infos given as outputs, where any are",
        "Provided outputInfos array has incorrect size",
        _count,
        OUTPUT_INFO.help,
    ),
    depth_rule("output-depth", "Output of split", _part_depth),
    Rule(
        OUTPUT_INFO.id,
        OUTPUT_INFO.level,
        OUTPUT_INFO.limit,
        "Provided outputInfo at index %d is incorrect",
        _part_info,
        OUTPUT_INFO.help,
        fills=True,
    ),
    _batch_axis_rule("Split", Level.UNSUPPORTED),
    Rule(
        "channels",
        Level.ESTIMATE_ONLY,
        "sizes that are multiples of 16, where it is along the channels",
        "Split along the channels dimension (axis 3) requires all output sizes (specified in "
        "splitInfo.m_Sizes) to be multiples of 16",
        _uneven_outputs,
        "let what comes before give a multiple of 16 channels for each part",
        V23_02,
    ),
)
