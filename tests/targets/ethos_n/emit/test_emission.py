"""Containers: buffers, their ids and places, encoded weights, what passes are for."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import McePle
from mizzen.targets.ethos_n.compile import CompiledNetwork, compile_network
from mizzen.targets.ethos_n.config import VARIANTS, VariantConfiguration
from mizzen.targets.ethos_n.emit.emission import ALIGNMENT_BYTES, BufferTable, Entry
from mizzen.targets.ethos_n.network import Network
from mizzen.targets.ethos_n.program import (
    BufferInfo,
    BufferKind,
    Container,
    program_of,
    read_container,
)

FOUR_TOPS = VariantConfiguration(VARIANTS["ethos-n78-4tops-4ple"])
Compiled = Callable[[str], CompiledNetwork]


@pytest.fixture
def compiled(network_of: Callable[[str], Network]) -> Compiled:
    return lambda text: compile_network(network_of(text), FOUR_TOPS)


STRIDED = """
input x 1 64 64 32 u8 NHWC 128 1 0.02 -1
const w 3 3 32 64 u8 HWIO 120 1 0.5 -1
const b 1 1 1 64 s32 NHWC 0 1 0.01 -1
op y conv x b w 1 1 1 1 2 2 110 1 0.7 -1
op z relu y 110 255
op p pool z 2 2 2 2 0 0 0 0 MAX
output p NHWC
"""


def ids(infos: tuple[BufferInfo, ...]) -> list[int]:
    return [info.id for info in infos]


def test_buffers_of_the_example(compiled: Compiled) -> None:
    result = compiled(STRIDED)
    container = result.container
    assert container.inputs == (BufferInfo(1, 0, 64 * 64 * 32),)
    assert container.outputs == (BufferInfo(6, 0, 16 * 16 * 64),)
    assert ids(container.constants_dma) == [2, 4]
    assert ids(container.constants_control_unit) == [0, 3, 5]
    # The map between the passes stays in SRAM.
    assert (container.intermediates, result.intermediate_bytes) == ((), 0)
    assert [(row.operation_ids, row.parents) for row in result.passes] == [
        ((0, 1, 2, 3), ((),)),
        ((1, 2, 3, 4, 5), (0,)),
    ]
    assert read_container(result.serialize()) == container


def test_constants_hold_streams_and_where_their_stripes_are(compiled: Compiled) -> None:
    result = compiled(STRIDED)
    program = program_of(result.container, FOUR_TOPS.capabilities)
    for row in result.passes:
        assert isinstance(row.command, McePle)
        data = program.constant(row.command.weight_metadata_buffer_id)
        places = list(struct.iter_unpack("<2I", data))
        assert [size for _, size in places] == list(row.weight_stripe_bytes)
        ends = np.cumsum(row.weight_stripe_bytes).tolist()
        assert [offset for offset, _ in places] == [0, *ends[:-1]]
        assert len(program.constant(row.command.weights.dram_buffer_id)) == ends[-1]
        assert max(row.weight_stripe_bytes) * len(places) <= row.command.weights.tile_bytes


def test_every_kind_lies_aligned_one_behind_another(compiled: Compiled) -> None:
    container = compiled(STRIDED).container
    for infos, size in (
        (container.constants_dma, len(container.constant_dma)),
        (container.constants_control_unit, len(container.constant_control_unit)),
    ):
        end = 0
        for info in infos:
            assert info.offset == -(-end // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            end = info.offset + info.size
        assert end == size


def test_inputs_and_outputs_are_in_the_order_of_the_operations(compiled: Compiled) -> None:
    """The second input is used first, the second output is made first."""
    result = compiled(
        """
input a 1 8 8 16 u8 NHWC 128 1 0.02 -1
input b 1 4 4 16 u8 NHWC 128 1 0.02 -1
op z sigmoid b
op y sigmoid a
output y NHWC
output z NHWC
"""
    )
    assert [row.source_operation_id for row in result.inputs] == [0, 1]
    assert [row.size_bytes for row in result.inputs] == [1024, 256]
    assert [row.source_operation_id for row in result.outputs] == [2, 3]
    assert [row.size_bytes for row in result.outputs] == [256, 1024]


def test_outputs_of_a_split_are_told_apart(compiled: Compiled) -> None:
    result = compiled(
        """
input x 1 8 8 48 u8 NHWC 128 1 0.02 -1
op s split x 3 2 16 32
output s.1 NHWC
output s.0 NHWC
"""
    )
    found = {(row.source_operation_id, row.source_output_index) for row in result.outputs}
    assert found == {(1, 0), (1, 1)}


def test_parents_reach_through_what_is_no_pass(compiled: Compiled) -> None:
    result = compiled(
        """
input x 1 8 8 16 u8 NHWC 128 1 0.02 -1
op y sigmoid x
op z tanh x
op c concat 2 y z 3 0 1 0.01 -1
op r relu c 20 200
output r NHWC
"""
    )
    *before, last = result.passes
    parts = {
        at
        for at, row in enumerate(before)
        if row.command.output.supertensor_shape != row.command.output.shape
    }
    assert len(parts) == 2
    assert flat(last.parents) == parts


def flat(parents: tuple[object, ...]) -> set[int]:
    found: set[int] = set()
    for row in parents:
        if isinstance(row, int):
            found.add(row)
        else:
            assert isinstance(row, tuple)
            found |= flat(row)
    return found


def test_bytes_that_are_read_as_bricks_fill_whole_brick_groups(compiled: Compiled) -> None:
    """1500 bytes of an input, 2048 of its buffer."""
    result = compiled(
        """
input x 1 1 1 1500 u8 NHWC 128 1 0.02 -1
const w 1 1 1500 10 u8 HWIO 120 1 0.01 -1
const b 1 1 1 10 s32 NHWC 0 1 0.0002 -1
op y fc x b w 110 1 0.5 -1
output y NHWC
"""
    )
    assert [row.size_bytes for row in result.inputs] == [2048]


def table() -> BufferTable:
    """An input, a weight stream, two maps of which the second is given, places of stripes."""
    made = BufferTable()
    made.add(Entry(BufferKind.INPUT, 100, source_operation_id=4))
    made.add_constant(BufferKind.CONSTANT_DMA, b"w" * 70)
    first, second = made.add_intermediate(200), made.add_intermediate(300)
    made.add_constant(BufferKind.CONSTANT_CONTROL_UNIT, b"p" * 8)
    made.use([1, first], 0)
    made.use([first, second], 1)
    made.make_output(second, 7, 0)
    return made


def test_a_table_of_buffers() -> None:
    assert [table().add_sram_map(), table().add_sram_map()] == [0x8000000] * 2
    container = table().finish(b"stream")
    assert container == Container(
        container.version,
        constant_dma=b"w" * 70,
        constant_control_unit=b"stream" + bytes(58) + b"p" * 8,
        inputs=(BufferInfo(1, 0, 100),),
        outputs=(BufferInfo(4, 0, 300),),
        constants_control_unit=(BufferInfo(0, 0, 6), BufferInfo(5, 64, 8)),
        constants_dma=(BufferInfo(2, 0, 70),),
        intermediates=(BufferInfo(3, 0, 200),),
    )


def test_a_buffer_is_widened_to_a_multiple() -> None:
    made = table()
    made.widen(3, 1024)
    made.widen(3, 1024)
    assert made.entry(3).size == 1024


def test_weights_that_are_larger_than_was_foreseen_are_refused(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mizzen.targets.ethos_n.emit import emission
    from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights

    monkeypatch.setattr(EncodedWeights, "max_stripe_bytes", property(lambda _: 1 << 20))
    assert emission.EncodedWeights is EncodedWeights
    with pytest.raises(MizzenError, match=r"E973.*stripes of the weights of operations 0 must"):
        compiled(STRIDED)
