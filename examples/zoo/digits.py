"""A small CNN, trained on scikit-learn's 8x8 images of handwritten digits."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.entry import Entry

EPOCHS = 12
BATCH = 64
TEST_IMAGES = 360


class DigitsCnn(nn.Module):
    """Three convolutions and a linear layer: [N, 1, 8, 8] -> logits [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.pool(self.features(x)).flatten(1))


def data() -> tuple[Tensor, Tensor]:
    """Return all images [N, 1, 8, 8] with values 0..1 and their digits [N], in a fixed order.

    The last `TEST_IMAGES` are for testing; no training or calibration sees them.
    """
    from sklearn.datasets import load_digits

    bunch = cast("Any", load_digits())
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return images[order], labels[order]


def inputs(batch: int, seed: int) -> Tensor:
    """Draw images [batch, 1, 8, 8] that the network is trained on."""
    images, _ = data()
    choice = torch.randperm(
        len(images) - TEST_IMAGES, generator=torch.Generator().manual_seed(seed)
    )
    return images[choice[:batch]]


def train(_: Entry, module: nn.Module) -> None:
    """Train in place, some seconds."""
    images, labels = (part[:-TEST_IMAGES] for part in data())
    optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
    module.train()
    for _epoch in range(EPOCHS):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            loss = functional.cross_entropy(module(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    optimizer.zero_grad()


def accuracy(module: nn.Module) -> float:
    """Return the share of the test images that a network for inference is right about."""
    images, labels = (part[-TEST_IMAGES:] for part in data())
    with torch.no_grad():
        return (module(images).argmax(1) == labels).float().mean().item()


ENTRY = Entry("digits", "three convolutions, trained", DigitsCnn, inputs, train)
