"""Rules of feature maps, weights and biases: extents, types, layouts; and of given output infos."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.targets.ethos_n.legal.operation_rule import (
    Case,
    Measure,
    O,
    OperationRule,
    rule,
    shape_text,
)
from mizzen.targets.ethos_n.network import Operation
from mizzen.targets.ethos_n.tensors import DataFormat, DataType, TensorInfo
from mizzen.targets.rules import Breach

Pick = Callable[[Case[O]], TensorInfo]
"""Returns the tensor that a rule is about."""

CHUNK_BYTES = 8 * 8
"""SRAM for each channel: the least part of a plane that NHWC can be turned into bricks by."""

EIGHT_BITS = (DataType.U8, DataType.S8)
FEATURE_MAP_FORMATS = (DataFormat.NHWC, DataFormat.NHWCB)
QUANTIZE = "quantise it to INT8 or UINT8"


def first(case: Case[Operation]) -> TensorInfo:
    """Return the first input."""
    return case.inputs[0]


def second(case: Case[Operation]) -> TensorInfo:
    """Return the second input: of weighted operations the bias."""
    return case.inputs[1]


def third(case: Case[Operation]) -> TensorInfo:
    """Return the third input: of weighted operations the weights."""
    return case.inputs[2]


def output(case: Case[Operation]) -> TensorInfo:
    """Return the first output."""
    return case.outputs[0]


def batch(*pick: Pick[O]) -> OperationRule[O]:
    """Make the rule that feature maps hold one element of a batch."""

    def measure(case: Case[O]) -> Breach | None:
        found = (row(case).shape[0] for row in pick)
        return next((Breach(f"one of {count}") for count in found if count != 1), None)

    return rule("batch").must_have(
        "a batch of 1",
        "export the network with a batch of 1, and run it for each element of the batch",
        "Batch size must be 1",
    )(measure)


BATCH = batch(first)


def is_too_deep(info: TensorInfo, sram_bytes: int) -> bool:
    """Whether the channels of one chunk do not fit; where W is 1, channels can be split."""
    return info.width != 1 and CHUNK_BYTES * info.channels > sram_bytes


def deep(info: TensorInfo, sram_bytes: int) -> Breach:
    """Tell that the channels do not fit."""
    chunk = CHUNK_BYTES * info.channels
    actual = f"{info.channels} channels, which take {chunk} of {sram_bytes} bytes"
    return Breach(actual, (chunk, sram_bytes))


def depth(id: str, what: str, pick: Pick[O]) -> OperationRule[O]:
    """Make the rule that the channels of a tensor fit in the SRAM."""

    def measure(case: Case[O]) -> Breach | None:
        info, sram_bytes = pick(case), case.capabilities.sram_bytes
        return deep(info, sram_bytes) if is_too_deep(info, sram_bytes) else None

    return depth_rule(id, what, measure)


def depth_rule(id: str, what: str, measure: Measure[O]) -> OperationRule[O]:
    """Make the rule that `depth` makes, with another measure."""
    tensor = id.removesuffix("-depth").replace("-", " ")
    return rule(id).must_have(
        f"channels of the {tensor} that fit in the SRAM, {CHUNK_BYTES} bytes each, "
        "unless it is 1 wide",
        "split the channels over several operations, or take a variant with more SRAM",
        f"{what}: Tensor max depth cannot fit in SRAM (%d / %d)",
    )(measure)


def data_type(id: str, what: str, pick: Pick[O]) -> OperationRule[O]:
    """Make the rule that a tensor has 8 bits."""

    def measure(case: Case[O]) -> Breach | None:
        found = pick(case).data_type
        return None if found in EIGHT_BITS else Breach(found.value)

    return rule(id).must_have(
        f"{_tensor(id)} of UINT8 or INT8",
        QUANTIZE,
        f"{what} must be UINT8_QUANTIZED or INT8_QUANTIZED",
    )(measure)


def bias_type(what: str) -> OperationRule[Operation]:
    """Make the rule that the bias has 32 bits."""

    def measure(case: Case[Operation]) -> Breach | None:
        found = case.inputs[1].data_type
        return None if found is DataType.S32 else Breach(found.value)

    return rule("bias-type").must_have(
        "a bias of INT32", "give the bias as INT32", f"{what} must be INT32_QUANTIZED"
    )(measure)


def layout(
    id: str, wanted: tuple[DataFormat, ...], message: str, pick: Pick[O]
) -> OperationRule[O]:
    """Make the rule that a tensor has one of some formats."""
    names = " or ".join(row.value for row in wanted)

    def measure(case: Case[O]) -> Breach | None:
        found = pick(case).format
        return None if found in wanted else Breach(found.value)

    return rule(id).must_have(f"{_tensor(id)} in {names}", f"give it in {names}", message)(measure)


def input_layout(message: str) -> OperationRule[Operation]:
    """Make the rule that the first input is a feature map by its format."""
    return layout("input-format", FEATURE_MAP_FORMATS, message, first)


def _tensor(id: str) -> str:
    """Name the tensor that a rule is about, from the rule's name."""
    tensor = id.rpartition("-")[0].replace("-", " ")
    article = {"inputs": "", "weights": ""}.get(tensor, "an " if tensor[0] in "aeiou" else "a ")
    return f"{article}{tensor}"


def _differs(case: Case[Operation]) -> str | None:
    """Compare the given output infos; one without elements stands for "tell me"."""
    return _difference(case, lambda given, made: bool(given.elements) and given != made)


def _differs_or_empty(case: Case[Operation]) -> str | None:
    return _difference(case, lambda given, made: given != made)


def _difference(
    case: Case[Operation], differs: Callable[[TensorInfo, TensorInfo], bool]
) -> str | None:
    for given, made in zip(case.expected or (), case.outputs, strict=False):
        if differs(given, made):
            return f"{shape_text(made)} {made.data_type.value}, not {shape_text(given)}"
    return None


_output_info = rule("output-info", fills=True).must_have(
    "the output info that was given, where one was given",
    "give no output info, or that which the operation makes of its inputs",
    "Provided outputInfo is incorrect",
)
OUTPUT_INFO: OperationRule[Operation] = _output_info(_differs)
FULL_OUTPUT_INFO: OperationRule[Operation] = _output_info(_differs_or_empty)
"""The same of `SpaceToDepth`, where an info without elements is compared like any other."""
