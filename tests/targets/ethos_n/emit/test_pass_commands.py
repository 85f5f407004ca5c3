"""What single commands say: tensors, bounds, scales."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    BlockConfigRecord,
    Convert,
    Format,
    Location,
    MceOperation,
    McePle,
    PleOnly,
    PleOperation,
    Strategy,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.compile import CompiledNetwork, compile_network
from mizzen.targets.ethos_n.config import VARIANTS, VariantConfiguration
from mizzen.targets.ethos_n.emit.pass_commands import (
    Bounds,
    activation_bounds,
    buffer_bytes,
    narrowed,
    overall_factors,
    ple_scale,
    scale_ratio,
    sigmoid_scale,
)
from mizzen.targets.ethos_n.lower.work_graph import (
    Clamp,
    Copy,
    Layout,
    Node,
    Requantization,
    Work,
    make_node,
)
from mizzen.targets.ethos_n.network import TANH_SCALE, Network
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, TensorInfo

FOUR_TOPS = VariantConfiguration(VARIANTS["ethos-n78-4tops-4ple"])
Compiled = Callable[[str], CompiledNetwork]


@pytest.fixture
def compiled(network_of: Callable[[str], Network]) -> Compiled:
    return lambda text: compile_network(network_of(text.replace("; ", "\n")), FOUR_TOPS)


def test_strided_convolution_with_relu_and_maximum(compiled: Compiled) -> None:
    """The example of the package."""
    first, second = compiled(
        """
input x 1 64 64 32 u8 NHWC 128 1 0.02 -1
const w 3 3 32 64 u8 HWIO 120 1 0.5 -1
const b 1 1 1 64 s32 NHWC 0 1 0.01 -1
op y conv x b w 1 1 1 1 2 2 110 1 0.7 -1
op z relu y 110 255
op p pool z 2 2 2 2 0 0 0 0 MAX
output p NHWC
"""
    ).commands
    assert isinstance(first, McePle)
    assert isinstance(second, McePle)
    assert (first.input.format, first.input.location) == (Format.NHWC, Location.DRAM)
    assert first.mce.operation is MceOperation.DEPTHWISE_CONVOLUTION
    assert first.ple.operation is PleOperation.INTERLEAVE_2X2_2_2
    assert (first.mce.stride_x, first.mce.output_shape) == (1, (1, 64, 64, 32))
    # What the first leaves in SRAM the second finds, by the same number that is no buffer's.
    assert first.output == second.input
    assert (second.input.location, second.input.sram_offset_bytes) == (Location.SRAM, 57_344)
    assert second.input.dram_buffer_id == 0x8000000
    assert (second.weights.shape, second.weights.stripe_shape) == ((3, 3, 32, 64), (3, 3, 128, 64))
    assert (second.weights.dram_buffer_id, second.weight_metadata_buffer_id) == (4, 5)
    mce = second.mce
    assert (mce.stride_x, mce.stride_y, mce.pad_top, mce.pad_left) == (2, 2, 1, 1)
    assert mce.uninterleaved_input_shape == (1, 64, 64, 32)
    assert mce.output_shape == mce.output_stripe_shape == (1, 32, 32, 64)
    assert (mce.activation_min, mce.activation_max, mce.output_zero_point) == (110, 255, 110)
    assert mce.algorithm is Algorithm.DIRECT
    assert second.output.shape == (1, 16, 16, 64)
    assert (second.output.format, second.output.location) == (Format.NHWC, Location.DRAM)
    assert second.block_config == BlockConfigRecord(16, 16)
    assert second.ple.operation is PleOperation.MAXPOOL_2X2_2_2


def test_parts_are_written_to_their_places_in_a_concatenation(compiled: Compiled) -> None:
    commands = compiled(
        """
input x 1 8 8 16 u8 NHWC 128 1 0.02 -1
op y sigmoid x
op z tanh x
op c concat 2 y z 3 100 1 0.01 -1
output c NHWCB
"""
    ).commands
    moved = [row.output for row in commands if isinstance(row, McePle | Convert)]
    outputs = [row for row in moved if row.supertensor_shape != row.shape]
    assert [row.supertensor_offset for row in outputs] == [(0, 0, 0, 0), (0, 0, 0, 16)]
    assert {row.supertensor_shape for row in outputs} == {(1, 8, 8, 32)}
    assert len({row.dram_buffer_id for row in outputs}) == 1


def test_parts_are_read_from_their_places(compiled: Compiled) -> None:
    commands = compiled(
        """
input x 1 8 8 48 u8 NHWCB 128 1 0.02 -1
op s split x 3 2 16 32
op y sigmoid s.0
op z sigmoid s.1
output y NHWC
output z NHWC
"""
    ).commands
    inputs = [row.input for row in commands if isinstance(row, McePle)]
    assert [(row.shape, row.supertensor_offset) for row in inputs] == [
        ((1, 8, 8, 16), (0, 0, 0, 0)),
        ((1, 8, 8, 32), (0, 0, 0, 16)),
    ]
    assert {row.supertensor_shape for row in inputs} == {(1, 8, 8, 48)}


@pytest.mark.parametrize(("extent", "edge"), [(16, UpsampleEdge.GENERATE), (15, UpsampleEdge.DROP)])
def test_last_row_of_an_odd_resize_is_dropped(
    compiled: Compiled, extent: int, edge: UpsampleEdge
) -> None:
    (command,) = compiled(
        "input x 1 8 8 16 u8 NHWC 128 1 0.02 -1; "
        f"op y resize x BIL {extent} {extent} 128 1 0.02 -1; output y NHWC"
    ).commands
    assert isinstance(command, McePle)
    assert command.mce.upsample is Upsample.BILINEAR
    assert (command.mce.upsample_edge_row, command.mce.upsample_edge_column) == (edge, edge)


def test_scales_of_a_sum(compiled: Compiled) -> None:
    commands = compiled(
        """
input x 1 8 8 16 u8 NHWCB 128 1 0.02 -1
input y 1 8 8 16 u8 NHWCB 100 1 0.08 -1
op z add x y 50 1 0.04 -1
output z NHWCB
"""
    ).commands
    (command,) = (row for row in commands if isinstance(row, PleOnly))
    ple = command.ple
    assert (ple.operation, command.input_count) == (PleOperation.ADDITION_RESCALE, 2)
    assert math.ldexp(ple.multiplier0, -ple.shift0) == pytest.approx(0.5, rel=2**-15)
    assert math.ldexp(ple.multiplier1, -ple.shift1) == pytest.approx(2, rel=2**-15)
    assert (command.input0.zero_point, command.input1.zero_point) == (128, 100)


def test_sums_with_a_map_in_sram_follow_strategy_3(compiled: Compiled) -> None:
    text = "input x 1 8 8 16 u8 NHWCB 128 1 0.02 -1; op y sigmoid x; op z add {} y 0 1 0.004 -1; "
    commands = compiled(text.format("y") + "output z NHWC").commands
    (command,) = (row for row in commands if isinstance(row, PleOnly))
    assert Location.SRAM in {command.input0.location, command.input1.location}
    assert command.strategy is Strategy.STRATEGY_3


def test_slopes_of_a_leaky_relu(compiled: Compiled) -> None:
    """The first factor is the ratio of scales, the second that times the slope."""
    (command,) = compiled(
        "input x 1 8 8 16 u8 NHWC 128 1 0.02 -1; op y leaky x 0.25 128 1 0.04 -1; output y NHWC"
    ).commands
    assert isinstance(command, McePle)
    assert (command.ple.multiplier0, command.ple.shift0) == ple_scale(0.5)
    assert (command.ple.multiplier1, command.ple.shift1) == ple_scale(0.125)


def test_a_copy_moves_stripe_by_stripe(compiled: Compiled) -> None:
    (command,) = compiled("input x 1 9 9 20 u8 NHWC 7 1 0.02 -1; output x NHWC").commands
    assert isinstance(command, Convert)
    assert command.input.format is command.output.format is Format.NHWC
    assert command.output.stripe_shape == (1, 16, 16, 32)
    assert command.output.tile_bytes == 16 * 16 * 32
    assert command.input.zero_point == command.output.zero_point == 7


@pytest.mark.parametrize(
    ("form", "size"),
    [
        (Format.NHWC, 9 * 17 * 20),
        (Format.NHWCB, 16 * 24 * 32),
        # Two cells high, three wide of 8, one deep of 32; two of 16, two of 16.
        (Format.FCAF_DEEP, 2 * 3 * 1 * 2112),
        (Format.FCAF_WIDE, 2 * 2 * 2 * 2112),
    ],
)
def test_sizes_of_maps_in_dram(form: Format, size: int) -> None:
    assert buffer_bytes((1, 9, 17, 20), form) == size


OUT = QuantizationInfo(100, (0.04,))


def node(work: Work | None, quantization: QuantizationInfo = OUT) -> Node:
    return make_node(work or Copy(), TensorInfo((1, 8, 8, 16), quantization=quantization),
                     Layout.NHWCB, {0})  # fmt: skip


@pytest.mark.parametrize(
    ("behind", "bounds"),
    [
        ([], Bounds(0, 255)),
        ([node(Clamp(-5, 300))], Bounds(0, 255)),
        ([node(Clamp(20, 200)), node(Clamp(100, 255))], Bounds(100, 200)),
        # In half the steps, around another zero point: (200 - 100) * 2 + 10, (100 - 100) * 2 + 10.
        (
            [node(Clamp(100, 200)), node(Requantization(), QuantizationInfo(10, (0.02,)))],
            Bounds(10, 210),
        ),
        # Halves go away from zero: (101 - 100) / 2 is 1, (99 - 100) / 2 is -1.
        (
            [node(Clamp(99, 101)), node(Requantization(), QuantizationInfo(50, (0.08,)))],
            Bounds(49, 51),
        ),
        # What is beyond the type is saturated.
        ([node(Requantization(), QuantizationInfo(0, (0.01,)))], Bounds(0, 255)),
        ([node(Copy()), node(Clamp(1, 2))], Bounds(1, 2)),
    ],
)
def test_bounds_in_the_quantisation_that_is_written(behind: list[Node], bounds: Bounds) -> None:
    assert activation_bounds(node(None), behind) == bounds


def test_bounds_of_signed_maps() -> None:
    info = TensorInfo((1, 8, 8, 16), DataType.S8, quantization=OUT)
    signed = make_node(Copy(), info, Layout.NHWCB, {0})
    assert activation_bounds(signed, []) == Bounds(-128, 127)


@pytest.mark.parametrize(
    ("bounds", "narrow"),
    [
        (Bounds(0, 255), Bounds(90, 110)),
        (Bounds(95, 105), Bounds(95, 105)),
        # One number remains, though none is in both.
        (Bounds(200, 255), Bounds(200, 200)),
        (Bounds(0, 50), Bounds(90, 90)),
    ],
)
def test_bounds_around_a_number(bounds: Bounds, narrow: Bounds) -> None:
    assert narrowed(bounds, 100, 10) == narrow


SCALES = st.floats(1e-4, 500.0)


@given(SCALES, st.booleans())
def test_sigmoids_have_fixed_point_numbers_of_15_bits(scale: float, tanh: bool) -> None:
    output = QuantizationInfo(0, (TANH_SCALE if tanh else 1 / 256,))
    (multiplier, shift), farthest = sigmoid_scale(QuantizationInfo(0, (scale,)), output)
    assert multiplier < 1 << 16
    assert math.ldexp(multiplier * farthest, -shift) < 1 << 15
    wanted = QuantizationInfo(0, (scale,)).scale * math.log2(math.e) * 256 * (2 if tanh else 1)
    # From one step being 2 to the 15 on, every number but the zero point is saturated.
    if wanted < 1 << 15:
        assert math.ldexp(multiplier, -shift) == pytest.approx(wanted, rel=2**-14)


def test_factors_are_float32() -> None:
    source, weights = QuantizationInfo(0, (0.02,)), QuantizationInfo(0, (0.5, 0.1), 3)
    found = overall_factors(source, weights, QuantizationInfo(0, (0.7,)))
    assert found == pytest.approx([1 / 70, 1 / 350], rel=1e-6)
    assert found[0] != 0.02 * 0.5 / 0.7
    assert scale_ratio(source, QuantizationInfo(0, (0.08,))) == pytest.approx(0.25)


def test_a_written_map_has_the_last_requantisation(compiled: Compiled) -> None:
    (command,) = compiled(
        "input x 1 8 8 16 u8 NHWC 128 1 0.02 -1; op y requant x 3 1 0.05 -1 -; output y NHWC"
    ).commands
    assert isinstance(command, McePle)
    # 0 and 255 are -2.56 and 2.54: -51.2 and 50.8 steps from 3.
    assert (command.mce.activation_min, command.mce.activation_max) == (0, 54)
    assert command.mce.output_zero_point == command.output.zero_point == 3
