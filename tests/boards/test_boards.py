"""Boards that are built in: read, whole, and the same in header and linker script."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mizzen.boards import (
    Board,
    Role,
    board_header,
    board_names,
    find_board,
    linker_script,
    missing_keys,
    reading,
)
from mizzen.boards.file_format import BoardKeys
from mizzen.boards.keys import KEYS
from mizzen.diagnostics import MizzenError
from mizzen.documents.checking import keys_of, section_in
from mizzen.documents.model import Section
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

EVERY = [find_board(name) for name in board_names()]
BOARDS = [board for board in EVERY if not list(missing_keys(board, board.modes[0]))]
"""Those that say all that firmware needs; what the others leave open is asked for."""


def macros(board: Board, product: str, mode: str) -> dict[str, int | str]:
    text = board_header(board, product, mode)
    found = re.findall(r"^#define (BOARD_\w+) (\S+)$", text, re.M)
    return {
        name: int(value.rstrip("u"), 0) if value[0].isdigit() else value for name, value in found
    }


def test_the_boards_are_these() -> None:
    assert board_names() == (
        "alif_ensemble_e7", "alif_ensemble_e7_he", "alif_ensemble_e8", "corstone300",
        "corstone310", "corstone320", "grove_vision_ai_v2", "himax_we2", "infineon_pse84",
        "nuvoton_m55m1", "nxp_imx93", "openmv_ae3", "renesas_ra8p1",
    )  # fmt: skip
    left_open = [board.name for board in EVERY if board not in BOARDS]
    assert left_open == ["infineon_pse84", "renesas_ra8p1"]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("ra8p1", "renesas_ra8p1"),
        ("pse84", "infineon_pse84"),
        ("imx93", "nxp_imx93"),
        ("m55m1", "nuvoton_m55m1"),
    ],
)
def test_boards_have_short_names(alias: str, name: str) -> None:
    assert find_board(alias) == find_board(name)


ACCELERATORS_OF = {
    "alif_ensemble_e7": ("ethos-u55-256",),
    "alif_ensemble_e7_he": ("ethos-u55-128",),
    "alif_ensemble_e8": ("ethos-u85-256", "ethos-u55-256"),
    "grove_vision_ai_v2": ("ethos-u55-64",),
    "infineon_pse84": ("ethos-u55-128",),
    "nuvoton_m55m1": ("ethos-u55-256",),
    "nxp_imx93": ("ethos-u65-256",),
    "openmv_ae3": ("ethos-u55-256",),
    "renesas_ra8p1": ("ethos-u55-256",),
}


@pytest.mark.parametrize(("name", "accelerators"), ACCELERATORS_OF.items())
def test_a_stream_for_another_size_is_refused(name: str, accelerators: tuple[str, ...]) -> None:
    board = find_board(name)
    assert board.accelerators == accelerators
    for other in ACCELERATORS:
        if other in accelerators:
            board.require_npu(other)
            continue
        with pytest.raises(MizzenError) as caught:
            board.require_npu(other)
        assert caught.value.diagnostic.code in ("E415", "E442")


def test_each_npu_of_a_board_has_its_own_registers() -> None:
    board = find_board("alif_ensemble_e8")
    assert (board.npu.base, board.npu.irq) == (0x4904_2000, 366)
    other = board.for_npu("ethos-u55-256")
    assert (other.npu.base, other.npu.irq) == (0x400E_1000, 55)
    assert macros(board, "ethos-u55-256", "Shared_Sram")["BOARD_NPU_IRQ"] == 55
    assert macros(board, "ethos-u85-256", "Shared_Sram")["BOARD_NPU_IRQ"] == 366


@pytest.mark.parametrize("name", board_names())
def test_the_source_of_every_figure_is_in_the_file(name: str) -> None:
    text = (reading.FOLDER / f"{name}.toml").read_text()
    assert re.search(r"^# (Sources?: |.* Sources?: )", text, re.M)


@pytest.mark.parametrize("board", EVERY, ids=lambda board: board.name)
def test_every_memory_mode_is_one_of_the_npus(board: Board) -> None:
    for mode in board.modes:
        for role in (Role.MODEL, Role.ARENA, Role.FAST):
            assert board.memory(role, mode).npu, (mode.names, role)


@pytest.mark.parametrize("board", EVERY, ids=lambda board: board.name)
def test_accelerators_of_a_board_are_known(board: Board) -> None:
    assert set(board.npu.accelerators) <= ACCELERATORS.keys()


@pytest.mark.parametrize("board", EVERY, ids=lambda board: board.name)
def test_a_board_is_named_after_its_file(board: Board) -> None:
    assert find_board(board.name).name == board.name


@pytest.mark.parametrize(
    ("name", "base", "irq"),
    [
        ("corstone300", 0x48102000, 56),
        ("corstone310", 0x48102000, 56),
        ("corstone320", 0x50004000, 16),
    ],
)
def test_the_npu_is_where_drivers_look_for_it(name: str, base: int, irq: int) -> None:
    board = find_board(name)
    assert (board.npu.base, board.npu.irq) == (base, irq)


@pytest.mark.parametrize(
    ("product", "mode", "word"),
    [
        ("ethos-u55", "Shared_Sram", 0x5553),
        ("ethos-u85", "Shared_Sram", 0x5553),
        ("ethos-u65", "Dedicated_Sram", 0x555B),
        ("ethos-u55", "Sram_Only", 1),
    ],
)
def test_regions_reach_memory_as_arms_driver_has_them(product: str, mode: str, word: int) -> None:
    """The driver's own words were seen on the bus: REGIONCFG of its defaults."""
    assert macros(find_board("corstone300"), product, mode)["BOARD_NPU_REGIONCFG"] == word


def test_port_limits_are_those_that_arms_driver_writes() -> None:
    u55 = macros(find_board("corstone300"), "ethos-u55-128", "Shared_Sram")
    assert [u55[f"BOARD_NPU_AXI_LIMIT{i}"] for i in range(4)] == [0x0F1F0000] * 4
    u85 = macros(find_board("corstone320"), "ethos-u85-256", "Shared_Sram")
    assert u85["BOARD_NPU_AXI_EXT"] == 0x00021F3F
    assert [u85[f"BOARD_NPU_MEM_ATTR{i}"] for i in range(4)] == [0, 0, 4, 4]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_what_the_npu_reads_is_where_it_reaches(board: Board) -> None:
    for mode in board.modes:
        for role in (Role.MODEL, Role.ARENA, Role.FAST):
            assert board.memory(role, mode).npu


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_linker_script_has_every_memory(board: Board) -> None:
    found = re.findall(
        r"^    (\w+) \(r\w+\) : ORIGIN = (\w+), LENGTH = (\w+)$", linker_script(board), re.M
    )
    rows = [(name, int(base, 0), int(size, 0)) for name, base, size in found]
    assert rows == [(memory.name, memory.base, memory.size_bytes) for memory in board.mapped]


def test_sections_go_where_the_memory_mode_says() -> None:
    board = find_board("corstone300")
    for name, memory in (("Shared_Sram", "SRAM"), ("Dedicated_Sram_384KB", "DDR")):
        script = linker_script(board, name)
        assert re.findall(r"__arena_end = \.;\n    } > (\w+)", script) == [memory]


def test_an_unknown_board_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        find_board("corstone330")
    assert str(caught.value) == (
        f"error[E414]: the board must be {', '.join(board_names())} or a file .toml, not "
        "'corstone330'\n  help did you mean corstone320?"
    )


def test_a_product_that_the_board_has_not_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        board_header(find_board("corstone320"), "ethos-u55-128")
    assert str(caught.value) == (
        "error[E415]: the NPU on corstone320 must be of ethos-u85, not 'ethos-u55-128'\n"
        "  help compile the network with --accelerator-config ethos-u85-256"
    )


def test_another_configuration_of_the_product_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        find_board("himax_we2").require_npu("ethos-u55-128")
    assert str(caught.value) == (
        "error[E442]: the NPU on himax_we2 must be ethos-u55-64, not 'ethos-u55-128'\n"
        "  help compile the network with --accelerator-config ethos-u55-64"
    )


def test_all_keys_that_firmware_needs_are_asked_for_at_once(tmp_path: Path) -> None:
    with pytest.raises(MizzenError) as caught:
        linker_script(find_board("infineon_pse84"))
    assert str(caught.value) == (
        "error[E441]: firmware for infineon_pse84 needs cpu.interrupts (external interrupts that "
        "it has: 1 to 480), npu.base (where the NPU's registers begin: address, a multiple of "
        "0x1000 below 0x100000000), which the board's file does not say\n"
        "  help printf '%s\\n' 'inherits = \"infineon_pse84\"' 'name = \"mine\"' 'cpu.interrupts = "
        "N' 'npu.base = 0xN' > mine.toml, with your values, and give --board mine.toml"
    )
    command = str(caught.value.diagnostic.help).split(", with your values")[0]
    given = command.replace("0xN", "0x50000000").replace("= N", "= 200")
    subprocess.run(given, shell=True, check=True, cwd=tmp_path)
    board = find_board(str(tmp_path / "mine.toml"))
    assert (board.npu.base, board.cpu.interrupts) == (0x5000_0000, 200)
    assert linker_script(board)


def test_memories_without_addresses_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'inherits = "renesas_ra8p1"\nname = "mine"\nnpu.irq = 3\n'
        '[[memory_mode]]\nnames = ["Shared_Sram"]\nmodel = "OSPI"\n'
    )
    with pytest.raises(MizzenError) as caught:
        board_header(find_board(str(path)), "ethos-u55-256", "Shared_Sram")
    assert "memory.base of OSPI (where it begins" in str(caught.value)
    assert """'memory = [{name = "OSPI", base = 0xN}]'""" in str(caught.value)


def test_every_key_is_in_the_table_once() -> None:
    """The table is what people read; the models are what files are read by."""
    rows = [each.place for each in KEYS]
    assert len(rows) == len(set(rows))
    assert sorted(rows) == sorted(model_places("", BoardKeys))


def model_places(table: str, model: type[Section]) -> Iterator[str]:
    for name, key in keys_of(model).items():
        inner = section_in(key.kind)
        if name == "other_npu":  # has the keys of npu
            continue
        place = f"{table}.{name}" if table else name
        if inner is None:
            yield place
        else:
            yield from model_places(place, inner)


def test_an_unknown_memory_mode_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        linker_script(find_board("corstone300"), "Sram")
    assert str(caught.value) == (
        "error[E415]: the memory mode on corstone300 must be Shared_Sram, Sram_Only, "
        "Dedicated_Sram, Dedicated_Sram_256KB, Dedicated_Sram_384KB, Dedicated_Sram_512KB, not "
        "'Sram'"
    )
