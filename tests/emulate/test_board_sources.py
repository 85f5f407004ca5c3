"""The board's sources: two compilers have nothing to say about them, for any board."""

from __future__ import annotations

from pathlib import Path

import pytest

from mizzen.boards import board_names, find_board, missing_keys

from .compilers import BOARD, CLANG, FIRMWARE, GCC, check, configure, need

SOURCES = sorted(BOARD.glob("*.c"))
BOARDS = [find_board(name) for name in board_names()]
WHOLE = [board.name for board in BOARDS if not list(missing_keys(board, board.modes[0]))]
"""Boards that say all that firmware needs."""


@pytest.mark.parametrize("compiler", [GCC, CLANG])
@pytest.mark.parametrize("name", WHOLE)
def test_sources_are_clean(compiler: str, name: str, tmp_path: Path) -> None:
    need(compiler)
    board = find_board(name)
    configure(tmp_path, board, board.npu.products[-1])
    for core in ("m33", "m55"):
        for source in SOURCES:
            assert check(compiler, tmp_path, core, source) == "", source.name


def test_the_other_consoles_are_clean(tmp_path: Path) -> None:
    need(GCC)
    configure(tmp_path, find_board("corstone300"), "ethos-u55-128")
    source = BOARD / "board.c"
    assert check(GCC, tmp_path, "m33", source, ["-DBOARD_CONSOLE_SEMIHOSTING"]) == ""
    header = tmp_path / "board_config.h"
    header.write_text(header.read_text().replace("BOARD_UART_CMSDK", "BOARD_UART_PL011"))
    assert check(GCC, tmp_path, "m33", source) == ""


def test_there_are_sources() -> None:
    assert [path.name for path in SOURCES] == ["board.c", "memory.c", "startup.c"]
    assert FIRMWARE.is_dir()
