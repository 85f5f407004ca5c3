"""Small networks of one NPU region and of two."""

from __future__ import annotations

import torch
from torch import nn


class Whole(nn.Module):
    """One region, whose artifact is a `.tflite` with integers outside."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.relu(self.conv(x)).mean((2, 3)))


class Split(Whole):
    """Two regions with PyTorch's sort between."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x)).mean((2, 3))
        return self.linear(torch.sort(y, -1)[0])
