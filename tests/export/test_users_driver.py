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
from mizzen.export import c_project
from mizzen.package.c.project import write_project

DRIVER = os.environ.get("MIZZEN_ETHOSU_DRIVER", "")
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_arms_driver_runs_an_artifact(accelerator: str, tmp_path: Path) -> None:
    if not Path(DRIVER, "src", "ethosu_driver.c").is_file():
        pytest.skip("MIZZEN_ETHOSU_DRIVER names no checkout of ethos-u-core-driver")
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    artifact = mizzen.compile(DIGITS / "digits.tflite", accelerator, prove="off")
    (info,) = artifact.inputs
    images = np.load(DIGITS / "images.npy")[:5].reshape(-1, *info.shape[1:])
    project = c_project(artifact, find_board("corstone300"), inputs=[images])
    write_project(project.files, tmp_path)
    command = ["make", "-C", str(tmp_path), "CPU=cortex-m33", f"DRIVER={Path(DRIVER).resolve()}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    elf = tmp_path / "build" / "firmware.elf"
    result = emulate(elf, "corstone300", accelerator)
    assert result.ok, result.failures
    assert result.invocation_count == 5
