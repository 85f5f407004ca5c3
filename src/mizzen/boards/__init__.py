"""Boards as data: one TOML file a board, read into plain values, and the C sources made of them.

A board's facts (memories, the NPU's place and interrupt, console, ports) are written once, in
`corstone300.toml` and its like, each with its source. From them come the header `board_config.h`
and the linker script that firmware is built with, and the memory map that firmware is emulated
on: all three agree because none of them holds a number of its own. A board of a user's own is the
same file, given by its path.

It must not know compilers, artifacts, simulators or emulators: who needs a board asks for it.
"""

from mizzen.boards.board import Board, Measured, MemoryKind, MemoryMode, Role, Sdk, UartKind
from mizzen.boards.header import board_header
from mizzen.boards.linker_script import linker_script
from mizzen.boards.measured import measured_file
from mizzen.boards.missing import missing_keys, require_registers
from mizzen.boards.reading import board_names, find_board
from mizzen.boards.sdk_header import sdk_header

__all__ = [
    "Board",
    "Measured",
    "MemoryKind",
    "MemoryMode",
    "Role",
    "Sdk",
    "UartKind",
    "board_header",
    "board_names",
    "find_board",
    "linker_script",
    "measured_file",
    "missing_keys",
    "require_registers",
    "sdk_header",
]
