"""Firmware that is built already runs any artifact: the bytes that it gives on the host."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import mizzen
from mizzen.boards import find_board
from mizzen.diagnostics import MizzenError
from mizzen.emulate import Options, Reason, emulate
from mizzen.export import runner
from mizzen.export.runner import ARENA_BYTES, BUILT, name_of
from mizzen.package.firmware import firmware_folder
from mizzen.package.tflite.builder import NetworkBuilder

pytest.importorskip("unicorn", reason="Unicorn is not installed (pip install '.[emulate]')")

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
MACS = {"ethos-u55": 128, "ethos-u65": 256, "ethos-u85": 256}
PAIRS = [(board, product) for board, products in BUILT.items() for product in products]
GCC = "arm-none-eabi-gcc"
COMPILER = "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205"


def digits(accelerator: str = "ethos-u55-128") -> mizzen.Artifact:
    return mizzen.compile(DIGITS / "digits.tflite", accelerator, prove="off")


@pytest.mark.parametrize(("board", "product"), PAIRS)
def test_an_artifact_gives_on_each_board_what_it_gives_here(board: str, product: str) -> None:
    artifact = digits(f"{product}-{MACS[product]}")
    images = np.load(DIGITS / "images.npy")[:3]
    (info,) = artifact.inputs
    firmware = runner(artifact, find_board(board), [images.reshape(-1, *info.shape[1:])])
    assert artifact.accelerator is not None
    result = emulate(firmware, board, artifact.accelerator)
    assert result.ok, result.failures
    assert result.output.count("output 0:") == 3
    assert result.invocation_count == 3


def test_other_bytes_than_on_the_host_are_a_failure() -> None:
    artifact = digits()
    (info,) = artifact.inputs
    board = find_board("corstone300")
    firmware = bytearray(runner(artifact, board, [np.ones(info.shape, info.dtype)]))
    firmware[-16] ^= 1  # the first of the outputs, which are last and padded
    result = emulate(bytes(firmware), board, "ethos-u55-128", replace(Options(), seconds=20.0))
    assert result.reason is Reason.EXITED
    assert result.exit_status == 1
    assert "mizzen: other outputs than expected" in result.output
    assert not result.ok


def test_a_board_that_there_is_no_firmware_for() -> None:
    board = replace(find_board("corstone300"), name="mine")
    with pytest.raises(MizzenError) as caught:
        runner(digits(), board, ())
    assert str(caught.value) == (
        "error[E482]: firmware that is built already is for corstone300, corstone310, corstone320, "
        "not for mine with ethos-u55\n"
        "  help `mizzen export --to c --board mine` makes a project; `mizzen emulate` runs the "
        "firmware that is built of it"
    )


def test_a_network_that_is_too_large() -> None:
    net = NetworkBuilder()
    shape = (1, 1024, 1024, 2)
    x, y = (net.tensor(name, shape, "int8", 0.1, 0) for name in ("x", "y"))
    net.operator("ADD", [x, x], [y], ("AddOptions", {}))
    artifact = mizzen.compile(net.finish([x], [y]), "ethos-u55-128", prove="off")
    with pytest.raises(MizzenError) as caught:
        runner(artifact, find_board("corstone300"), ())
    assert caught.value.diagnostic.code == "E468"
    assert f"the arena of firmware that is built already is {ARENA_BYTES} bytes" in str(
        caught.value
    )


SWEPT = [pytest.param(*pair, marks=pytest.mark.sweep) for pair in PAIRS[1:]]


@pytest.mark.parametrize(("board", "product"), [PAIRS[0], *SWEPT])
def test_the_firmware_is_built_of_these_sources(board: str, product: str, tmp_path: Path) -> None:
    if shutil.which(GCC) is None:
        pytest.skip(f"{GCC} is not installed")
    said = subprocess.run([GCC, "--version"], check=True, capture_output=True, text=True).stdout
    if said.splitlines()[0] != COMPILER:
        pytest.skip(f"the firmware is by {COMPILER}, here is {said.splitlines()[0]}")
    build = module(ROOT / "firmware" / "runner" / "build.py")
    target = tmp_path / name_of(board, product)
    build.build(board, product, target)
    kept = firmware_folder() / "runner" / target.name
    assert target.read_bytes() == kept.read_bytes(), "run `make runner` and commit the files"


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
