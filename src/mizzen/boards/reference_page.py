"""The reference page of boards: those that are built in, with their sources."""

from __future__ import annotations

from mizzen.boards import keys
from mizzen.boards.board import Board
from mizzen.boards.missing import missing_keys
from mizzen.boards.reading import FOLDER, SUFFIX, board_names, find_board

KIB = 1024


def markdown() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Boards",
        "These boards are bundled. A board is a TOML file, with the source of each figure in its "
        "comments. Figures without a public source are left out, and asked for by name when they "
        'are needed (E441). `inherits = "NAME"` takes over another board, and your keys replace '
        "its keys.",
        "| board | processor | NPU | memories, KiB | not known for firmware |\n"
        "|---|---|---|---|---|\n" + "\n".join(_row(find_board(name)) for name in board_names()),
    ]
    parts += ["## Keys", keys.table()]
    for name in board_names():
        text = (FOLDER / f"{name}{SUFFIX}").read_text("utf-8").rstrip()
        parts += [f"## {name}", f"````toml\n{text}\n````"]
    return "\n\n".join(parts) + "\n"


def _row(board: Board) -> str:
    npu = ", ".join(board.accelerators or board.products)
    memories = ", ".join(f"{memory.name} {memory.size_bytes // KIB}" for memory in board.memories)
    missing = ", ".join(f"`{each.place}`" for each in missing_keys(board, board.modes[0]))
    link = f"[{board.name}](#{board.name})"
    return f"| {link}: {board.title} | {board.cpu.core} | {npu} | {memories} | {missing} |"
