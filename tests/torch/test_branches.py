"""Branches on data, `torch.cond`: both are computed, and the condition chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mizzen.torch import compile

U55, U85 = "ethos-u55-128", "ethos-u85-256"
CONDITION: Any = torch.cond


class One(nn.Module):
    """One result, with a layer in either branch."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return CONDITION(x.sum() > 0, self.near, self.far, (x,))


class Several(nn.Module):
    """Several results, and a branch in a branch."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def inner(x: Tensor) -> tuple[Tensor, Tensor]:
            return torch.sigmoid(x), x * 0.5

        def other(x: Tensor) -> tuple[Tensor, Tensor]:
            return x - 0.25, x + 0.25

        def outer(x: Tensor) -> tuple[Tensor, Tensor]:
            return CONDITION(x.amax() > 2, inner, other, (x,))

        return CONDITION(x.sum() > 0, outer, inner, (x,))


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("kind", [One, Several])
def test_the_condition_chooses(kind: type[nn.Module], accelerator: str) -> None:
    torch.manual_seed(0)
    model = kind().eval()
    calls = [torch.rand(2, 8) * 2 - shift for shift in (0.0, 2.0, 0.0, 2.0)]
    calls += [call + 1.5 for call in calls[::2]]
    artifact = compile(model, (calls[0],), accelerator, calibration=calls)
    assert artifact.report is not None
    if accelerator == U85:  # U55 has no choice
        assert artifact.report.on_cpu == ()
    for call in calls:
        with torch.no_grad():
            expected = model(call)
        found = artifact.run(call)
        for one, other in zip(_leaves(found), _leaves(expected), strict=True):
            assert np.abs(one - np.asarray(other)).max() < 0.1


def _leaves(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)
