"""PyTorch's programs, exported and executed: the NPU's part, the processor's, and state."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn

from mizzen.boards import find_board
from mizzen.emulate import emulate
from mizzen.export import Request, c_project
from mizzen.package.firmware import write_project
from mizzen.torch import compile as compile_model

BOARD = find_board("corstone300")


class Islands(nn.Module):
    """Two regions of the NPU around what only the processor has, and a state."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.linear = nn.Linear(8, 4)
        self.register_buffer("total", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.conv(x)).mean((2, 3))
        self.total.copy_(torch.sort(self.total * 0.5 + y, -1)[0])
        values, order = torch.sort(y, -1)
        best, places = torch.topk(y, 3)
        return self.linear(values), order, best, places, self.total + y


class Lookup(nn.Module):
    """Indices of 64 bits for a table that the NPU reads."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.linear(self.table(index))


def executed(artifact: Any, inputs: Any, folder: Path) -> Any:
    for tool in ("arm-none-eabi-gcc", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    write_project(c_project(artifact, Request(BOARD, inputs=[inputs])).files, folder)
    done = subprocess.run(
        ["make", "-s", "-C", str(folder), "CPU=cortex-m33"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return emulate(folder / "build" / "firmware.elf", BOARD, artifact.accelerator)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_both_parts_and_the_state_are_the_hosts(accelerator: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    calls = [(torch.randn(1, 3, 8, 8),) for _ in range(4)]
    artifact = compile_model(Islands().eval(), calls[0], accelerator, calibration=calls)
    result = executed(artifact, np.concatenate([row.numpy() for (row,) in calls]), tmp_path)
    assert result.ok, (result.output, result.failures)


def test_indices_are_looked_up_or_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    calls = [(torch.tensor([[index, 15 - index]]),) for index in range(4)]
    artifact = compile_model(Lookup().eval(), calls[0], "ethos-u85-256", calibration=calls)
    result = executed(artifact, np.concatenate([row.numpy() for (row,) in calls]), tmp_path)
    assert result.ok, (result.output, result.failures)
