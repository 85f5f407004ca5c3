"""Boards that inherit another: what they say replaces what that one says, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from mizzen.boards import Measured, find_board, linker_script, measured_file
from mizzen.boards.board import MeasuredMemory
from mizzen.diagnostics import MizzenError


def read(tmp_path: Path, text: str, name: str = "mine.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["my board", "_slow", "x" * 80, 'a"b'])
def test_a_measured_board_is_read_again_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    folder = tmp_path / 'a "b" \\ c'
    folder.mkdir()
    parent = read(folder, 'inherits = "corstone300"\nname = "mine"', "parent.toml")
    flash = MeasuredMemory("OffChipFlash", 0.4, 150, 0)
    measured = Measured("ethos-u55-128", "Ethos_U55_High_End_Embedded", "a log, " * 1000, (flash,))
    text = measured_file(str(parent), name, "T" * 100 + ", measured", measured)
    board = find_board(str(read(tmp_path, text)))
    assert board.measured is not None
    assert board.measured.memories == (flash,)


def test_a_board_inherits_one_that_is_built_in(tmp_path: Path) -> None:
    text = """
        inherits = "corstone300"
        name = "mine"
        [npu]
        irq = 7
        accelerators = ["ethos-u55-128"]
        clock_hz = 250_000_000
        driver = "0.16.0"
        [[memory]]
        name = "SRAM"
        size_kib = 1024
        [[memory_mode]]
        names = ["Sram_Only"]
        model = "QSPI"
    """
    board, parent = find_board(str(read(tmp_path, text))), find_board("corstone300")
    assert (board.name, board.title) == ("mine", parent.title)
    assert (board.npu.irq, board.npu.base) == (7, parent.npu.base)
    assert (board.npu.clock_hz, board.npu.driver) == (250_000_000, "0.16.0")
    sizes = {row.name: row.size_bytes for row in board.memories}
    assert sizes == {row.name: row.size_bytes for row in parent.memories} | {"SRAM": 1 << 20}
    places = [mode.places for mode in board.modes]
    assert [mode.names for mode in board.modes] == [mode.names for mode in parent.modes]
    assert places[1] != parent.modes[1].places
    assert [places[0], places[2]] == [parent.modes[0].places, parent.modes[2].places]
    assert "LENGTH = 0x100000" in linker_script(board)


def test_a_board_inherits_a_file_beside_it(tmp_path: Path) -> None:
    read(tmp_path, 'inherits = "himax_we2"\nname = "one"', "one.toml")
    path = read(tmp_path, 'inherits = "one.toml"\ntitle = "Two"', "two.toml")
    board = find_board(str(path))
    assert (board.name, board.title, board.cpu.core) == ("one", "Two", "cortex-m55")


def test_a_memory_of_ones_own_comes_behind_the_others(tmp_path: Path) -> None:
    text = """
        inherits = "himax_we2"
        name = "mine"
        [[memory]]
        name = "PSRAM"
        size_kib = 8192
        kind = "dram"
        writable = true
        npu = true
    """
    board = find_board(str(read(tmp_path, text)))
    assert [row.name for row in board.memories] == ["ITCM", "DTCM", "SRAM", "PSRAM"]


def refusal(path: Path) -> str:
    with pytest.raises(MizzenError) as caught:
        find_board(str(path))
    return str(caught.value)


def test_what_is_wrong_with_a_parent_is_said(tmp_path: Path) -> None:
    assert refusal(read(tmp_path, "inherits = 3")) == (
        "error[E411]: mine.toml: inherits must be the name or the file of a board"
    )
    assert refusal(read(tmp_path, 'inherits = "corstone3"')).startswith("error[E414]")
    assert refusal(read(tmp_path, 'inherits = "nothing.toml"')).startswith("error[E410]")


def test_boards_that_inherit_one_another_are_refused(tmp_path: Path) -> None:
    read(tmp_path, 'inherits = "two.toml"', "one.toml")
    path = read(tmp_path, 'inherits = "one.toml"', "two.toml")
    assert refusal(path) == (
        "error[E443]: two.toml: boards must inherit at most 8 others, one of the other\n"
        "  help do any of them inherit one another?"
    )


def test_an_accelerator_of_another_product_is_refused(tmp_path: Path) -> None:
    text = 'inherits = "himax_we2"\n[npu]\naccelerators = ["ethos-u65-256"]'
    assert refusal(read(tmp_path, text)) == (
        "error[E411]: mine.toml: npu.accelerators must be of ethos-u55, not 'ethos-u65-256'"
    )
