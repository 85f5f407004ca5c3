"""The rows of stream 3.1: against Arm's own headers and compiled streams, and themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.isa import Instruction
from mizzen.isa.listing import markdown
from mizzen.targets.ethos_n.commands import (
    HEADER,
    INSTRUCTION_SET,
    decode,
    decode_instructions,
    decode_partial,
    encode,
    encode_instructions,
)
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    BlockConfigRecord,
    Cascade,
    Convert,
    DataTypeCode,
    Delay,
    DumpDram,
    DumpSram,
    Fence,
    Format,
    Location,
    MceOperation,
    McePle,
    MceRecord,
    PleOnly,
    PleOperation,
    PleRecord,
    Section,
    SpaceToDepth,
    Strategy,
    TensorRecord,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.program import read_program
from mizzen.targets.ethos_n.tensors import Shape

from .golden import Compiled, compiled_networks, needs_golden
from .strategies import streams

CAPABILITIES = capabilities_of(VARIANTS["ethos-n78-4tops-4ple"])

# `sizeof` and bytes of a C++ program that includes the headers of release 23.02.
SIZES_BYTES = {
    "MCE_PLE": 368,
    "PLE_ONLY": 284,
    "CONVERT": 172,
    "SPACE_TO_DEPTH": 184,
    "DUMP_DRAM": 136,
    "DUMP_SRAM": 132,
    "FENCE": 4,
    "SECTION": 4,
    "DELAY": 8,
    "CASCADE": 8,
}
ALPHABET = "".join(chr(ord("a") + place % 26) for place in range(128))
SMALL = [
    Section(5),
    DumpSram(ALPHABET),
    DumpDram(0x01020304, ALPHABET),
    Fence(),
    Delay(7),
    Cascade(0),
]
SMALL_BYTES = b"".join(
    [
        b"ENCS" + bytes.fromhex("03000000 01000000 00000000"),
        bytes.fromhex("08050000"),
        b"\6" + ALPHABET.encode() + bytes(3),
        bytes.fromhex("05000000 04030201") + ALPHABET.encode(),
        bytes.fromhex("07000000 09000000 07000000 0a000000 00000000"),
    ]
)


def test_commands_are_as_long_as_arms_structures() -> None:
    assert {row.name: 4 * row.words for row in INSTRUCTION_SET.commands} == SIZES_BYTES


def test_bytes_are_those_of_arms_headers() -> None:
    assert encode(SMALL) == SMALL_BYTES
    assert decode(SMALL_BYTES) == SMALL


def counted() -> Iterator[int]:
    """1 to 85 in each byte of a word, as the members of the C++ program's structures count."""
    return (0x01010101 * number for number in range(1, 86))


def extents(count: Iterator[int]) -> Shape:
    return next(count), next(count), next(count), next(count)


def numbered(
    count: Iterator[int], data_type: DataTypeCode, form: Format, location: Location
) -> TensorRecord:
    return TensorRecord(
        data_type=data_type,
        format=form,
        shape=extents(count),
        supertensor_shape=extents(count),
        supertensor_offset=extents(count),
        stripe_shape=extents(count),
        tile_bytes=next(count),
        dram_buffer_id=next(count),
        sram_offset_bytes=next(count),
        zero_point=-(next(count) & 0xFF),
        location=location,
    )


def test_structures_are_those_of_arms_headers_to_the_byte() -> None:
    """All members of the three largest commands, each another number."""
    count = counted()
    data = numbered(count, DataTypeCode.S8, Format.NHWC, Location.SRAM)
    weights = numbered(count, DataTypeCode.U8, Format.WEIGHT_STREAM, Location.DRAM)
    metadata = next(count)
    output = numbered(count, DataTypeCode.S8, Format.FCAF_WIDE, Location.SRAM)
    blocks = BlockConfigRecord(next(count), next(count))
    mce = MceRecord(
        stride_x=next(count),
        stride_y=next(count),
        pad_top=next(count),
        pad_left=next(count),
        uninterleaved_input_shape=extents(count),
        output_shape=extents(count),
        output_stripe_shape=extents(count),
        output_zero_point=-2,
        upsample=Upsample.TRANSPOSE,
        upsample_edge_row=UpsampleEdge.DROP,
        upsample_edge_column=UpsampleEdge.GENERATE,
        operation=MceOperation.FULLY_CONNECTED,
        algorithm=Algorithm.WINOGRAD,
        activation_min=-128,
        activation_max=127,
    )
    kernel = PleOperation.LEAKY_RELU
    ple = PleRecord(next(count), next(count), kernel, 0x1234, 5, 0xFEDC, 7)
    strategy = Strategy.STRATEGY_6
    stream = encode(
        [
            McePle(data, weights, metadata, output, strategy, blocks, mce, ple),
            PleOnly(2, data, weights, output, strategy, ple),
            SpaceToDepth(data, output, next(count), next(count), next(count)),
        ]
    )
    assert len(stream) == 852
    assert hashlib.sha256(stream).hexdigest() == (
        "657760afd25dbdf21e6f1bb9257b64f6a7d72b761d3fcab626e80d3cf78499c4"
    )


def test_what_a_fence_leaves_unset_comes_back() -> None:
    stream = HEADER + bytes.fromhex("077f0000")
    assert decode(stream) == [Fence()]
    assert encode_instructions(decode_instructions(stream)) == stream


@needs_golden
@pytest.mark.parametrize("compiled", compiled_networks(), ids=str)
def test_arms_streams(compiled: Compiled) -> None:
    program = read_program(compiled.encn, CAPABILITIES)
    assert encode(program.commands) == program.stream
    path = compiled.path("cmds.json")
    if path.exists():
        said = json.loads(path.read_text())
        assert [described(command) for command in program.commands] == said


STRATEGIES = {0: "0", 1: "1", 2: "3", 3: "4", 4: "6", 5: "7", 6: "X"}
UPSAMPLES = {0: "OFF", 1: "BILINEAR", 2: "NN", 3: "TRANSPOSE"}
OPERATIONS = {0: "CONV", 1: "DEPTHWISE", 2: "FC"}


def described(command: object) -> dict[str, Any]:
    """Say a command in the words of Arm's answers."""
    match command:
        case Convert():
            tensors = {"input": tensor(command.input), "output": tensor(command.output)}
            return {"op": "CONVERT", **tensors}
        case PleOnly():
            return {
                "op": "PLE_ONLY",
                "n": command.input_count,
                "in0": tensor(command.input0),
                "in1": tensor(command.input1),
                "output": tensor(command.output),
                "strategy": STRATEGIES[command.strategy],
                "ple": ple(command),
            }
        case McePle():
            return {
                "op": "MCE_PLE",
                "input": tensor(command.input),
                "weights": tensor(command.weights),
                "wmeta_buf": command.weight_metadata_buffer_id,
                "output": tensor(command.output),
                "strategy": STRATEGIES[command.strategy],
                "block": [command.block_config.width, command.block_config.height],
                "mce": mce(command),
                "ple": ple(command),
            }
        case _:
            raise AssertionError(command)


def tensor(record: TensorRecord) -> dict[str, Any]:
    return {
        "dtype": record.data_type.name,
        "fmt": record.format.name,
        "shape": list(record.shape),
        "super": list(record.supertensor_shape),
        "super_off": list(record.supertensor_offset),
        "stripe": list(record.stripe_shape),
        "tile": record.tile_bytes,
        "dram_buf": record.dram_buffer_id,
        "sram": record.sram_offset_bytes,
        "zp": record.zero_point,
        "loc": record.location.name,
    }


def mce(command: McePle) -> dict[str, Any]:
    record = command.mce
    return {
        "stride": [record.stride_x, record.stride_y],
        "pad_top": record.pad_top,
        "pad_left": record.pad_left,
        "uninterleaved": list(record.uninterleaved_input_shape),
        "out_shape": list(record.output_shape),
        "out_stripe": list(record.output_stripe_shape),
        "out_zp": record.output_zero_point,
        "upsample": UPSAMPLES[record.upsample],
        "edge": [record.upsample_edge_row, record.upsample_edge_column],
        "op": OPERATIONS[record.operation],
        "algo": record.algorithm.name,
        "act": [record.activation_min, record.activation_max],
    }


def ple(command: McePle | PleOnly) -> dict[str, Any]:
    record = command.ple
    pairs = [[record.multiplier0, record.shift0], [record.multiplier1, record.shift1]]
    return {
        "ce_sram": record.ce_sram,
        "ple_sram": record.ple_sram,
        "op": record.operation.name,
        "rescale": pairs,
    }


@given(streams(4))
@settings(max_examples=60)
def test_any_instructions_come_back(instructions: list[Instruction]) -> None:
    stream = encode_instructions(instructions)
    assert decode_instructions(stream) == instructions
    commands = decode(stream)
    assert decode(encode(commands)) == commands


@given(streams(2), st.data())
@settings(max_examples=150)
def test_a_damaged_stream_is_refused_or_another_stream(
    instructions: list[Instruction], data: st.DataObject
) -> None:
    stream = bytearray(encode_instructions(instructions))
    for place in data.draw(st.lists(st.integers(0, len(stream) - 1), max_size=3)):
        stream[place] = data.draw(st.integers(0, 255))
    damaged = bytes(stream[: data.draw(st.integers(0, len(stream)))])
    unpacked = decode_partial(damaged)
    if unpacked.stopped_by is None:
        assert encode_instructions(decode_instructions(damaged)) == damaged
    else:
        assert unpacked.stopped_by.code in {"E501", "E502", "E503", "E504", "E930", "E931", "E932"}
        with pytest.raises(MizzenError):
            decode(damaged)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            b"ENCS",
            "error[E930]: a command stream must start with ENCS and version 3.1.0; this one has 4 "
            "bytes\n  at   command at word 0\n"
            "  help Mizzen reads streams of driver stack 22.08 to 23.02",
        ),
        (
            b"ELF!" + HEADER[4:],
            "error[E930]: a command stream must start with ENCS and version 3.1.0; this one starts "
            "with 45 4c 46 21\n  at   command at word 0\n"
            "  help Mizzen reads streams of driver stack 22.08 to 23.02",
        ),
        (
            HEADER[:4] + bytes.fromhex("08000000 00000000 00000000"),
            "error[E930]: a command stream must start with ENCS and version 3.1.0; this one has "
            "version 8.0.0\n  at   command at word 0\n"
            "  help Mizzen reads streams of driver stack 22.08 to 23.02",
        ),
        (
            HEADER + b"\7\0\0",
            "error[E931]: a command stream must be whole words of 4 bytes, not 19 bytes\n"
            "  at   command at word 4",
        ),
        (
            HEADER + bytes.fromhex("07000000 0a000000 02000000 ffffffff"),
            "error[E932]: CASCADE must have no agents, not 2: their records are not commands\n"
            "  at   command at word 5\n"
            "  help compile the network without the experimental compiler",
        ),
        (
            HEADER + bytes.fromhex("02000000"),
            "error[E502]: 0x00000002 must start a command of Ethos-N command stream 3.1, but "
            "opcode 2 (SOFTMAX) is in no compiled network\n  at   command at word 4",
        ),
        (
            HEADER + bytes.fromhex("0b000000"),
            "error[E502]: 0x0000000b must start a command of Ethos-N command stream 3.1, but "
            "there is no opcode 11\n  at   command at word 4",
        ),
    ],
)
def test_what_is_no_stream(stream: bytes, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        decode(stream)
    assert caught.value.diagnostic.render() == message


def test_what_cannot_be_encoded() -> None:
    with pytest.raises(MizzenError, match="E932"):
        encode([Cascade(2)])
    with pytest.raises(MizzenError) as caught:
        encode([DumpSram("\N{SNOWMAN}")])
    assert caught.value.diagnostic.render() == (
        "error[E933]: filename must be at most 128 characters of Latin-1, not '\N{SNOWMAN}'"
    )
    with pytest.raises(MizzenError, match=r"E511.*type must be in 0\.\.255, not 256"):
        encode([Section(256)])


def test_the_reference_page_names_every_command() -> None:
    page = markdown(INSTRUCTION_SET)
    assert all(f"`{name}`" in page for name in SIZES_BYTES)
    assert "| | | `filename` | word 0, 1031:8 | 128 bytes |" in page
    assert "| | | `mce.activation_min` |" in page
