"""MobileNetV3-small: inverted residuals with squeeze-and-excite, hard-swish and hard-sigmoid.

Ref: Howard et al., "Searching for MobileNetV3", 2019, table 2.
"""

from __future__ import annotations

from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import images

# kernel, hidden channels, channels, squeeze-and-excite, hard-swish, stride
BLOCKS = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)


def multiple_of_8(channels: int) -> int:
    """Round to a multiple of 8, but not down by more than a tenth."""
    rounded = max(8, (channels + 4) // 8 * 8)
    return rounded + 8 if rounded * 10 < channels * 9 else rounded


def convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    """Return a convolution that keeps the size at stride 1, with batch norm."""
    padding = kernel // 2
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs, eps=1e-3)]


class SqueezeExcite(nn.Module):
    """Weigh each channel by what a small network makes of all channels' means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = multiple_of_8(channels // 4)
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.ReLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.weigh(x) * x


class Block(nn.Module):
    """Expand, filter each channel, weigh, project."""

    def __init__(self, inputs: int, row: tuple[int, int, int, bool, bool, int]) -> None:
        super().__init__()
        kernel, hidden, outputs, squeeze, swish, stride = row
        activation = nn.Hardswish if swish else nn.ReLU
        layers: list[nn.Module] = []
        if hidden != inputs:
            layers += [*convolution(inputs, hidden, 1), activation()]
        layers += [*convolution(hidden, hidden, kernel, stride, groups=hidden), activation()]
        if squeeze:
            layers.append(SqueezeExcite(hidden))
        self.layers = nn.Sequential(*layers, *convolution(hidden, outputs, 1))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNetV3Small(nn.Module):
    """[N, 3, 224, 224] -> logits [N, 1000]."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        channels = 16
        layers: list[nn.Module] = [*convolution(3, channels, 3, stride=2), nn.Hardswish()]
        for row in BLOCKS:
            layers.append(Block(channels, row))
            channels = row[2]
        self.features = nn.Sequential(*layers, *convolution(channels, 576, 1), nn.Hardswish())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.pool(self.features(x)).flatten(1))


ENTRY = Entry(
    "mobilenet_v3_small",
    "image classification, squeeze-and-excite",
    MobileNetV3Small,
    images(3, 224, 224),
    settle,
)
