"""Encode and decode command streams of version 3.1, to typed commands or to instructions.

A stream is the tag "ENCS", the version as three 32-bit words, and commands to the end.

Ref: Ethos-N driver stack 23.02, `CommandStreamBuffer.hpp`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import accumulate
from typing import cast

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, fail
from mizzen.isa import Instruction, InstructionSet, Unpack
from mizzen.targets.ethos_n.commands_rows import ROWS, Struct, record_of, values_of
from mizzen.targets.ethos_n.commands_values import Command

TAG = b"ENCS"
VERSION = (3, 1, 0)
HEADER = TAG + struct.pack("<3I", *VERSION)
HEADER_WORDS = len(HEADER) // 4
_SOFTMAX = 2


def _explain(key: int) -> str:
    if key == _SOFTMAX:
        return "opcode 2 (SOFTMAX) is in no compiled network"
    return f"there is no opcode {key}"


INSTRUCTION_SET = InstructionSet(
    "Ethos-N command stream 3.1", tuple(row.command for row in ROWS), _explain
)
_ROW_OF_NAME = {row.command.name: row for row in ROWS}
_ROW_OF_RECORD = {row.struct.record: row for row in ROWS}


def decode(stream: bytes) -> list[Command]:
    """Decode a stream to typed commands.

    E930 for a header of another format, E931 for part of a word at the end, E932 for a cascade of
    agents, E501 to E504 with the word offset for what is no command.
    """
    return [typed(instruction) for instruction in decode_instructions(stream)]


def decode_instructions(stream: bytes) -> list[Instruction]:
    """Decode a stream to instructions, whose word offsets count from the header's first word."""
    unpacked = decode_partial(stream)
    if unpacked.stopped_by is not None:
        raise MizzenError(unpacked.stopped_by)
    return unpacked.instructions


def decode_partial(stream: bytes) -> Unpack:
    """Decode as far as the stream is good, for listings of broken streams."""
    try:
        words = _words(stream)
    except MizzenError as error:
        return Unpack([], error.diagnostic)
    unpacked = INSTRUCTION_SET.decode_partial(words, HEADER_WORDS)
    for place, instruction in enumerate(unpacked.instructions):
        if instruction.values.get("agents"):
            return Unpack(unpacked.instructions[:place], _cascade(instruction))
    return unpacked


def encode(commands: Iterable[Command]) -> bytes:
    """Return the stream of typed commands, header included; E511 for a value that does not fit."""
    return encode_instructions(untyped(command) for command in commands)


def offsets(commands: Iterable[Command]) -> list[int]:
    """Return the byte of their stream at which each of some commands begins."""
    sizes = (4 * _ROW_OF_RECORD[type(command)].command.words for command in commands)
    return list(accumulate(sizes, initial=len(HEADER)))[:-1]


def encode_instructions(instructions: Iterable[Instruction]) -> bytes:
    """Return the stream of instructions, header included.

    E511 and E512 for a value that does not fit or is missing, E932 for a cascade of agents.
    """
    listed = list(instructions)
    for instruction in listed:
        if instruction.values.get("agents"):
            raise MizzenError(_cascade(instruction))
    return HEADER + INSTRUCTION_SET.encode(listed).astype("<u4").tobytes()


def typed(instruction: Instruction) -> Command:
    """Return an instruction as the typed command."""
    # The row's structure makes the record that it names, which is a command.
    return cast("Command", record_of(struct_of(instruction), instruction.values))


def struct_of(instruction: Instruction) -> Struct:
    """Return the structure that an instruction's fields come from."""
    return _ROW_OF_NAME[instruction.name].struct


def untyped(command: Command) -> Instruction:
    """Return a typed command as an instruction; E511 and E933 for a value that does not fit."""
    row = _ROW_OF_RECORD[type(command)]
    values = dict(values_of(row.struct, command))
    if not row.struct.members:
        values = {item.name: 0 for item in row.command.fields}
    return row.command(**values)


def _words(stream: bytes) -> npt.NDArray[np.uint32]:
    if stream[: len(HEADER)] != HEADER:
        raise fail(
            "E930",
            f"a command stream must start with {TAG.decode()} and version "
            f"{'.'.join(map(str, VERSION))}; this one {_said(stream)}",
            origin=Origin(command=0),
            help="Mizzen reads streams of driver stack 22.08 to 23.02",
        )
    if len(stream) % 4:
        raise fail(
            "E931",
            f"a command stream must be whole words of 4 bytes, not {len(stream)} bytes",
            origin=Origin(command=len(stream) // 4),
        )
    return np.frombuffer(stream, "<u4")


def _said(stream: bytes) -> str:
    if len(stream) < len(HEADER):
        return f"has {len(stream)} bytes"
    if stream[:4] != TAG:
        return f"starts with {stream[:4].hex(' ')}"
    return f"has version {'.'.join(map(str, struct.unpack_from('<3I', stream, 4)))}"


def _cascade(instruction: Instruction) -> Diagnostic:
    agents = instruction.values["agents"]
    return fail(
        "E932",
        f"CASCADE must have no agents, not {agents}: their records are not commands",
        origin=Origin(command=instruction.offset_words),
        help="compile the network without the experimental compiler",
    ).diagnostic
