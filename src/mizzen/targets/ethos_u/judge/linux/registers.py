"""The words of a stream as the kernel reads them, and the registers that they leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set

PAYLOAD = 0x4000
"""The bit of the low half of word 0 that says that a second word follows."""
RESERVED = 0x3C00
HALF = 0xFFFF
SIGN = 1 << 39
"""Strides of a transfer have 40 bits and a sign."""


@dataclass(frozen=True, slots=True)
class Word:
    """One command. `address` has 40 bits: of a command of two words, else 0."""

    at: int
    key: int
    parameter: int
    address: int
    name: str

    @property
    def length(self) -> int:
        """Return the second word, as lengths of weights and scales are read."""
        return self.address & 0xFFFF_FFFF


@cache
def _names(arch: Arch) -> Mapping[int, str]:
    return {command.key & HALF: command.name for command in instruction_set(arch).commands}


def words_of(stream: npt.NDArray[np.uint32], arch: Arch) -> Iterator[Word | int]:
    """Yield the commands of a stream, uint32 [words]; at last the word of one that is cut off."""
    values, names, at = stream.tolist(), _names(arch), 0
    while at < len(values):
        first = values[at]
        key, parameter = first & HALF, first >> 16
        if not key & PAYLOAD:
            yield Word(at, key, parameter, 0, names.get(key, ""))
            at += 1
        elif at + 1 == len(values):
            yield at
            return
        else:
            address = (first & 0xFF_0000) << 16 | values[at + 1]
            yield Word(at, key, parameter, address, names.get(key, ""))
            at += 2


class Registers:
    """The last command of each name; what was never set reads as 0, as in the kernel."""

    def __init__(self, arch: Arch) -> None:
        self.arch = arch
        self._last: dict[str, Word] = {}

    def write(self, word: Word) -> None:
        """Keep a command."""
        self._last[word.name] = word

    def has(self, name: str) -> bool:
        """Whether a command of that name was there."""
        return name in self._last

    def missing(self, *names: str) -> tuple[str, ...]:
        """Return those names that no command had."""
        return tuple(name for name in names if name not in self._last)

    def parameter(self, name: str) -> int:
        """Return bits 31:16 of word 0."""
        word = self._last.get(name)
        return 0 if word is None else word.parameter

    def address(self, name: str) -> int:
        """Return the 40 bits of an address, a length or a stride, without a sign."""
        word = self._last.get(name)
        return 0 if word is None else word.address

    def length(self, name: str) -> int:
        """Return the second word."""
        word = self._last.get(name)
        return 0 if word is None else word.length

    def signed(self, name: str) -> int:
        """Return the 40 bits of a transfer's stride."""
        bits = self.address(name)
        return bits - 2 * SIGN if bits & SIGN else bits
