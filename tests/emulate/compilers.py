"""Builds firmware of the repository for a board, with the compilers that are there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mizzen.boards import Board, board_header, linker_script

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
BOARD = FIRMWARE / "board"
GCC = "arm-none-eabi-gcc"
CLANG = "clang"
WARNINGS = ("-std=c99", "-ffreestanding", "-Wall", "-Wextra", "-Wconversion", "-Werror")
CORES = {"m33": "cortex-m33", "m55": "cortex-m55"}


def need(tool: str) -> None:
    """Skip the test where a tool is missing."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def configure(folder: Path, board: Board, accelerator: str, memory_mode: str | None = None) -> None:
    """Write the board's header and linker script into a folder."""
    (folder / "board_config.h").write_text(board_header(board, accelerator, memory_mode))
    (folder / "board.ld").write_text(linker_script(board, memory_mode))


def flags(folder: Path, core: str) -> list[str]:
    """Return what both compilers take."""
    return [
        f"-mcpu={CORES[core]}",
        "-mthumb",
        "-mfloat-abi=hard",
        "-O2",
        *WARNINGS,
        f"-I{folder}",
        f"-I{BOARD}",
    ]


def check(compiler: str, folder: Path, core: str, source: Path, defines: Sequence[str] = ()) -> str:
    """Compile one file and return what the compiler says about it; nothing is all well."""
    target = ["--target=arm-none-eabi"] if compiler == CLANG else []
    command = [
        compiler,
        *target,
        *flags(folder, core),
        *defines,
        "-c",
        str(source),
        "-o",
        "/dev/null",
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True).stderr


def build(
    folder: Path, core: str, sources: Sequence[Path], output: Path, defines: Sequence[str] = ()
) -> Path:
    """Link sources with those of the board; the folder is `configure`'s."""
    board = sorted(BOARD.glob("*.c"))
    link = [
        "-nostdlib",
        "-static",
        "-T",
        str(folder / "board.ld"),
        "-Wl,--build-id=none",
        "-Wl,-z,max-page-size=16",
    ]
    files = [*map(str, [*board, *sources]), "-o", str(output), "-lgcc"]
    command = [GCC, *flags(folder, core), *defines, *link, *files]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output
