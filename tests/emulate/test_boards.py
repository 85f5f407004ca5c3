"""Firmware built for a board by its header and linker script runs on that board, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from mizzen.boards import find_board, reading
from mizzen.diagnostics import MizzenError
from mizzen.emulate import Core, Options, emulate

from .compilers import GCC, build, need
from .conftest import need_qemu
from .firmware import SOURCES, configured

OWN = (
    (reading.FOLDER / "corstone300.toml")
    .read_text()
    .replace('name = "corstone300"', 'name = "mine"')
    .replace("base = 0x4810_2000\nalias = 0x5810_2000", "base = 0x4400_0000")
    .replace("irq = 56", "irq = 5")
    .replace('kind = "cmsdk"', 'kind = "pl011"')
    .replace('qemu = "mps3-an547"\n', "")
)


def board_file(name: str, folder: Path) -> str:
    if name != "mine":
        return name
    (folder / "mine.toml").write_text(OWN)
    return str(folder / "mine.toml")


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [
        ("corstone310", "ethos-u55-256"),
        ("corstone310", "ethos-u65-512"),
        ("corstone320", "ethos-u85-256"),
        ("mine", "ethos-u85-512"),
    ],
)
def test_firmware_runs_on_its_board(name: str, accelerator: str, tmp_path: Path) -> None:
    need(GCC)
    board = board_file(name, tmp_path)
    folder = configured(tmp_path, board, accelerator)
    source = SOURCES / "interrupt.c"
    firmware = build(folder, "m33", [source], folder / "interrupt.elf", [f"-I{SOURCES}"])
    result = emulate(firmware, board, accelerator)
    assert result.ok, result.failures
    assert result.invocation_count == 4
    with pytest.raises(MizzenError) as caught:
        emulate(firmware, board, accelerator, Options(core=Core.M55))
    assert caught.value.diagnostic.message == (
        "the processor m55 needs a board that QEMU has a machine of, and "
        f"{find_board(board).name} is not one"
    )


@pytest.mark.parametrize("core", ["m33", "m55"])
def test_the_processors_own_code_runs(core: str, tmp_path: Path) -> None:
    """Firmware for M55 has vector and low-overhead loops, which QEMU's processor has."""
    need(GCC)
    need_qemu()
    folder = configured(tmp_path)
    source = SOURCES / "floats.c"
    firmware = build(folder, core, [source], folder / "floats.elf", [f"-I{SOURCES}"])
    assert emulate(firmware, "corstone300", "ethos-u55-128", Options(core=Core.M55)).ok
