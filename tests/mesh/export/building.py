"""Builds and runs the projects of elements, here and on an emulated Cortex-M33."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping as Files
from pathlib import Path

import numpy as np
import pytest

from mizzen.boards import find_board
from mizzen.emulate import EmulationResult, emulate
from mizzen.graph import Array
from mizzen.mesh.execution.tiles import dtypes_of
from mizzen.mesh.export import export_element, record
from mizzen.mesh.export.recording import Recording
from mizzen.mesh.network import Network
from mizzen.mesh.program import MeshProgram
from mizzen.package.firmware import write_project

GCC = "arm-none-eabi-gcc"
BOARD = find_board("corstone300")
GOOD = "mizzen: ok"
BAD = "mizzen: other outputs than expected"


def need(*tools: str) -> None:
    """Skip the test where a tool is missing."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def images_of(network: Network, count: int) -> list[Array]:
    """Return random images, `[count, *shape]` of each input."""
    random, dtypes = np.random.default_rng(1), dtypes_of(network)
    return [
        random.integers(-128, 128, (count, *network.tensors[index].shape)).astype(
            dtypes.get(index, np.int8)
        )
        for index in network.inputs
    ]


def recorded(program: MeshProgram, count: int = 3) -> Recording:
    """Return what all elements take and give on random images."""
    return record(program, images_of(program.network, count))


def run_here(files: Files[str, bytes], folder: Path, compiler: str = "gcc") -> list[str]:
    """Build a project for this machine with sanitizers; return the lines that it writes."""
    need(compiler, "make")
    write_project(files, folder)
    built = subprocess.run(
        ["make", "-s", "-C", str(folder), "host", f"HOST_CC={compiler}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [str(folder / "build" / "host" / "element")], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == (0 if lines[-1:] == [GOOD] else 1), done.stderr
    return lines


def run_emulated(files: Files[str, bytes], folder: Path) -> EmulationResult:
    """Build a project for the board and run it on Unicorn."""
    need(GCC, "make")
    write_project(files, folder)
    built = subprocess.run(
        ["make", "-s", "-C", str(folder)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return emulate(folder / "build" / "firmware.elf", BOARD, "ethos-u55-128")


def differing_here(program: MeshProgram, folder: Path, *elements: int) -> list[str]:
    """Return the last lines of the elements that do not give what was recorded."""
    recording = recorded(program)
    chosen = elements or tuple(row.element for row in program.elements)
    found = list[str]()
    for element in chosen:
        files = export_element(program, element, recording)
        lines = run_here(files, folder / str(element))
        if lines[-1] != GOOD:
            found.append(f"{element}: {lines}")
    return found
