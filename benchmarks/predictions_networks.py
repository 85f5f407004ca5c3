"""Networks by their shape, with random weights, where trained ones cannot be had.

Weights compress in their own way, so that a network whose weights decide its time takes a little
more here than the trained one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

SCALE = 0.05
SAME, VALID, RELU6 = 0, 1, 3


@dataclass(frozen=True)
class Map:
    """A feature map: its tensor, its size and its channels."""

    index: int
    size: int
    channels: int


class Shaped:
    """Builds a network of 8 bits layer by layer."""

    def __init__(self, size: int, channels: int) -> None:
        self._net = NetworkBuilder("by shape")
        self._random = np.random.default_rng(1)
        self._count = 0
        self.input = self._map(size, channels)

    def conv(self, x: Map, out: int, kernel: int = 1, stride: int = 1, act: int = RELU6) -> Map:
        """Add a convolution of SAME padding."""
        fan = kernel * kernel * x.channels
        weights = self._weights((out, kernel, kernel, x.channels), out, fan, 0)
        y = self._map(-(-x.size // stride), out)
        options = {"padding": SAME, "stride_h": stride, "stride_w": stride,
                   "fused_activation_function": act}  # fmt: skip
        self._add("CONV_2D", [x.index, *weights], y, "Conv2DOptions", options)
        return y

    def depthwise(self, x: Map, stride: int = 1, kernel: int = 3) -> Map:
        """Add a depthwise convolution."""
        weights = self._weights((1, kernel, kernel, x.channels), x.channels, kernel * kernel, 3)
        y = self._map(-(-x.size // stride), x.channels)
        options = {"padding": SAME, "stride_h": stride, "stride_w": stride,
                   "depth_multiplier": 1, "fused_activation_function": RELU6}  # fmt: skip
        self._add("DEPTHWISE_CONV_2D", [x.index, *weights], y, "DepthwiseConv2DOptions", options)
        return y

    def pool(self, x: Map, kernel: int, stride: int, kind: str = "MAX_POOL_2D") -> Map:
        """Add a pooling without padding."""
        y = self._map((x.size - kernel) // stride + 1, x.channels)
        options = {"padding": VALID, "stride_h": stride, "stride_w": stride,
                   "filter_height": kernel, "filter_width": kernel}  # fmt: skip
        self._add(kind, [x.index], y, "Pool2DOptions", options)
        return y

    def add(self, x: Map, y: Map) -> Map:
        """Add two maps."""
        z = self._map(x.size, x.channels)
        self._add("ADD", [x.index, y.index], z, "AddOptions", {})
        return z

    def finish(self, *outputs: Map) -> bytes:
        """Return the file."""
        return self._net.finish([self.input.index], [each.index for each in outputs])

    def _map(self, size: int, channels: int) -> Map:
        self._count += 1
        shape = (1, size, size, channels)
        index = self._net.tensor(f"map{self._count}", shape, np.int8, SCALE, 0)
        return Map(index, size, channels)

    def _weights(self, shape: tuple[int, ...], out: int, fan: int, axis: int) -> tuple[int, int]:
        self._count += 1
        spread = np.clip(self._random.normal(0, 40, shape).round(), -127, 127).astype(np.int8)
        scale = 1.0 / (40 * fan**0.5)
        weights = self._net.constant(f"weights{self._count}", spread, [scale] * out, axis=axis)
        bias = self._random.integers(-500, 500, out).astype(np.int32)
        return weights, self._net.constant(f"bias{self._count}", bias, [scale * SCALE] * out)

    def _add(
        self, kind: str, inputs: list[int], y: Map, options: str, fields: dict[str, int]
    ) -> None:
        self._net.operator(kind, inputs, [y.index], (options, {**fields}))


def yolo_v1_96() -> bytes:
    """The detector of uNPU-Bench. Ref: its model/yolo/yolov1_96_max78000.py."""
    net = Shaped(96, 3)
    x = net.conv(net.input, 16, 3)
    x = net.conv(net.pool(x, 2, 2), 16, 3)
    x = net.conv(net.pool(x, 2, 2), 16)
    for out, kernel in ((32, 3), (16, 1), (32, 3), (16, 1), (32, 3)):
        x = net.conv(x, out, kernel)
    x = net.conv(net.pool(x, 2, 2), 16)
    for out, kernel in ((32, 3), (16, 1), (32, 3), (16, 1), (32, 3), (16, 1), (32, 3)):
        x = net.conv(x, out, kernel)
    for out in (32, 16, 16):
        x = net.conv(x, out)
    return net.finish(net.conv(x, 12, act=0))


BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
          (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
"""Of MobileNetV2: times wider, channels, how often, stride. Ref: arXiv 1801.04381, table 2."""


def _eighths(channels: float) -> int:
    """Round channels as the network's authors do."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def mobilenet_v2(width: float) -> bytes:
    """MobileNetV2 of 224 x 224, without its softmax."""
    net = Shaped(224, 3)
    x = net.conv(net.input, _eighths(32 * width), 3, 2)
    for wider, channels, times, stride in BLOCKS:
        for at in range(times):
            before, out = x, _eighths(channels * width)
            x = net.conv(x, before.channels * wider) if wider > 1 else x
            x = net.conv(net.depthwise(x, stride if at == 0 else 1), out, act=0)
            if at:
                x = net.add(before, x)
    x = net.conv(x, max(1280, _eighths(1280 * width)))
    return net.finish(net.conv(net.pool(x, 7, 1, "AVERAGE_POOL_2D"), 1000, act=0))


NETWORKS: dict[str, Callable[[], bytes]] = {
    "yolo_v1_96": yolo_v1_96,
    "mobilenet_v2_035": lambda: mobilenet_v2(0.35),
}
"""By the names that rows of predictions give them."""
