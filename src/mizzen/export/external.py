"""Weights, or the whole model, as a file that lies apart from the firmware: where, and how large.

Firmware is linked below its address, so that nothing else comes to lie there. What the file holds
is another runtime's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from mizzen.boards import Board, Role
from mizzen.boards.board import Memory
from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    from mizzen.boards import Sdk

ALIGNMENT_BYTES = 16
"""Of everything in it that the NPU or a kernel reads in place."""


class Apart(Enum):
    """What of a network lies apart; the value is the user's word."""

    CONSTANTS = "constants"
    """Weights and constants; the firmware has command streams and tables."""
    MODEL = "model"
    """All of it; the firmware has the runtime alone."""

    @property
    def file_name(self) -> str:
        """The name of the file in a project."""
        return f"network_{self.value}.bin"


@dataclass(frozen=True, slots=True)
class External:
    """What is asked for.

    address  where the file will lie; None for the upper half of the memory that models lie in, or
             where the board's software wants a model
    """

    apart: Apart
    address: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file lies, and the bytes that there are for it: of later versions too."""

    address: int
    room_bytes: int


ROOM_IN_UNKNOWN = 2
"""A file may become so many times as large where the board's file does not say what memory it lies
in."""


def place_of(
    board: Board, mode: str, external: External, sdk: Sdk | None, size_bytes: int
) -> Place:
    """Return where a file of some bytes lies on a board.

    E826 for an address that is in no memory of the board, or not aligned, and where there is none
    for the software of a vendor, which places memory itself.
    """
    address = external.address
    if address is None and sdk is not None:
        address = sdk.model_address
        if address is None:
            raise _wrong(
                f"{sdk.title} places memory itself, and no address is given",
                "--external-address ADDRESS: flash that its linker script keeps free",
            )
    if address is None:
        memory = board.memory(Role.MODEL, board.mode(mode))
        address = memory.base + memory.size_bytes // 2
    memory = _memory_at(board, address)
    if memory is None and sdk is not None and not address % ALIGNMENT_BYTES:
        return Place(address, ROOM_IN_UNKNOWN * size_bytes)
    if memory is None or address % ALIGNMENT_BYTES:
        raise _wrong(f"{address:#x} came", _memories(board))
    return Place(address, memory.base + memory.size_bytes - address)


def _memory_at(board: Board, address: int) -> Memory | None:
    inside = (each for each in board.mapped if 0 <= address - each.base < each.size_bytes)
    return next(inside, None)


def _memories(board: Board) -> str:
    spans = (
        f"{memory.name} {memory.base:#010x} to {memory.base + memory.size_bytes:#010x}"
        for memory in board.mapped
    )
    return f"memories of {board.name}: {', '.join(spans)}"


def _wrong(came: str, help: str) -> MizzenError:
    return fail(
        "E826",
        f"a file apart from the firmware must have an address in a memory of the board, a multiple "
        f"of {ALIGNMENT_BYTES}; {came}",
        rule="docs/how-to/update-the-model.md",
        help=help,
    )


def below(board: Board, place: Place) -> Board:
    """Return a board whose memory ends where the file begins, for what is linked."""
    memories = tuple(
        replace(each, size_bytes=place.address - each.base)
        if each.address is not None and 0 <= place.address - each.base < each.size_bytes
        else each
        for each in board.memories
    )
    return replace(board, memories=memories)


def require_room(place: Place, external: External, size_bytes: int) -> None:
    """Refuse a file that is larger than the room that there is: E827."""
    if size_bytes > place.room_bytes:
        raise fail(
            "E827",
            f"{external.apart.file_name} must fit the {place.room_bytes} bytes from "
            f"{place.address:#010x} to the end of its memory, and has {size_bytes}",
            rule="docs/how-to/update-the-model.md",
            help="give a lower address with --external-address, or export for a board with more "
            "memory",
        )
