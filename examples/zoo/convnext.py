"""Two stages of ConvNeXt: depthwise 7x7, layer norm over channels, GELU.

Ref: Liu et al., "A ConvNet for the 2020s", 2022; widths of ConvNeXt-atto.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import images


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of [N, C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """Filter each channel widely, then mix channels at every pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.filter = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.widen = nn.Linear(channels, 4 * channels)
        self.gelu = nn.GELU()
        self.narrow = nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.filter(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(self.gelu(self.widen(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """[N, 3, 96, 96] -> logits [N, 10]."""

    def __init__(self, widths: tuple[int, int] = (40, 80), depth: int = 2) -> None:
        super().__init__()
        first, second = widths
        self.features = nn.Sequential(
            nn.Conv2d(3, first, 4, stride=4),
            ChannelNorm(first, eps=1e-6),
            *(Block(first) for _ in range(depth)),
            ChannelNorm(first, eps=1e-6),
            nn.Conv2d(first, second, 2, stride=2),
            *(Block(second) for _ in range(depth)),
        )
        self.norm = nn.LayerNorm(second, eps=1e-6)
        self.classifier = nn.Linear(second, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.norm(self.features(x).mean((2, 3))))


ENTRY = Entry("convnext", "wide depthwise filters, layer norm", ConvNext, images(3, 96, 96), settle)
