"""PyTorch networks saved as ExecuTorch programs: read again, they compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.torch import compile


class Recurrent(nn.Module):
    """Has a state, a part for the processor, and several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.last = nn.Linear(8, 4)
        self.hidden: torch.Tensor
        self.register_buffer("hidden", torch.zeros(1, 8))

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features = torch.relu(self.first(image)).mean((2, 3))
        hidden = torch.sigmoid(features + self.hidden)
        self.hidden.copy_(hidden)
        scores = self.last(hidden)
        return scores, *torch.topk(scores, 2)


class Sorted(nn.Module):
    """Ends in an operator that ExecuTorch has no kernel for."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return torch.sort(self.first(given), 1)[0]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_a_saved_program_computes_the_same(accelerator: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    calls = [(torch.randn(1, 3, 8, 8),) for _ in range(3)]
    artifact = compile(Recurrent().eval(), calls[0], accelerator, calibration=calls)
    artifact.save(tmp_path / "net.pte")
    again = mizzen.load(tmp_path / "net.pte")
    assert again.accelerator == accelerator
    assert any(isinstance(step, NpuStep) for step in again.steps)
    ours, theirs = artifact.session(), again.session()
    for (image,) in calls:
        for wanted, found in zip(ours.run(image.numpy()), theirs.run(image.numpy()), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
    assert again.report is not None, "the report is of the file beside it"


def test_one_npu_operator_has_real_numbers_at_its_edge(tmp_path: Path) -> None:
    """Unlike the same saved as `.tflite`, which takes and gives integers."""
    torch.manual_seed(0)
    calls = [(torch.randn(1, 6),) for _ in range(3)]
    artifact = compile(nn.Linear(6, 5).eval(), calls[0], "ethos-u55-128", calibration=calls)
    artifact.save(tmp_path / "net.pte")
    again = mizzen.load(tmp_path / "net.pte")
    given = calls[0][0].numpy()
    np.testing.assert_array_equal(again.run(given), artifact.run(given))


def test_finds_out_how_much_fast_memory_a_stream_takes(tmp_path: Path) -> None:
    """A delegate's payload does not say it."""
    torch.manual_seed(0)
    calls = [(torch.randn(1, 3, 48, 48),) for _ in range(2)]
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 3, 2, 1)).eval()
    artifact = compile(
        model, calls[0], "ethos-u65-256", calibration=calls, memory_mode="Dedicated_Sram"
    )
    artifact.save(tmp_path / "net.pte")
    again = mizzen.load(tmp_path / "net.pte")
    sizes = [
        step.program.region_bytes
        for held in (artifact, again)
        for step in held.steps
        if isinstance(step, NpuStep)
    ]
    assert sizes[0][2] == sizes[1][2] > 0
    image = calls[0][0].numpy()
    np.testing.assert_array_equal(again.run(image), artifact.run(image))


def test_says_which_operator_has_no_kernel(tmp_path: Path) -> None:
    calls = [(torch.randn(1, 6),)]
    artifact = compile(Sorted().eval(), calls[0], "ethos-u55-128", calibration=calls)
    with pytest.raises(mizzen.MizzenError) as error:
        artifact.save(tmp_path / "net.pte")
    assert error.value.diagnostic.code == "E174"
    assert "aten::sort" in error.value.diagnostic.message
    assert not (tmp_path / "net.pte").exists()
