"""`inspect --between` on exported programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from mizzen.cli.main import main
from mizzen.files import write_file
from mizzen.torch import to_tosa

U55 = ("--accelerator-config", "ethos-u55-128", "--quiet")


class _Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.convolution(x))


def test_a_program_and_its_tosa_file(
    tmp_path: Path, converted: Callable[..., ExportedProgram], capsys: pytest.CaptureFixture[str]
) -> None:
    """A program's operations name its modules; its TOSA file's have the same numbers."""
    program = converted(_Layers(), [(torch.randn(1, 3, 8, 8),)])
    torch.export.save(program, tmp_path / "net.pt2")
    write_file(tmp_path / "net.tosa", to_tosa(program))
    texts: list[str] = []
    for name in ("net.pt2", "net.tosa"):
        words = ["inspect", str(tmp_path / name), "--between", "lower,arrange,schedule", *U55]
        assert main(words) == 0
        texts.append(capsys.readouterr().out)
    assert 'module = "convolution (Conv2d)"' in texts[0]
    lines = [
        next(line for line in text.splitlines() if "= CONV(" in line).partition("{")[2]
        for text in texts
    ]
    one, other = (line.partition(" : ")[0] for line in lines)
    assert one == other
