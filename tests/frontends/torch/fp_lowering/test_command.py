"""`mizzen lower --profile FP` from a file to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn

from mizzen.cli.main import main
from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.frontends.tosa import read

from .accuracy import UNIT


def saved(folder: Path, module: nn.Module, *inputs: torch.Tensor) -> Path:
    path = folder / "net.pt2"
    torch.export.save(export(module.eval(), Call(inputs), "net"), path)
    return path


def test_file_is_what_pytorch_computes(
    tmp_path: Path, tosa_oracle: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    x = torch.rand(1, 3, 6, 6)
    target = tmp_path / "net.tosa"
    source = saved(tmp_path, module, x)
    assert main(["lower", str(source), "--profile", "FP", "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"] == "FP"
    graph = read(target.read_bytes(), "net")
    (found,) = tosa_oracle(graph, [x.numpy()])
    with torch.no_grad():
        wanted = module(x).numpy()
    # 27 products and a bias, each of less than 1; 28 roundings of ours and 30 of PyTorch's.
    assert np.abs(found - wanted).max() <= 58 * UNIT * 28


def test_default_profile_refuses_an_unquantised_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = saved(tmp_path, nn.ReLU(), torch.rand(2))
    assert main(["lower", str(source), "-o", str(tmp_path / "net.tosa")]) == 2
    assert "error[E853]" in capsys.readouterr().err
    assert not (tmp_path / "net.tosa").exists()
