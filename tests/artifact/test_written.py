"""What an artifact executes, and what of it its file has."""

from __future__ import annotations

from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.analysis.memory import memory_report
from mizzen.artifact.written import as_written, conversions

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.tflite"


def test_a_file_with_every_step_is_itself() -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128")
    assert not conversions(artifact)
    assert as_written(artifact) is artifact


def test_floats_of_pytorch_are_not_in_the_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from mizzen.torch import compile as compile_module

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    artifact = compile_module(model, (torch.randn(1, 3, 16, 16),), "ethos-u55-128")
    path = tmp_path / artifact.name
    artifact.save(path)
    loaded = mizzen.load(path)
    assert conversions(artifact)
    assert [info.dtype for info in as_written(artifact).inputs] == ["int8"]
    cost, of_file = cost_report(artifact), cost_report(loaded)
    assert cost.operations == of_file.operations
    assert cost.conversion_cycles > 0 == of_file.conversion_cycles
    assert memory_report(artifact) == memory_report(loaded)
    assert artifact.report is not None
    assert artifact.report.time == cost.time
    assert loaded.report is not None
    assert loaded.report.time == cost.time


def test_an_executorch_program_converts_floats_itself(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from mizzen.torch import compile as compile_module

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    artifact = compile_module(model, (torch.randn(1, 3, 16, 16),), "ethos-u55-128")
    artifact.save(tmp_path / "model.pte")
    loaded = mizzen.load(tmp_path / "model.pte")
    assert artifact.report is not None
    assert loaded.report is not None
    assert artifact.report.time is not None
    assert loaded.report.time == cost_report(loaded).time
    assert loaded.report.cycles == artifact.report.cycles + artifact.report.time.conversion_cycles
