"""A user's own board: the same file by path, and what is wrong with one is said by key."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.boards import find_board, reading
from mizzen.diagnostics import MizzenError

TEXT = (reading.FOLDER / "corstone300.toml").read_text()


def refusal(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(MizzenError) as caught:
        find_board(str(path))
    return str(caught.value)


def test_a_board_of_ones_own_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace("irq = 56", "irq = 7").replace('"corstone300"', '"mine"'))
    board = find_board(str(path))
    assert (board.name, board.npu.irq) == ("mine", 7)


ENERGY = '[[energy]]\nof = "mac"\nvalue = 1.0\nerror = 2.0\nsource = "a trace"\n'


@pytest.mark.parametrize(
    ("text", "must"),
    [
        (ENERGY * 2, "energy[1].of must be there once, not 'mac'"),
        (ENERGY.replace("2.0", "0.5"), "energy[0].error must be "),
        (ENERGY.replace('"mac"', '"rom"'), "energy[0].of must be one of idle, mac, sram, flash, "),
        (ENERGY.replace("1.0", "0"), "energy[0].value must be "),
        (ENERGY.replace('source = "a trace"', ""), "energy[0].source must be "),
    ],
)
def test_a_figure_of_energy_has_a_unit_an_error_and_a_source(
    text: str, must: str, tmp_path: Path
) -> None:
    assert must in refusal(tmp_path, f"{TEXT}\n{text}")


CASES = [
    ("irq = 56", "irq = 480", "npu.irq must be a whole number of 0..479, not 480"),
    ("irq = 56", 'irq = "56"', "npu.irq must be a whole number of 0..479, not '56'"),
    ("irq = 56", "irq = true", "npu.irq must be a whole number of 0..479, not True"),
    ('kind = "cmsdk"', 'kind = "8250"', "uart.kind must be one of cmsdk, pl011, not '8250'"),
    ("writable = true", "writable = 1", "memory[0].writable must be true or false, not 1"),
    ("size_kib = 512", "size_kib = 513", "memory[0].size_kib must be a multiple of 4, not 513"),
    (
        'kind = "tcm"',
        'kind = "rom"',
        "memory[0].kind must be one of tcm, sram, flash, dram, not 'rom'",
    ),
    (
        'name = "ITCM"',
        'name = "I TCM"',
        "memory[0].name must be letters, digits and _, a letter first, not 'I TCM'",
    ),
    (
        "base = 0x1000_0000",
        "base = 0x1000_0010",
        "memory[0].base must be a multiple of 0x1000, not 0x10000010",
    ),
    (
        'code = "ITCM"',
        'code = "ROM"',
        "placement.code must be one of ITCM, BRAM, DTCM, SRAM, QSPI, DDR, not 'ROM'",
    ),
    (
        "regions = [3, 0, 1, 1, 1, 1, 1, 1]",
        "regions = [3, 0]",
        "memory_mode[0].regions must have 8 numbers, not 2",
    ),
    (
        'names = ["Shared_Sram"]',
        "names = []",
        "memory_mode[0].names must be a list of at least one, not []",
    ),
    (
        "[cpu]",
        "[[cpu]]",
        "cpu must be a table [cpu], not "
        "[{'core': 'cortex-m55', 'interrupts': 96, 'clock_hz': 250000...",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "said"), CASES, ids=[f"{case[0]} -> {case[1]}" for case in CASES]
)
def test_what_is_wrong_is_said_by_key(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, TEXT.replace(old, new, 1)) == f"error[E411]: mine.toml: {said}"


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, TEXT.replace("irq = 56", "irq = 56\nirk = 1")) == (
        "error[E412]: mine.toml: a key must be one of accelerators, alias, base, clock_hz, driver, "
        "irq, products, not npu.irk"
    )


def test_what_lies_at_one_address_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, TEXT.replace("base = 0x1100_0000", "base = 0x1000_1000")) == (
        "error[E413]: mine.toml: ITCM and BRAM must lie apart, and both have address 0x10001000"
    )


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "name = ").startswith(
        f"error[E410]: {tmp_path}/mine.toml must be a board's file in TOML: Invalid value"
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MizzenError) as caught:
        find_board(f"{tmp_path}/none.toml")
    assert str(caught.value) == (
        f"error[E410]: {tmp_path}/none.toml must be a board's file in TOML: "
        "No such file or directory"
    )


@given(
    st.integers(0, len(TEXT) - 1), st.sampled_from(['"', "=", "[", "]", "\n", "-1", "x", "\x00"])
)
def test_a_damaged_file_is_a_board_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, place: int, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(TEXT[:place] + text + TEXT[place + 1 :])
    with suppress(MizzenError):
        assert find_board(str(path)).memories
