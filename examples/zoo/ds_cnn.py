"""DS-CNN, keyword spotting: depthwise-separable convolutions over 49 frames of 10 features.

Ref: Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers", 2017; size as in MLPerf Tiny.
"""

from __future__ import annotations

from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import sequences


def separable(channels: int) -> list[nn.Module]:
    """Return a depthwise and a pointwise convolution, each with batch norm and ReLU."""
    return [
        nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    ]


class DsCnn(nn.Module):
    """[N, 1, 49, 10] -> logits [N, 12]."""

    def __init__(self, channels: int = 64, blocks: int = 4, classes: int = 12) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels, (10, 4), stride=2, padding=(5, 1), bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        )
        layers = [layer for _ in range(blocks) for layer in separable(channels)]
        self.blocks = nn.Sequential(*layers)
        self.pool = nn.AvgPool2d((25, 5))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(x.flatten(1))


ENTRY = Entry(
    "ds_cnn", "keyword spotting, depthwise-separable", DsCnn, sequences(1, 49, 10, along=2), settle
)
