"""What is known of boards, for the verb `targets`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mizzen.cli.layout import fields, size, table

if TYPE_CHECKING:
    from mizzen.boards import Board
    from mizzen.boards.board import Energy, Memory, Npu

NOT_KNOWN = "not known"


def boards_text(*, width: int) -> str:
    """List the boards that are built in."""
    from mizzen.boards import board_names, find_board

    lines = [
        (board.name, board.cpu.core, ", ".join(board.accelerators or board.products), board.title)
        for board in map(find_board, board_names())
    ]
    headings = ("name", "processor", "NPU", "board")
    text = table(lines, width=width, headings=headings)
    return f"Boards (--board; `mizzen targets --board NAME` shows one)\n{text}"


def board_text(board: Board, *, width: int) -> str:
    """Show a board: processor, NPUs, memories, memory modes, and what is not known."""
    memories = [
        (memory.name, _hex(memory.address), size(memory.size_bytes), memory.kind.value, _by(memory))
        for memory in board.memories
    ]
    modes = [
        (", ".join(mode.names), *(name for name in mode.places.values())) for mode in board.modes
    ]
    parts = [
        f"{board.title}\n{fields(list(_facts(board)), width=width)}",
        "Memories\n"
        + table(memories, width=width, headings=("name", "address", "size", "kind", "NPU")),
        "Memory modes\n"
        + table(modes, width=width, headings=("name", "model", "arena", "fast memory")),
    ]
    return "\n\n".join(parts)


def board_data(board: Board) -> dict[str, object]:
    """Return a board as JSON-ready data."""
    return {
        "board": board.name,
        "title": board.title,
        "cpu": {"core": board.cpu.core, "clock_hz": board.cpu.fastest},
        "npus": [
            {
                "accelerators": list(npu.accelerators or npu.products),
                "base": npu.address,
                "irq": npu.interrupt,
                "clock_hz": npu.clock_hz,
            }
            for npu in board.npus
        ],
        "memories": [
            {
                "name": memory.name,
                "address": memory.address,
                "size_bytes": memory.size_bytes,
                "kind": memory.kind.value,
                "npu": memory.npu,
            }
            for memory in board.memories
        ],
        "memory_modes": [
            {"names": list(mode.names), **{role.value: at for role, at in mode.places.items()}}
            for mode in board.modes
        ],
        "energy": [_energy_data(each) for each in board.energy] or None,
        "missing": _missing(board),
    }


def _facts(board: Board) -> Iterator[tuple[str, str]]:
    yield "name", board.name
    yield "processor", f"{board.cpu.core}, {_clock(board.cpu.fastest)}"
    for npu in board.npus:
        yield "NPU", _npu(npu)
    if board.sdk is not None:
        yield "software", f"{board.sdk.title}, {board.sdk.source}"
    yield from _energy(board)
    if missing := _missing(board):
        yield "not known", ", ".join(missing)


def _energy(board: Board) -> Iterator[tuple[str, str]]:
    if not board.energy:
        yield "energy", "no figures with a source are known, so that none is told"
        return
    figures = (
        f"{each.of.value} {each.value:g} {each.of.unit} (within {each.error:g} times)"
        for each in board.energy
    )
    sources = dict.fromkeys(each.source for each in board.energy)
    yield "energy", f"{', '.join(figures)}; {'; '.join(sources)}"


def _energy_data(energy: Energy) -> dict[str, object]:
    return {
        "of": energy.of.value,
        "value": energy.value,
        "unit": energy.of.unit,
        "error": energy.error,
        "source": energy.source,
    }


def _missing(board: Board) -> list[str]:
    from mizzen.boards import missing_keys

    return [each.place for each in missing_keys(board, board.modes[0])]


def _npu(npu: Npu) -> str:
    names = ", ".join(npu.accelerators or npu.products)
    irq = NOT_KNOWN if npu.interrupt is None else npu.interrupt
    return f"{names} at {_hex(npu.address)}, interrupt {irq}, clock {_clock(npu.clock_hz)}"


def _hex(address: int | None) -> str:
    return NOT_KNOWN if address is None else f"{address:#010x}"


def _clock(hertz: int | None) -> str:
    return NOT_KNOWN if hertz is None else f"{hertz / 1e6:g} MHz"


def _by(memory: Memory) -> str:
    return "yes" if memory.npu else "no"
