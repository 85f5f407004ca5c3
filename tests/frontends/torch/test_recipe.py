"""The operator that CONTRIBUTING adds, added: it goes to the NPU."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import nn

import mizzen.torch
from mizzen.frontends.torch.operators import OPERATORS, rows


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.deg2rad(x + x)


def kinds_on_cpu(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[str]:
    artifact = mizzen.torch.compile(model, inputs, calibration=[inputs])
    assert artifact.report is not None
    return [row.kind for row in artifact.report.on_cpu]


def test_the_operator_of_the_recipe_works(
    monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    model, inputs = Model().eval(), (torch.rand(1, 4, 4, 8),)
    assert kinds_on_cpu(model, inputs) == ["aten.deg2rad"]
    lines = (repository / "CONTRIBUTING.md").read_text().split("\n")
    (text,) = [line.strip() for line in lines if line.startswith('    *each("deg2rad')]
    for row in eval(f"[{text}]", dict(vars(rows))):
        monkeypatch.setitem(OPERATORS, f"aten.{row.overloads[0]}", row)
    assert kinds_on_cpu(model, inputs) == []
