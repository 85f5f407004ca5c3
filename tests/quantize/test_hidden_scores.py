"""A mask that does not hide its scores is spoken of."""

from __future__ import annotations

import pytest
import torch

import mizzen
from mizzen.torch import compile


class Attention(torch.nn.Module):
    """Causal attention whose scores are so many times those of its keys."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.key = torch.nn.Linear(8, 8)
        self.times = times
        self.register_buffer("hidden", torch.triu(torch.ones(6, 6, dtype=torch.bool), 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x @ self.key(x).transpose(1, 2) * self.times
        return torch.softmax(scores.masked_fill(self.hidden, float("-inf")), -1) @ x


def said(times: float) -> list[str]:
    torch.manual_seed(0)
    model = Attention(times).eval()
    calls = [(torch.randn(1, 6, 8),) for _ in range(8)]
    artifact = compile(model, calls[0], "ethos-u55-128", calibration=calls)
    assert artifact.report is not None
    return [row.message for row in artifact.report.diagnostics if row.code == "W872"]


def test_scores_that_are_near_each_other_are_hidden() -> None:
    assert said(0.3) == []


def test_scores_that_are_far_apart_are_seen() -> None:
    with pytest.warns(mizzen.MizzenWarning, match="W872"):
        (message,) = said(5.0)
    assert message.startswith(
        "scores that a mask hides must lie at most 10.5 apart, and lie up to "
    )
