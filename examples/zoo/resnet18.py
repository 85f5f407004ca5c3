"""ResNet-18.

Ref: He et al., "Deep Residual Learning for Image Recognition", 2015, table 1.
"""

from __future__ import annotations

from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import images


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution that keeps the size at stride 1, with batch norm."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class BasicBlock(nn.Module):
    """Two convolutions around a shortcut, which projects where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *convolution(inputs, outputs, 3, stride),
            nn.ReLU(inplace=True),
            *convolution(outputs, outputs, 3),
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(*convolution(inputs, outputs, 1, stride))
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        y += self.shortcut(x)
        return self.relu(y)


class ResNet18(nn.Module):
    """[N, 3, 224, 224] -> logits [N, 1000]."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        channels = 64
        self.stem = nn.Sequential(
            *convolution(3, channels, 7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        blocks: list[nn.Module] = []
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(channels, outputs, stride), BasicBlock(outputs, outputs, 1)]
            channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(x.flatten(1))


ENTRY = Entry("resnet18", "image classification", ResNet18, images(3, 224, 224), settle)
