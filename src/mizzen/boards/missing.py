"""What a firmware of its own needs of a board, and the board's file does not say: all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.boards.board import OF_BOARD, Board, Memory, MemoryMode, Role
from mizzen.boards.keys import key
from mizzen.diagnostics import fail


@dataclass(frozen=True, slots=True)
class Missing:
    """A key that the file does not have.

    place  the key's, as ``npu.irq``
    of     what it is said of, where a file has several such tables
    line   of a file that says it
    """

    place: str
    of: str
    line: str

    def __str__(self) -> str:
        row = key(self.place)
        of = f" of {self.of}" if self.of else ""
        return f"{self.place}{of} ({row.what}: {row.given})"


def require_firmware(board: Board, mode: MemoryMode) -> None:
    """Refuse a board whose file does not say what firmware needs. E441, which names every key."""
    _require(board, tuple(missing_keys(board, mode)))


def require_registers(board: Board) -> None:
    """Refuse a board whose file does not say where firmware that is built finds the NPU. E441."""
    _require(board, tuple(_missing_registers(board)))


def _require(board: Board, missing: tuple[Missing, ...]) -> None:
    if not missing:
        return
    raise fail(
        "E441",
        f"firmware for {board.name} needs {', '.join(map(str, missing))}, which the board's file "
        "does not say",
        help=f"{_command(board, missing)}, with your values, and give --board mine.toml",
    )


def missing_keys(board: Board, mode: MemoryMode) -> Iterator[Missing]:
    """Return every key that firmware needs and the board's file does not have."""
    yield from _missing_registers(board)
    for role in OF_BOARD:
        if role not in board.places:
            name = f"placement.{role.value}"
            yield Missing(name, "", f'{name} = "MEMORY"')
    for memory in _used(board, mode):
        if memory.address is None:
            line = f'memory = [{{name = "{memory.name}", base = 0xN}}]'
            yield Missing("memory.base", memory.name, line)


def _missing_registers(board: Board) -> Iterator[Missing]:
    if board.cpu.external is None:
        yield Missing("cpu.interrupts", "", "cpu.interrupts = N")
    if board.npu.address is None:
        yield Missing("npu.base", "", "npu.base = 0xN")
    if board.npu.interrupt is None:
        yield Missing("npu.irq", "", "npu.irq = N")


def _used(board: Board, mode: MemoryMode) -> Iterator[Memory]:
    """Return the memories that firmware lies in, in the board's order."""
    roles = [role for role in Role if role not in OF_BOARD or role in board.places]
    names = {board.memory(role, mode).name for role in roles}
    return (memory for memory in board.memories if memory.name in names)


def _command(board: Board, missing: tuple[Missing, ...]) -> str:
    """Return a command that writes a file with the keys."""
    head = (f'inherits = "{board.name}"', 'name = "mine"')
    tables = [each.line for each in missing if not each.line.startswith("memory")]
    memories = [each.line[len("memory = [") : -1] for each in missing if each.line not in tables]
    lines = [*head, *tables, *([f"memory = [{', '.join(memories)}]"] if memories else [])]
    return f"printf '%s\\n' {shlex.join(lines)} > mine.toml"
