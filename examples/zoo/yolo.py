"""A small detector in the manner of YOLOv5: CSP blocks, a feature pyramid, and a decoding head.

Ref: Redmon et al., "You Only Look Once", 2016; the decoding of boxes is that of YOLOv5.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.entry import Entry, settle
from zoo.inputs import images

SIDE = 160
CLASSES = 20
ANCHORS = (((10, 14), (23, 27), (37, 58)), ((81, 82), (135, 120), (100, 150)))
STRIDES = (8, 16)


class Conv(nn.Sequential):
    """A convolution that keeps the size at stride 1, batch norm and SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs),
            nn.SiLU(),
        )


class Csp(nn.Module):
    """Half of the channels pass a residual bottleneck, half do not."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        half = outputs // 2
        self.straight = Conv(inputs, half, 1)
        self.entry = Conv(inputs, half, 1)
        self.bottleneck = nn.Sequential(Conv(half, half, 1), Conv(half, half, 3))
        self.join = Conv(outputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.entry(x)
        return self.join(torch.cat([y + self.bottleneck(y), self.straight(x)], 1))


class PyramidPool(nn.Module):
    """The same map seen through windows of 1, 5, 9 and 13."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.entry = Conv(channels, channels // 2, 1)
        self.pool = nn.MaxPool2d(5, stride=1, padding=2)
        self.join = Conv(channels * 2, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.entry(x)]
        for _ in range(3):
            maps.append(self.pool(maps[-1]))
        return self.join(torch.cat(maps, 1))


class Head(nn.Module):
    """Boxes of one scale: [N, C, H, W] -> x, y, width, height in pixels, and scores 0..1.

    The result is [N, H * W * anchors, 5 + classes].
    """

    grid: Tensor
    anchors: Tensor

    def __init__(self, channels: int, stride: int, anchors: tuple[tuple[int, int], ...]) -> None:
        super().__init__()
        self.count, self.stride = len(anchors), stride
        self.predict = nn.Conv2d(channels, self.count * (5 + CLASSES), 1)
        cells = torch.arange(SIDE // stride, dtype=torch.float32)
        y, x = torch.meshgrid(cells, cells, indexing="ij")
        self.register_buffer("grid", torch.stack([x, y], -1)[None, None] - 0.5)
        self.register_buffer("anchors", torch.tensor(anchors).float().view(1, -1, 1, 1, 2))

    def forward(self, x: Tensor) -> Tensor:
        batch, _, height, width = x.shape
        y = self.predict(x).view(batch, self.count, 5 + CLASSES, height, width)
        y = torch.sigmoid(y.permute(0, 1, 3, 4, 2))
        centre, size, scores = y.split([2, 2, 1 + CLASSES], -1)
        centre = (centre * 2 + self.grid) * self.stride
        size = (size * 2) ** 2 * self.anchors
        return torch.cat([centre, size, scores], -1).reshape(batch, -1, 5 + CLASSES)


class Yolo(nn.Module):
    """[N, 3, 160, 160] -> boxes of both scales [N, 1500, 25]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 32, 3, 2), Csp(32, 32))
        self.middle = nn.Sequential(Conv(32, 64, 3, 2), Csp(64, 64))
        self.deep = nn.Sequential(Conv(64, 128, 3, 2), Csp(128, 128), PyramidPool(128))
        self.lateral = Conv(128, 64, 1)
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")
        self.merge_up = Csp(128, 64)
        self.down = Conv(64, 64, 3, 2)
        self.merge_down = Csp(128, 128)
        self.heads = nn.ModuleList(
            Head(channels, stride, anchors)
            for channels, stride, anchors in zip((64, 128), STRIDES, ANCHORS, strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        middle = self.middle(self.stem(x))
        lateral = self.lateral(self.deep(middle))
        fine = self.merge_up(torch.cat([self.upsample(lateral), middle], 1))
        coarse = self.merge_down(torch.cat([self.down(fine), lateral], 1))
        boxes = [head(y) for head, y in zip(self.heads, (fine, coarse), strict=True)]
        return torch.cat(boxes, 1)


ENTRY = Entry("yolo", "detection, with its decoding head", Yolo, images(3, SIDE, SIDE), settle)
