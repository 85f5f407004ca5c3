"""Sequences by hand: a short network of convolutions, a sum and a pool."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.commands_values import ElementwiseMode, Layout, PoolingMode
from mizzen.targets.ethos_u.operations import (
    Activation,
    Box,
    ChannelScales,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
    Tensor,
)

INT8 = np.dtype(np.int8)
FULL = Activation(-128, 127)


class Network:
    """Collects tensors and operations; each method returns the index of what it writes."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.tensors = [Tensor("input", shape, INT8, Role.INPUT, Layout.NHWC)]
        self.operations: list[Operation] = []
        self._random = np.random.default_rng(seed)

    def convolution(
        self, of: int, channels: int, side: int = 1, stride: int = 1, *, depthwise: bool = False
    ) -> int:
        """Add a convolution that pads to keep the size, divided by the stride."""
        height, width, depth = self.tensors[of].shape
        channels = depth if depthwise else channels
        shape = -(-height // stride), -(-width // stride), channels
        pads = [max(0, (out - 1) * stride + side - size)
                for out, size in zip(shape, (height, width), strict=False)]  # fmt: skip
        kernel = Kernel(
            side, side, stride, stride, pad_top=pads[0] // 2, pad_left=pads[1] // 2,
            pad_bottom=pads[0] - pads[0] // 2, pad_right=pads[1] - pads[1] // 2,
        )  # fmt: skip
        size = channels, side, side, 1 if depthwise else depth
        weights = self._random.integers(-127, 128, size).astype(np.int16)
        scales = ChannelScales(
            self._random.integers(-1000, 1000, channels),
            np.full(channels, 1 << 30),
            np.full(channels, 40),
        )
        target = self._tensor(shape)
        self.operations.append(
            Convolution(Origin(), self._map(of), self._map(target), kernel, weights, scales, FULL,
                        depthwise)
        )  # fmt: skip
        return target

    def sum(self, first: int, second: int) -> int:
        """Add an ADD of two tensors."""
        target = self._tensor(self.tensors[first].shape)
        one = Scale(1 << 15, 0)
        self.operations.append(
            Elementwise(Origin(), ElementwiseMode.ADD, self._map(first), self._map(second),
                        self._map(target), FULL, scale=one, scale_a=one, scale_b=one)
        )  # fmt: skip
        return target

    def pool(self, of: int, side: int) -> int:
        """Add a maximum over squares that do not overlap."""
        height, width, depth = self.tensors[of].shape
        target = self._tensor((height // side, width // side, depth))
        kernel = Kernel(side, side, side, side)
        self.operations.append(
            Pooling(Origin(), PoolingMode.MAX, self._map(of), self._map(target), kernel,
                    Scale(1, 0), FULL)
        )  # fmt: skip
        return target

    def sequence(self) -> Sequence:
        """Return the sequence; what was written last is its output."""
        last = self.tensors[-1]
        output = Tensor(last.name, last.shape, last.dtype, Role.OUTPUT, Layout.NHWC)
        tensors = *self.tensors[:-1], output
        return Sequence(tensors, tuple(self.operations), (0,), (len(tensors) - 1,))

    def _tensor(self, shape: Shape) -> int:
        self.tensors.append(Tensor(f"tensor {len(self.tensors)}", shape, INT8))
        return len(self.tensors) - 1

    def _map(self, tensor: int) -> Map:
        return Map(Box(tensor, self.tensors[tensor].shape), INT8)


def residual() -> Sequence:
    """Return a network with a branch, a sum and a pool."""
    network = Network((16, 16, 3))
    first = network.convolution(0, 16, 3, 2)
    wide = network.convolution(first, 24, 1)
    deep = network.convolution(wide, 24, 3, depthwise=True)
    joined = network.sum(wide, deep)
    pooled = network.pool(joined, 2)
    network.convolution(pooled, 40, 3)
    return network.sequence()
