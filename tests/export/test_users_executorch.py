"""A project with the user's own checkouts of ExecuTorch and of Arm's driver.

MIZZEN_EXECUTORCH names a folder `executorch` with the submodules that the project's README.txt
lists, MIZZEN_ETHOSU_DRIVER that of ethos-u-core-driver. ExecuTorch's portable kernels take some
minutes to compile, once for all NPUs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
import mizzen.torch
from mizzen.boards import find_board
from mizzen.emulate import emulate
from mizzen.export import Request, checkouts_for, executorch_project
from mizzen.package.firmware import write_project

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

BOARD = find_board("corstone300")
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
USED = re.compile(r"^executorch: (\d+) bytes of the method's (\d+) are used$", re.MULTILINE)


class Listen(torch.nn.Module):
    """A convolution on the NPU, a state, and an operator that stays on the processor."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Conv1d(8, 16, 3, padding=1)
        self.scores = torch.nn.Linear(16, 4)
        self.register_buffer("mean", torch.zeros(1, 16))

    def forward(self, sound: Any) -> Any:
        now = torch.relu(self.features(sound)).mean(2)
        mean = 0.75 * self.mean + 0.25 * now  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType] a buffer
        self.mean.copy_(mean)  # pyright: ignore[reportCallIssue, reportUnknownMemberType, reportUnknownArgumentType] a buffer
        return torch.topk(self.scores(mean), 2)


def checkouts() -> dict[str, str]:
    """Return the folders by option; skip where there are none, or nothing that builds."""
    found = {
        "executorch": os.environ.get("MIZZEN_EXECUTORCH", ""),
        "driver": os.environ.get("MIZZEN_ETHOSU_DRIVER", ""),
    }
    known = {
        "executorch": "third-party/flatbuffers/CMakeLists.txt",
        "driver": "src/ethosu_driver.c",
    }
    for name, folder in found.items():
        if not Path(folder, known[name]).is_file():
            pytest.skip(
                "MIZZEN_EXECUTORCH and MIZZEN_ETHOSU_DRIVER name no checkouts of executorch, with "
                "its submodules, and of ethos-u-core-driver"
            )
    for tool in ("arm-none-eabi-g++", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return found


def run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_executorch_gives_what_run_gives(tmp_path: Path) -> None:
    given = checkouts_for("executorch", checkouts())
    torch.manual_seed(0)
    sounds = [torch.randn(1, 8, 32) for _ in range(4)]
    build = tmp_path / "build"
    for accelerator in ACCELERATORS:
        compiled = mizzen.torch.compile(
            Listen().eval(), (sounds[0],), accelerator, calibration=sounds
        )
        compiled.save(tmp_path / "listen.pte")
        artifact = mizzen.load(tmp_path / "listen.pte")
        inputs = [np.concatenate([row.numpy() for row in sounds])]
        project = executorch_project(artifact, Request(BOARD, inputs=inputs, checkouts=given))
        write_project(project.files, tmp_path / "project")
        options = ("-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake", "-DCPU=cortex-m33")
        python = f"-DPYTHON_EXECUTABLE={sys.executable}"
        run("cmake", "-S", tmp_path / "project", "-B", build, *options, python)
        run("cmake", "--build", build, "--target", "firmware.elf", "--parallel", "2")
        result = emulate(build / "firmware.elf", BOARD, accelerator)
        assert result.ok, (result.failures, result.output)
        assert result.invocation_count == 4
        ((used, size),) = USED.findall(result.output)
        assert int(used) <= int(size)
