"""The memories of an emulated board, and how the NPU reaches them."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.boards import Board
from mizzen.boards.board import Memory

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """One memory of the board and its bytes, uint8 `[size]`; page-aligned, and shared."""

    memory: Memory
    data: Bytes


NOTHING = np.zeros(0, np.uint8)


class GuestMemory:
    """All memories of a board, found by address in either security state.

    shared  bytes of memories that lie somewhere already, by their names

    The processor and the NPU share the bytes. A backend whose processor has its memory elsewhere
    overrides `fetch` and `store`, which are called before and after the NPU works.
    """

    def __init__(self, board: Board, shared: Mapping[str, Bytes] | None = None) -> None:
        held = shared or {}
        self.banks = tuple(
            Bank(memory, held[memory.name] if memory.name in held else _pages(memory.size_bytes))
            for memory in board.mapped
        )
        starts = [(base, bank) for bank in self.banks for base in bank.memory.bases]
        self._starts = sorted(starts, key=lambda start: start[0])
        self._bases = [start for start, _ in self._starts]

    def bank(self, address: int) -> tuple[Bank, int] | None:
        """Return the bank that an address lies in, and the offset there; None if in none."""
        index = bisect_right(self._bases, address) - 1
        if index < 0:
            return None
        base, bank = self._starts[index]
        offset = address - base
        return (bank, offset) if offset < bank.memory.size_bytes else None

    def rest(self, address: int) -> Bytes:
        """Return the bytes from an address to the end of its memory, as the NPU reaches them.

        Nothing where there is no memory, or none that the NPU's ports reach.
        """
        located = self.bank(address)
        if located is None or not located[0].memory.npu:
            return NOTHING
        bank, offset = located
        return bank.data[offset:]

    def read(self, address: int, size_bytes: int) -> bytes | None:
        """Return bytes as the processor sees them; None where they are not all memory."""
        located = self.bank(address)
        if located is None or located[1] + size_bytes > located[0].memory.size_bytes:
            return None
        bank, offset = located
        self.fetch(address, size_bytes)
        return bank.data[offset : offset + size_bytes].tobytes()

    def fetch(self, address: int, size_bytes: int) -> None:
        """Make the bytes here those that the processor has."""

    def store(self, address: int, size_bytes: int) -> None:
        """Show the processor the bytes that are here."""


def _pages(size_bytes: int) -> Bytes:
    """Return zeroed bytes on pages of their own, of which untouched ones cost nothing."""
    return np.frombuffer(mmap.mmap(-1, size_bytes), np.uint8)
