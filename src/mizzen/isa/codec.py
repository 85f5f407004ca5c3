"""Encode and decode streams of 32-bit words by a table of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, fail
from mizzen.isa.command import Command, Instruction


@dataclass(frozen=True, slots=True)
class Unpack:
    """The good prefix of a stream, and why decoding stopped, if it stopped before the end."""

    instructions: list[Instruction]
    stopped_by: Diagnostic | None


def _no_such_key(key: int) -> str:
    return f"key {key:#06x} is no command"


@dataclass(frozen=True, slots=True, eq=False)
class InstructionSet:
    """All commands of one machine; `explain` puts into words why a key is not one of them."""

    name: str
    commands: tuple[Command, ...]
    explain: Callable[[int], str] = _no_such_key
    key_mask: int = field(init=False, repr=False)
    _by_key: dict[int, Command] = field(init=False, repr=False)
    _by_name: dict[str, Command] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_key: dict[int, Command] = {}
        for command in self.commands:
            if (twin := by_key.setdefault(command.key, command)) is not command:
                raise ValueError(f"{self.name}: {command.name} has the key of {twin.name}")
        widths = {command.key_width for command in self.commands}
        if len(widths) != 1:
            raise ValueError(f"{self.name}: commands must have keys of one width, not {widths}")
        by_name = {command.name: command for command in self.commands}
        if len(by_name) != len(self.commands):
            raise ValueError(f"{self.name}: two commands have the same name")
        object.__setattr__(self, "key_mask", (1 << widths.pop()) - 1)
        object.__setattr__(self, "_by_key", by_key)
        object.__setattr__(self, "_by_name", by_name)

    def __getitem__(self, name: str) -> Command:
        """Return a command by name; E513 if this machine has no command of that name."""
        command = self._by_name.get(name)
        if command is None:
            raise fail("E513", f"{self.name} has no command {name}")
        return command

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def decode(self, words: npt.NDArray[np.uint32]) -> list[Instruction]:
        """Decode a whole stream, uint32 [words]; E501 to E504 with the word offset if it is bad."""
        return list(self._walk(words))

    def decode_partial(self, words: npt.NDArray[np.uint32], start: int = 0) -> Unpack:
        """Decode from word `start` as far as the stream is good, for listings of broken streams."""
        instructions: list[Instruction] = []
        try:
            for instruction in self._walk(words, start):
                instructions.append(instruction)
        except MizzenError as error:
            return Unpack(instructions, error.diagnostic)
        return Unpack(instructions, None)

    def _walk(self, words: npt.NDArray[np.uint32], start: int = 0) -> Iterator[Instruction]:
        stream: list[int] = words.tolist()
        by_key = self._by_key
        key_mask = self.key_mask
        total = len(stream)
        known: dict[int, dict[str, int]] = {}  # streams say the same many times
        at = start
        while at < total:
            command_bits = stream[at]
            command = by_key.get(command_bits & key_mask)
            if command is None:
                raise self._unknown(command_bits, at)
            following = at + command.words
            if following > total:
                raise self._truncated(command, at, total)
            for place in range(1, command.words):
                command_bits |= stream[at + place] << 32 * place
            if command_bits not in known:
                known[command_bits] = command.unpack(command_bits, at)
            yield Instruction(command, known[command_bits], at)
            at = following

    def _unknown(self, word: int, at: int) -> MizzenError:
        reason = self.explain(word & self.key_mask)
        message = f"{word:#010x} must start a command of {self.name}, but {reason}"
        return fail("E502", message, origin=Origin(command=at))

    def _truncated(self, command: Command, at: int, total: int) -> MizzenError:
        message = (
            f"{command.name} must have {command.words} words, "
            f"but the stream ends after {total - at} of them"
        )
        return fail("E501", message, origin=Origin(command=at))

    def encode(self, instructions: Iterable[Instruction]) -> npt.NDArray[np.uint32]:
        """Encode to uint32 [words]; E511 to E513 if a value or a command does not fit."""
        words: list[int] = []
        for instruction in instructions:
            command = instruction.command
            known = self._by_name.get(command.name)
            if known is not command and known != command:
                raise fail("E513", f"{self.name} has no command {command.name} of this form")
            packed = command.pack(instruction.values)
            words += _split(packed, command.words)
        return np.array(words, dtype=np.uint32)


def _split(packed: int, count: int) -> Sequence[int]:
    return [packed >> 32 * place & 0xFFFFFFFF for place in range(count)]
