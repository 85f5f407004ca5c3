"""MobileNetV2 and EfficientNet-lite0: two tables of inverted residuals.

Ref: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018.
Ref: EfficientNet-lite, github.com/tensorflow/tpu, efficientnet/lite: no squeeze-and-excite, ReLU6.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import images

# expansion, channels, how many, stride of the first, kernel
Stage = tuple[int, int, int, int, int]

MOBILENET_V2: tuple[Stage, ...] = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 32, 3, 2, 3),
    (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3),
    (6, 320, 1, 1, 3),
)
EFFICIENTNET_LITE0: tuple[Stage, ...] = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    """Return a convolution that keeps the size at stride 1, with batch norm."""
    padding = kernel // 2
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class InvertedResidual(nn.Module):
    """Expand, filter each channel, project; added to its input where the shapes allow."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int, kernel: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers += [*convolution(inputs, hidden, 1), nn.ReLU6()]
        layers += [*convolution(hidden, hidden, kernel, stride, groups=hidden), nn.ReLU6()]
        self.layers = nn.Sequential(*layers, *convolution(hidden, outputs, 1))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class InvertedResiduals(nn.Module):
    """[N, 3, 224, 224] -> logits [N, 1000]."""

    def __init__(self, stages: tuple[Stage, ...], classes: int = 1000) -> None:
        super().__init__()
        channels = 32
        layers: list[nn.Module] = [*convolution(3, channels, 3, stride=2), nn.ReLU6()]
        for expansion, outputs, count, stride, kernel in stages:
            for index in range(count):
                step = stride if index == 0 else 1
                layers.append(InvertedResidual(channels, outputs, step, expansion, kernel))
                channels = outputs
        self.features = nn.Sequential(*layers, *convolution(channels, 1280, 1), nn.ReLU6())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.pool(self.features(x)).flatten(1))


MOBILENET_V2_ENTRY = Entry(
    "mobilenet_v2",
    "image classification, inverted residuals",
    partial(InvertedResiduals, MOBILENET_V2),
    images(3, 224, 224),
    settle,
)
EFFICIENTNET_LITE0_ENTRY = Entry(
    "efficientnet_lite0",
    "image classification, kernels of 3 and 5",
    partial(InvertedResiduals, EFFICIENTNET_LITE0),
    images(3, 224, 224),
    settle,
)
