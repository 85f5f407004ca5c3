"""Encode and decode command streams of Ethos-U.

A stream is a list of commands of one or two 32-bit words. Word 0 holds the opcode in bits 9:0,
zeros in bits 13:10, control in bits 15:14 (0: no payload, 1: a payload word follows, with opcodes
of their own) and a parameter in bits 31:16. Registers keep their value from one operation to the
next, so compilers leave out settings that change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from mizzen.isa import Command, Instruction, InstructionSet, Kind, Unpack
from mizzen.targets.ethos_u.machine.commands_rows import ROWS
from mizzen.targets.ethos_u.machine.commands_values import ALL, U55_U65, U85, Arch

__all__ = [
    "ALL",
    "U55_U65",
    "U85",
    "Arch",
    "Command",
    "Instruction",
    "InstructionSet",
    "Kind",
    "Unpack",
    "decode",
    "decode_partial",
    "encode",
    "instruction_set",
]


@cache
def instruction_set(arch: Arch) -> InstructionSet:
    """Return the commands of an architecture; made once."""
    commands = tuple(command for archs, command in ROWS if arch in archs)
    return InstructionSet(arch.value, commands, explain=_explain)


def _explain(key: int) -> str:
    """Say why the low 16 bits of word 0 are no command."""
    opcode, zeros, control = key & 0x3FF, key >> 10 & 0xF, key >> 14
    if zeros:
        return f"bits 13:10 must be zero, not {zeros:#x}"
    if control > 1:
        return f"control (bits 15:14) must be 0 or 1, not {control}"
    return f"there is no opcode {opcode:#05x} with control {control}"


def decode(words: npt.NDArray[np.uint32], arch: Arch) -> list[Instruction]:
    """Decode a stream, uint32 [words].

    E501 to E504 say at which word the stream is not a stream of `arch`, and why.
    """
    return instruction_set(arch).decode(words)


def decode_partial(words: npt.NDArray[np.uint32], arch: Arch) -> Unpack:
    """Decode the good prefix of a stream, uint32 [words]; returns the diagnostic that ended it."""
    return instruction_set(arch).decode_partial(words)


def encode(instructions: Iterable[Instruction], arch: Arch) -> npt.NDArray[np.uint32]:
    """Encode to uint32 [words]; E511 to E513 name the command, field, value and range."""
    return instruction_set(arch).encode(instructions)
