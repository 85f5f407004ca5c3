"""The reference page of boards: those that are built in, with their sources."""

from __future__ import annotations

from mizzen.boards.board import Board
from mizzen.boards.reading import FOLDER, SUFFIX, board_names, find_board

KIB = 1024


def markdown() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Boards",
        "A board is a TOML file, whose comments say where each figure comes from. What no public "
        "document says is left out; a board without addresses answers whether something fits, and "
        'firmware cannot be made for it. `inherits = "NAME"` takes over another board.',
        "| board | processor | NPU | memories, KiB | firmware |\n|---|---|---|---|---|\n"
        + "\n".join(_row(find_board(name)) for name in board_names()),
    ]
    for name in board_names():
        text = (FOLDER / f"{name}{SUFFIX}").read_text("utf-8").rstrip()
        parts += [f"## {name}", f"```toml\n{text}\n```"]
    return "\n\n".join(parts) + "\n"


def _row(board: Board) -> str:
    npu = ", ".join(board.npu.accelerators or board.npu.products)
    memories = ", ".join(f"{memory.name} {memory.size_bytes // KIB}" for memory in board.memories)
    firmware = "yes" if board.places else "no"
    link = f"[{board.name}](#{board.name})"
    return f"| {link}: {board.title} | {board.cpu.core} | {npu} | {memories} | {firmware} |"
