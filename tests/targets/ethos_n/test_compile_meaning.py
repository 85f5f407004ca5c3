"""Where what Mizzen compiles must differ from Arm's: its rewrites change what some networks mean.

Arm's library looks at the kinds of nodes only. It forgets the quantisation that a concatenation has
been given by a requantisation behind it, what the first of two requantisations saturates, that a
reinterpretation changes the meaning of the numbers, along which axis a concatenation is, that a
part is taken out of a map by the DMA, which does not read SRAM, and that a pooling behind a resize
is not what has an odd extent.
"""

from __future__ import annotations

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import Command, Convert, Location, McePle, UpsampleEdge
from mizzen.targets.ethos_n.compile import compile_network
from mizzen.targets.ethos_n.config import CompilationOptions, VariantConfiguration, find_variant

from .arms_containers import numbers
from .network_text import parse_network

VARIANT = find_variant("ethos-n78-4tops-4ple")


def commands_of(text: str, options: CompilationOptions | None = None) -> tuple[Command, ...]:
    """Compile a network of the text form; constants by the rule of `numbers`."""
    rows = [line.split() for line in text.strip().splitlines()]
    arrays = {row[1]: numbers(row[2:]) for row in rows if row[0] == "const"}
    configuration = VariantConfiguration(VARIANT, options=options or CompilationOptions())
    return compile_network(parse_network(text, arrays), configuration).commands


def test_reader_of_a_concatenation_knows_its_requantisation() -> None:
    commands = commands_of(
        """
input x 1 16 16 16 u8 NHWC 128 1 0.02 -1
op joined concat 2 x x 3 128 1 0.03 -1
op wide requant joined 100 1 0.0625 -1 -
const w 1 1 32 16 u8 HWIO 120 1 0.5 -1
const b 1 1 1 16 s32 NHWC 0 1 0.03125 -1
op y conv wide b w 0 0 0 0 1 1 110 1 0.7 -1
output y NHWC
"""
    )
    last = commands[-1]
    assert isinstance(last, McePle)
    assert last.input.shape == (1, 16, 16, 32)
    assert last.input.zero_point == 100


def test_requantisation_keeps_its_meaning_behind_a_reinterpretation() -> None:
    commands = commands_of(
        """
input x 1 8 8 16 u8 NHWC 128 1 0.02 -1
op other reinterp x 3 1 0.5 -1
op y requant other 7 1 1.0 -1 -
output y NHWC
"""
    )
    made = [command for command in commands if isinstance(command, McePle)]
    assert [(row.input.zero_point, row.output.zero_point) for row in made] == [(3, 7)]


def test_what_a_requantisation_saturates_stays_saturated() -> None:
    # Of the reals -5.12 to 5.08 the first keeps those up to 1.0, which is 150 for the second.
    commands = commands_of(
        """
input x 1 8 8 16 u8 NHWC 128 1 0.04 -1
op narrow requant x 155 1 0.01 -1 -
op y requant narrow 100 1 0.02 -1 -
output y NHWC
"""
    )
    (made,) = commands
    assert isinstance(made, McePle)
    assert (made.mce.activation_min, made.mce.activation_max) == (22, 150)


def test_concatenations_along_two_axes_stay_two() -> None:
    commands = commands_of(
        """
input x 1 16 16 16 u8 NHWC 128 1 0.05 -1
input y 1 16 16 32 u8 NHWC 128 1 0.05 -1
op deep concat 2 x x 3 128 1 0.05 -1
op high concat 2 deep y 1 128 1 0.05 -1
output high NHWC
"""
    )
    moves = [command.output for command in commands if isinstance(command, Convert)]
    parts = {(row.shape, row.supertensor_shape, row.supertensor_offset) for row in moves}
    assert parts >= {
        ((1, 16, 16, 16), (1, 16, 16, 32), (0, 0, 0, 0)),
        ((1, 16, 16, 16), (1, 16, 16, 32), (0, 0, 0, 16)),
        ((1, 16, 16, 32), (1, 32, 16, 32), (0, 0, 0, 0)),
        ((1, 16, 16, 32), (1, 32, 16, 32), (0, 16, 0, 0)),
    }


def test_parts_are_taken_out_of_maps_in_dram() -> None:
    commands = commands_of(
        """
input x 1 16 16 16 u8 NHWC 128 1 0.05 -1
op y sigmoid x
op top split y 1 2 8 8
output top.0 NHWC
output top.1 NHWC
"""
    )
    inputs = [command.input for command in commands if isinstance(command, McePle)]
    parts = [row for row in inputs if row.shape != row.supertensor_shape]
    assert [row.supertensor_offset for row in parts] == [(0, 0, 0, 0), (0, 8, 0, 0)]
    assert {row.location for row in parts} == {Location.DRAM}


def test_last_rows_of_a_resize_are_dropped_by_its_own_extents() -> None:
    commands = commands_of(
        """
input x 1 7 8 16 u8 NHWC 128 1 0.05 -1
op y resize x BIL 14 15 128 1 0.05 -1
op z pool y 1 1 2 2 0 0 0 0 MAX
output z NHWC
"""
    )
    (made,) = commands
    assert isinstance(made, McePle)
    assert made.output.shape == (1, 7, 8, 16)
    edges = made.mce.upsample_edge_row, made.mce.upsample_edge_column
    assert edges == (UpsampleEdge.GENERATE, UpsampleEdge.DROP)


TRANSPOSE = """
input x 1 16 16 16 u8 NHWC 128 1 0.05 -1
op y transpose x 0 2 1 3
output y NHWC
"""
WIDE = """
input x 1 16 16 16 u8 NHWC 128 1 0.05 -1
op y relu x 0 9
output y NHWC
"""
COMPUTED_WEIGHTS = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
const v 1 16 1 16 u8 HWIO 120 1 0.5 -1
op w reshape v 1 1 16 16
const b 1 1 1 16 s32 NHWC 0 1 0.25 -1
op y conv x b w 0 0 0 0 1 1 110 1 0.7 -1
output y NHWC
"""
BELOW_THE_TYPE = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
op y relu x -10 -1
output y NHWC
"""
EXCLUSIVE = """
input x 1 8 8 16 s8 NHWC 0 1 0.5 -1
op middle relu x -20 30
op y relu middle 31 100
output y NHWC
"""
EMPTY = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
op y split x 1 3 4 0 4
output y.0 NHWC
output y.1 NHWC
output y.2 NHWC
"""
WITHOUT_SCALE = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
op y leaky x 0.1 0 1 0.0 -1
output y NHWC
"""
WITHOUT_SLOPE = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
op y leaky x nan 0 1 0.5 -1
output y NHWC
"""
BLOCKS_OF_NOTHING = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
op y d2s x 0
output y NHWC
"""
FIFTH_AXIS = """
input x 1 8 8 16 u8 NHWC 128 1 0.5 -1
op y concat 2 x x 4 128 1 0.5 -1
output y NHWC
"""
DEEP = """
input x 1 1 1 65536 u8 NHWC 128 1 0.5 -1
op y d2s x 2
output y NHWC
"""
NO_BLOCKS = CompilationOptions(block_configs=frozenset())


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            TRANSPOSE,
            CompilationOptions(),
            "error[E970]: operation 1 (Transpose) must be Supported, and is EstimateOnly\n"
            "  rule Ethos-N driver stack 23.02, IsTransposeSupported\n"
            "  help keep the order of axes through the network, and transpose outside of it",
        ),
        (
            WIDE,
            NO_BLOCKS,
            "error[E972]: every operation must fit into 1048576 bytes of SRAM with a strategy that "
            "is allowed; there is none for operations 0, 1\n"
            "  help leave the operations to the CPU, or try a variant with more SRAM, or all "
            "strategies and block configurations",
        ),
        (
            COMPUTED_WEIGHTS,
            CompilationOptions(),
            "error[E974]: weights and biases must be constants; operation 2 (Reshape), which "
            "gives one to operation 4, is none\n"
            "  help leave the operation to the CPU",
        ),
        (
            BELOW_THE_TYPE,
            CompilationOptions(),
            "error[E975]: operation 1 (Relu) must keep some of the numbers 0 to 255 that its input "
            "can have, and keeps -10 to -1\n"
            "  rule Ethos-N driver stack 23.02, activationMin and activationMax of MceData\n"
            "  help leave the operation to the CPU, or correct its bounds",
        ),
        (
            EXCLUSIVE,
            CompilationOptions(),
            "error[E975]: operation 2 (Relu) must keep some of the numbers -20 to 30 that its "
            "input can have, and keeps 31 to 100\n"
            "  rule Ethos-N driver stack 23.02, activationMin and activationMax of MceData\n"
            "  help leave the operation to the CPU, or correct its bounds",
        ),
        (
            EMPTY,
            CompilationOptions(),
            "error[E976]: operation 1 (Split) must give elements, and output 1 is 1x0x8x16\n"
            "  help leave out what is empty",
        ),
        (
            WITHOUT_SCALE,
            CompilationOptions(),
            "error[E977]: operation 1 (LeakyRelu) must have positive, finite scales, not 0\n"
            "  help quantise the network again",
        ),
        (
            WITHOUT_SLOPE,
            CompilationOptions(),
            "error[E977]: operation 1 (LeakyRelu) must have positive, finite slopes, not nan\n"
            "  help quantise the network again",
        ),
        (
            BLOCKS_OF_NOTHING,
            CompilationOptions(),
            "error[E970]: operation 1 (DepthToSpace) must be Supported, and is Unsupported: Number "
            "of channels of input must be an exact multiple of the square of the block size\n"
            "  rule Ethos-N driver stack 23.02, IsDepthToSpaceSupported\n"
            "  help export the network again",
        ),
        (
            FIFTH_AXIS,
            CompilationOptions(),
            "error[E970]: operation 1 (Concatenation) must be Supported, and is Unsupported: "
            "Concatenation axis must refer to a valid dimension (0-3)\n"
            "  rule Ethos-N driver stack 23.02, IsConcatenationSupported\n"
            "  help give the feature maps four dimensions, and count the axis from 0",
        ),
        (
            DEEP,
            CompilationOptions(),
            "error[E978]: operation 1 (DepthToSpace) must need at most 268435456 weights, the "
            "square of its channels, and needs 4294967296\n"
            "  help leave the operation to the CPU",
        ),
    ],
)
def test_refusals_say_which_operation_and_what_to_do(
    text: str, options: CompilationOptions, message: str
) -> None:
    with pytest.raises(MizzenError) as caught:
        commands_of(text, options)
    assert str(caught.value) == message


def test_activations_that_exclude_each_other_in_two_passes() -> None:
    """Each clamps for itself where the first is read by others too."""
    commands = commands_of(EXCLUSIVE.replace("output y", "output middle NHWC\noutput y"))
    made = [command.mce for command in commands if isinstance(command, McePle)]
    assert [(row.activation_min, row.activation_max) for row in made] == [(-20, 30), (31, 100)]
