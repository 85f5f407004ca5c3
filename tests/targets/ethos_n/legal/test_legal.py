"""Support queries: every rule on both sides, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.config import VARIANTS, Profile, capabilities_of
from mizzen.targets.ethos_n.legal import OPERATIONS, Answer, Level, reasons, rules, supported
from mizzen.targets.ethos_n.legal.movement_rules import depthwise_weight_bytes, space_to_depth_bytes
from mizzen.targets.ethos_n.network import (
    Addition,
    Constant,
    Convolution,
    Multiplication,
    Operation,
    Output,
    Pooling,
    Query,
    Relu,
    SpaceToDepth,
    Split,
    output_infos,
)
from mizzen.targets.ethos_n.tensors import DataFormat, DataType, Shape, TensorInfo

from . import plain_cases, size_cases, weighted_cases
from .cases import MAP, PLAIN, Broken, Kept, ask, tensor

SMALLEST = capabilities_of(VARIANTS["ethos-n78-1tops-2ple"])
BROKEN = [*plain_cases.BROKEN, *size_cases.BROKEN, *weighted_cases.BROKEN]
KEPT = [*plain_cases.KEPT, *size_cases.KEPT, *weighted_cases.KEPT]
GIVEN = ("output-info", "output-infos")
"""Rules about what the asker gives besides the query."""


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_a_broken_rule_decides(case: Broken) -> None:
    for profile in case.profiles:
        answer = supported(case.query, SMALLEST, profile)
        assert (answer.level, answer.message) == (case.level, case.message)
        found = reasons(case.query.operation, case.query.inputs, SMALLEST, profile)
        if case.level is Level.SUPPORTED:
            assert not found
        else:
            assert found[0].rule == case.rule


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_what_keeps_to_the_rules_is_supported(case: Kept) -> None:
    for profile in case.profiles:
        outputs = output_infos(case.query.operation, case.query.inputs)
        assert supported(case.query, SMALLEST, profile) == Answer(Level.SUPPORTED, outputs, "")
        assert reasons(case.query.operation, case.query.inputs, SMALLEST, profile) == ()


@pytest.mark.parametrize("profile", Profile)
def test_the_cases_break_every_rule(profile: Profile) -> None:
    broken = {
        (type(case.query.operation), case.rule, case.message)
        for case in BROKEN
        if profile in case.profiles
    }
    there = {(kind, rule.id) for kind in OPERATIONS for rule in rules(kind, profile)}
    there = {(kind, rule) for kind, rule in there if rule not in GIVEN}
    assert {(kind, rule) for kind, rule, _ in broken} == there


def test_an_answer_is_true_if_the_operation_can_be_compiled() -> None:
    assert supported(weighted_cases.convolution(), SMALLEST)
    assert not supported(weighted_cases.convolution(stride=(3, 3)), SMALLEST)


CONVOLUTION = weighted_cases.convolution()
MADE = output_infos(CONVOLUTION.operation, CONVOLUTION.inputs)[0]
WRONG = "Provided outputInfo is incorrect"


def test_a_given_output_info_is_compared() -> None:
    assert supported(CONVOLUTION, SMALLEST, expected=(MADE,)).outputs == (MADE,)
    for given in (
        tensor(1, 16, 16, 31),
        replace(MADE, data_type=DataType.S8),
        replace(MADE, quantization=MAP.quantization, shape=(*MADE.shape[:3], 33)),
    ):
        answer = supported(CONVOLUTION, SMALLEST, expected=(given,))
        assert answer == Answer(Level.UNSUPPORTED, (), WRONG)


def test_a_given_output_info_without_elements_is_filled_in() -> None:
    answer = supported(CONVOLUTION, SMALLEST, expected=(tensor(1, 0, 16, 32),))
    assert answer == Answer(Level.SUPPORTED, (MADE,), "")


def test_of_space_to_depth_one_without_elements_is_compared_too() -> None:
    query = ask(SpaceToDepth(2), MAP)
    answer = supported(query, SMALLEST, expected=(tensor(0, 0, 0, 0),))
    assert (answer.level, answer.message) == (Level.UNSUPPORTED, WRONG)
    answer = supported(query, SMALLEST, expected=(tensor(1, 8, 8, 64),))
    assert answer == Answer(Level.ESTIMATE_ONLY, (tensor(1, 8, 8, 64),), "")


def test_a_split_tells_which_output_info_is_wrong() -> None:
    query = ask(Split(1, (6, 10)), MAP)
    parts = tensor(1, 6, 16, 16), tensor(1, 10, 16, 16)
    assert supported(query, SMALLEST, expected=parts).outputs == parts
    answer = supported(query, SMALLEST, expected=(parts[0], parts[0]))
    assert answer.message == "Provided outputInfo at index 1 is incorrect"
    answer = supported(query, SMALLEST, expected=parts[:1])
    assert answer.message == "Provided outputInfos array has incorrect size"


def test_output_infos_are_given_as_soon_as_the_library_fills_them_in() -> None:
    before = weighted_cases.convolution(input_shape=(2, 16, 16, 16))
    after = weighted_cases.convolution(stride=(3, 3))
    assert supported(before, SMALLEST).outputs == ()
    assert supported(after, SMALLEST).outputs == (tensor(1, 6, 6, 32),)


def test_reasons_go_on_behind_what_can_be_estimated() -> None:
    query = weighted_cases.convolution(kernel=(4, 4), stride=(3, 3))
    found = reasons(query.operation, query.inputs, SMALLEST)
    assert [row.rule for row in found] == ["kernel", "stride", "padding"]


def test_reasons_stop_at_what_is_unsupported() -> None:
    query = weighted_cases.convolution(input_shape=(2, 16, 16, 16), stride=(3, 3))
    found = reasons(query.operation, query.inputs, SMALLEST)
    assert [row.rule for row in found] == ["batch"]


def test_a_reason_says_what_must_hold_what_came_and_what_to_do() -> None:
    query = weighted_cases.convolution(stride=(3, 3))
    (found,) = reasons(query.operation, query.inputs, SMALLEST)
    assert found.message == (
        "Convolution must have a stride of 1x1 or 2x2, and has 3x3 "
        "(only its performance can be estimated)"
    )
    assert (found.limit, found.actual) == ("a stride of 1x1 or 2x2", "3x3")
    assert found.help == "use a stride of 1x1 or 2x2"
    assert found.source == "Ethos-N driver stack 23.02, IsConvolutionSupported"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            weighted_cases.convolution(input_data_type=DataType.S32),
            "Convolution must have an input of UINT8 or INT8, and has INT32_QUANTIZED",
        ),
        (
            weighted_cases.convolution(weights_format=DataFormat.HWIM),
            "Convolution must have weights in HWIO, and has HWIM",
        ),
        (
            weighted_cases.convolution(bias_format=DataFormat.NCHW),
            "Convolution must have a bias in NHWC, and has NCHW",
        ),
        (
            weighted_cases.convolution(bias_quantization=weighted_cases.channel_scales(32, 3, 0.5)),
            "Convolution must have a bias with a scale of exactly input scale * weight scale, in "
            "float32, and has 0.5 where it is 0.125 (only its performance can be estimated)",
        ),
        (
            weighted_cases.convolution(
                bias_quantization=weighted_cases.channel_scales(32, 3, 0.125)
            ),
            "Convolution must have a bias with a scale of exactly input scale * weight scale, in "
            "float32, and has 32 scales where there are 1 (only its performance can be estimated)",
        ),
        (
            weighted_cases.connected(weights_quantization=weighted_cases.channel_scales(32, 3)),
            "FullyConnected must have one scale of the weights and one of the bias, and has "
            "32 scales of the weights and 1 of the bias",
        ),
        (
            ask(Relu(), tensor(1, 4, 4, 7169)),
            "Relu must have channels of the input that fit in the SRAM, 64 bytes each, unless it "
            "is 1 wide, and has 7169 channels, which take 458816 of 458752 bytes",
        ),
    ],
)
def test_messages_of_reasons(query: Query, message: str) -> None:
    assert reasons(query.operation, query.inputs, SMALLEST)[0].message == message


@pytest.mark.parametrize(
    ("shape", "block", "expected"),
    [
        # 8 banks: 2 * 2 + 1 bricks of 64 elements.
        ((1, 4, 8, 16), 2, 64 * 5 * 8),
        # 4 * 38 + 8.
        ((1, 4, 100, 24), 4, 64 * 160 * 8),
        # 5 banks divide 15 channels: 3 * 4 + 2, in all 8.
        ((1, 3, 30, 5), 3, 64 * 14 * 8),
        # 10 * 3 + 2.
        ((1, 10, 100, 1), 10, 64 * 32 * 8),
        ((1, 4, 8, 0), 2, 0),
    ],
)
def test_space_to_depth_works_on_one_row_of_blocks(shape: Shape, block: int, expected: int) -> None:
    assert space_to_depth_bytes(tensor(*shape), block, SMALLEST) == expected


def test_weights_of_an_identity_convolution_are_counted_at_their_worst() -> None:
    # 58 bytes a channel: 2 weights with their bits, 41 of parameters, 14 of header.
    assert depthwise_weight_bytes(16, SMALLEST) == 128 * 8
    # 59 bytes a channel, 7 channels in each of 16 streams: 413, rounded to 416.
    largest = capabilities_of(VARIANTS["ethos-n78-8tops-2ple"])
    assert depthwise_weight_bytes(100, largest) == 416 * 16


def test_the_reason_of_an_estimate_is_the_callers_own() -> None:
    (case,) = (row for row in plain_cases.BOUNDARIES if row.rule == "estimate")
    (found,) = reasons(case.query.operation, case.query.inputs, SMALLEST)
    assert found.actual == "no such operation"


def test_more_sram_takes_deeper_feature_maps() -> None:
    query = Query(Relu(0, 255), (TensorInfo((1, 4, 4, 8000)),))
    assert not supported(query, SMALLEST)
    assert supported(query, capabilities_of(VARIANTS["ethos-n78-2tops-2ple"]))
    # 64 KiB in each of 8 banks instead of 56.
    assert supported(query, capabilities_of(VARIANTS["ethos-n78-1tops-2ple"], 512 * 1024))


@pytest.mark.parametrize(
    ("operation", "inputs", "message"),
    [
        (Convolution, 1, "Convolution takes 3 inputs, and is asked about with 1"),
        (Addition, 3, "Addition takes 2 inputs, and is asked about with 3"),
        (Pooling, 0, "Pooling takes 1 inputs, and is asked about with 0"),
        (Constant, 1, "Constant takes 0 inputs, and is asked about with 1"),
    ],
)
def test_a_wrong_number_of_inputs_is_an_error(
    operation: type[Operation], inputs: int, message: str
) -> None:
    kept = next(row.query for row in KEPT if isinstance(row.query.operation, operation))
    query = Query(kept.operation, (MAP,) * inputs)
    with pytest.raises(MizzenError) as error:
        supported(query, SMALLEST)
    assert str(error.value) == (
        f"error[E913]: {message}\n"
        "  help weighted operations take the feature map, the bias and the weights"
    )


def test_operations_of_25_03_are_not_in_23_02() -> None:
    query = ask(Multiplication(PLAIN), MAP, MAP)
    assert supported(query, SMALLEST, Profile.V25_03)
    answer = supported(query, SMALLEST, Profile.V23_02)
    assert answer == Answer(Level.UNSUPPORTED, (), "Multiplication is not in release 23.02")
    (found,) = reasons(query.operation, query.inputs, SMALLEST)
    assert found.message == (
        "Multiplication must have release 25.03 of the driver stack, and has 23.02"
    )


def test_every_operation_has_a_table() -> None:
    assert set(OPERATIONS) == set(Operation.__args__)
    assert rules(Output, Profile.V23_02)[0].id == "batch"
