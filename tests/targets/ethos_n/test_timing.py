"""Performance data against Arm's own, and the model of cycles against arithmetic by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    BlockConfigRecord,
    Convert,
    DataTypeCode,
    Format,
    Location,
    MceOperation,
    McePle,
    MceRecord,
    PleOnly,
    PleOperation,
    PleRecord,
    SpaceToDepth,
    Strategy,
    TensorRecord,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.config import capabilities_of, find_variant
from mizzen.targets.ethos_n.program import read_program
from mizzen.targets.ethos_n.tensors import Shape
from mizzen.targets.ethos_n.timing import (
    Pass,
    cycles,
    estimate,
    pass_cycles,
    passes_of,
    statistics_of,
)
from mizzen.targets.ethos_n.timing.statistics import ParentIds

from .golden import Compiled, compiled_networks, needs_golden
from .performance_json import as_json

CAPABILITIES = capabilities_of(find_variant("ethos-n78-4tops-4ple"))

EXCEPTIONS: dict[str, str] = {}
"""Networks whose performance data differ from Arm's, and why: none do."""


def parents_of(value: Sequence[Any]) -> ParentIds:
    """Read parents as JSON has them."""
    return tuple(row if isinstance(row, int) else parents_of(row) for row in value)


def compiled_passes(compiled: Compiled) -> list[Pass]:
    capabilities = capabilities_of(find_variant(f"Ethos-N78_{compiled.variant}"))
    return passes_of(read_program(compiled.encn, capabilities))


@needs_golden
@pytest.mark.parametrize("compiled", compiled_networks(), ids=str)
def test_performance_data_are_those_of_the_library(compiled: Compiled) -> None:
    """Byte for byte; only the operations and parents of each pass are taken from the answer."""
    text = compiled.path("perf.json").read_text()
    known = json.loads(text)["Stream"]
    rows = [
        replace(
            row, operation_ids=tuple(said["OperationIds"]), parents=parents_of(said["ParentIds"])
        )
        for row, said in zip(compiled_passes(compiled), known, strict=True)
    ]
    capabilities = capabilities_of(find_variant(f"Ethos-N78_{compiled.variant}"))
    assert (as_json(estimate(rows, capabilities)) == text) == (str(compiled) not in EXCEPTIONS)


def feature_map(shape: Shape, stripe: Shape, format: Format = Format.NHWCB) -> TensorRecord:
    return TensorRecord(
        data_type=DataTypeCode.U8,
        format=format,
        shape=shape,
        supertensor_shape=shape,
        supertensor_offset=(0, 0, 0, 0),
        stripe_shape=stripe,
        tile_bytes=4 * stripe[1] * stripe[2] * stripe[3],
        dram_buffer_id=1,
        sram_offset_bytes=0,
        zero_point=0,
        location=Location.DRAM,
    )


PLANES: Shape = (1, 128, 128, 16)
QUARTER: Shape = (1, 32, 128, 16)


def convolution(algorithm: Algorithm = Algorithm.DIRECT, kernel: int = 3) -> Pass:
    """A pass of four stripes of rows, and weights of one stripe of 1600 bytes."""
    weights = feature_map((kernel, kernel, 16, 16), (kernel, kernel, 16, 16), Format.WEIGHT_STREAM)
    mce = MceRecord(
        stride_x=1,
        stride_y=1,
        pad_top=1,
        pad_left=1,
        uninterleaved_input_shape=PLANES,
        output_shape=PLANES,
        output_stripe_shape=QUARTER,
        output_zero_point=0,
        upsample=Upsample.OFF,
        upsample_edge_row=UpsampleEdge.GENERATE,
        upsample_edge_column=UpsampleEdge.GENERATE,
        operation=MceOperation.CONVOLUTION,
        algorithm=algorithm,
        activation_min=0,
        activation_max=255,
    )
    command = McePle(
        input=feature_map(PLANES, QUARTER),
        weights=replace(weights, tile_bytes=1600),
        weight_metadata_buffer_id=2,
        output=feature_map(PLANES, QUARTER),
        strategy=Strategy.STRATEGY_0,
        block_config=BlockConfigRecord(16, 16),
        mce=mce,
        ple=PleRecord(0, 0, PleOperation.PASSTHROUGH),
    )
    return Pass(command, weight_stripe_bytes=(1600,))


def addition(rows: int) -> Pass:
    record = feature_map((1, rows, 128, 16), (1, rows, 128, 16))
    ple = PleRecord(0, 0, PleOperation.ADDITION)
    return Pass(PleOnly(2, record, record, record, Strategy.STRATEGY_X, ple))


def taken(row: Pass) -> float:
    """Return the cycles of a pass."""
    return pass_cycles(row, statistics_of(row, CAPABILITIES), CAPABILITIES)


def test_cycles_of_a_convolution() -> None:
    """Every unit by hand; of 16 engines' generators each way, 8 multipliers each.

    Input: 128 * 128 * 16 bytes / 16 + 4 stripes * 100 = 16784; two of four stripes before the work.
    Weights: one stripe, the shortest, before the work. Output: one of four stripes after it.
    """
    engine = 9 * 128 * 128 * 16 * 16 // (16 * 8 * 16) + 4 * 100
    kernel = 32 * 32 * 6 + 8 * 8 * 110 + 4 * 100
    moved = 128 * 128 * 16 // 16 + 4 * 100
    assert engine > max(kernel, moved)
    assert taken(convolution()) == moved / 2 + 2500 + moved / 4 + engine


def test_cycles_of_an_addition() -> None:
    """Two inputs and the output are moved apart from the work; each is one stripe."""
    moved = 3 * (128 * 128 * 16 // 16 + 100)
    kernel = 32 * 32 * 15 + 1500
    assert taken(addition(128)) == moved + kernel
    assert taken(addition(8)) == 4 * 2500


def test_cycles_of_a_conversion() -> None:
    row = Pass(Convert(feature_map(PLANES, QUARTER, Format.NHWC), feature_map(PLANES, QUARTER)))
    assert taken(row) == 2 * (128 * 128 * 16 // 16 + 4 * 100)


def test_cycles_of_a_network_are_those_of_its_passes() -> None:
    rows = [convolution(), addition(128), addition(8)]
    assert cycles(rows, CAPABILITIES) == sum(taken(row) for row in rows)
    assert cycles([], CAPABILITIES) == 0


def test_a_winograd_kernel_is_counted_as_the_network_has_it() -> None:
    """A kernel of 2 x 2 is 3 x 3 in the command; the cycles are those of the 3 x 3."""
    row = replace(convolution(Algorithm.WINOGRAD), weights_shape=(2, 2, 16, 16))
    work = statistics_of(row, CAPABILITIES).mce
    assert work.operations == 2 * 4 * 128 * 128 * 16 * 16
    assert work.cycles == 64 * 64 * 16 * 16 // (16 * 8)
    assert work.cycles == statistics_of(convolution(Algorithm.WINOGRAD), CAPABILITIES).mce.cycles


def test_an_input_that_is_needed_whole_is_not_moved_beside_the_work() -> None:
    """The library subtracts the rows of a neighbour that is not there, and wraps around."""
    shape: Shape = (1, 48, 16, 16)
    row = convolution()
    assert isinstance(row.command, McePle)
    source = replace(feature_map(shape, (1, 32, 16, 16)), tile_bytes=3 * 32 * 16 * 16)
    traffic = statistics_of(
        replace(row, command=replace(row.command, input=source)), CAPABILITIES
    ).input
    assert (traffic.dram_parallel_bytes, traffic.dram_non_parallel_bytes) == (0, 48 * 16 * 16)


def test_passes_that_cannot_be() -> None:
    with pytest.raises(MizzenError) as caught:
        estimate([replace(convolution(), weight_stripe_bytes=())], CAPABILITIES)
    assert caught.value.diagnostic.render() == (
        "error[E983]: the weights' stripes of a pass must be at least 1, and is 0 in McePle"
    )
    row = addition(8)
    assert isinstance(row.command, PleOnly)
    with pytest.raises(MizzenError, match=r"E983.*inputs of a pass must be at most 2, and are 3"):
        cycles([replace(row, command=replace(row.command, input_count=3))], CAPABILITIES)
    empty = replace(row.command.output, stripe_shape=(1, 0, 8, 16))
    with pytest.raises(MizzenError, match=r"E983.*the stripe extents of a pass must be at least"):
        cycles([replace(row, command=replace(row.command, output=empty))], CAPABILITIES)


@needs_golden
def test_commands_that_cannot_be_estimated() -> None:
    compiled = compiled_networks()[0]
    capabilities = capabilities_of(find_variant(f"Ethos-N78_{compiled.variant}"))
    program = read_program(compiled.encn, capabilities)
    record = feature_map(PLANES, QUARTER)
    other = replace(program, commands=(SpaceToDepth(record, record, 1, 0, 0),))
    with pytest.raises(MizzenError) as caught:
        passes_of(other)
    assert caught.value.diagnostic.render() == (
        "error[E982]: a pass must be McePle, PleOnly or Convert, not SpaceToDepth"
    )
