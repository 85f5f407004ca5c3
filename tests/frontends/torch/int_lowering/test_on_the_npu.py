"""Operators under all their names, from `mizzen.torch.compile` to Ethos-U85: none is on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import numpy as np
import torch
from torch import Tensor, nn

import mizzen.torch
from mizzen.artifact.host_steps import DequantizeStep

U85 = "ethos-u85-256"

COMPUTED: dict[str, Callable[[Tensor], Tensor]] = {
    "multiply": lambda y: torch.multiply(y, torch.sigmoid(y)),
    "subtract": lambda y: torch.subtract(y, torch.sigmoid(y)),
    "divide": lambda y: torch.divide(y, torch.sigmoid(y) + 1.0),
    "clip": lambda y: torch.clip(y, -0.25, 0.5),
    "concatenate": lambda y: torch.concatenate([y, torch.relu(y)], 1),
    "mT": lambda y: y.mT,
    "reshape_as": lambda y: y.reshape_as(y.flatten(2)),
    "exp2": torch.exp2,
    "view_as": lambda y: y.view_as(y.flatten(1)),
    "broadcast_to": lambda y: torch.broadcast_to(y.mean(1, keepdim=True), (1, 4, 8, 8)),
    "swapdims": lambda y: y.swapdims(1, 2),
    "cumsum": lambda y: torch.cumsum(y, 3),
    "narrow": lambda y: y.narrow(1, 2, 3),
    "max dim": lambda y: y.max(1).values,
    "adaptive_max_pool2d": lambda y: nn.functional.adaptive_max_pool2d(y, 3),
    "slice_scatter": lambda y: torch.slice_scatter(y, torch.sigmoid(y)[:, :, :3], 2, 1, 4),
    "repeat_interleave": lambda y: y.repeat_interleave(2, 1),
}


class Network(nn.Module):
    """A convolution, and what is made of it."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.convolution(x))


@pytest.mark.parametrize("name", COMPUTED)
def test_it_is_on_the_npu_and_near_pytorch(name: str) -> None:
    """Eager PyTorch has no roundings: what 8 bits of the convolution and of the result allow."""
    torch.manual_seed(0)
    model, image = Network(COMPUTED[name]).eval(), torch.randn(1, 3, 8, 8)
    artifact = mizzen.torch.compile(model, (image,), U85, calibration=[(image,)], prove="off")
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    found = artifact.run(image.numpy())
    with torch.no_grad():
        wanted = model(image).numpy()
    (step,) = [row for row in artifact.steps if isinstance(row, DequantizeStep)]
    assert isinstance(found, np.ndarray)
    assert found.shape == wanted.shape
    spread = float(np.abs(wanted).max())
    assert np.abs(found - wanted).max() <= max(4 * step.scale, spread / 16)
