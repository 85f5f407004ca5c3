"""A project with the user's own checkout of Arm's driver, where there is one.

MIZZEN_ETHOSU_DRIVER names the folder of ethos-u-core-driver.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.boards import find_board
from mizzen.emulate import emulate
from mizzen.export import Request, c_project, checkouts_for
from mizzen.package.firmware import write_project

DRIVER = os.environ.get("MIZZEN_ETHOSU_DRIVER", "")
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


def need_driver() -> Path:
    if not Path(DRIVER, "src", "ethosu_driver.c").is_file():
        pytest.skip("MIZZEN_ETHOSU_DRIVER names no checkout of ethos-u-core-driver")
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    return Path(DRIVER)


def built(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def digits_project(accelerator: str, folder: Path, driver: Path) -> None:
    artifact = mizzen.compile(DIGITS / "digits.tflite", accelerator, prove="off")
    (info,) = artifact.inputs
    images = np.load(DIGITS / "images.npy")[:5].reshape(-1, *info.shape[1:])
    checkouts = checkouts_for("c", {"driver": str(driver)})
    request = Request(find_board("corstone300"), inputs=[images], checkouts=checkouts)
    write_project(c_project(artifact, request).files, folder)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_arms_driver_runs_an_artifact(accelerator: str, tmp_path: Path) -> None:
    digits_project(accelerator, tmp_path, need_driver())
    built("make", "-C", tmp_path, "CPU=cortex-m33")
    result = emulate(tmp_path / "build" / "firmware.elf", "corstone300", accelerator)
    assert result.ok, result.failures
    assert result.invocation_count == 5


def test_cmake_and_paths_with_spaces(tmp_path: Path) -> None:
    driver = tmp_path / "Arm's driver #1"
    driver.symlink_to(need_driver().resolve())
    folder = tmp_path / "my project"
    folder.mkdir()
    digits_project("ethos-u55-128", folder, driver)
    settings = (folder / "model.mk").read_text()
    (folder / "model.mk").write_text(settings.replace("DRIVER ?=", "OTHER ?="))
    built("make", "-C", folder, f"DRIVER={driver}", "CPU=cortex-m33")
    build = folder / "cmake build"
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"
    built("cmake", "-S", folder, "-B", build, toolchain, f"-DDRIVER={driver}", "-DCPU=cortex-m33")
    built("cmake", "--build", build)
    for elf in (folder / "build" / "firmware.elf", build / "firmware.elf"):
        assert emulate(elf, "corstone300", "ethos-u55-128").ok
