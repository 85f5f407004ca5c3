"""A small U-Net: segmentation with transposed convolutions and skip connections.

Ref: Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import images

WIDTHS = (16, 32, 64, 128)


class DoubleConv(nn.Sequential):
    """Two 3x3 convolutions, each with batch norm and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )


class UNet(nn.Module):
    """[N, 3, 96, 96] -> logits of each pixel [N, 2, 96, 96]."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            DoubleConv(inputs, outputs)
            for inputs, outputs in zip((3, *WIDTHS), WIDTHS, strict=False)
        )
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.ModuleList(
            nn.ConvTranspose2d(width, width // 2, 2, stride=2) for width in WIDTHS[:0:-1]
        )
        self.up = nn.ModuleList(DoubleConv(width, width // 2) for width in WIDTHS[:0:-1])
        self.classifier = nn.Conv2d(WIDTHS[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips: list[Tensor] = []
        for block in self.down:
            x = block(self.pool(x) if skips else x)
            skips.append(x)
        for grow, block, skip in zip(self.grow, self.up, skips[-2::-1], strict=True):
            x = block(torch.cat([skip, grow(x)], 1))
        return self.classifier(x)


ENTRY = Entry("unet", "segmentation, transposed convolutions", UNet, images(3, 96, 96), settle)
