"""Layers and tensors of a quantised network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from mizzen.diagnostics import Origin
from mizzen.graph import Graph, Value
from mizzen.mesh.network.edges import Edges

HEIGHT, WIDTH, CHANNEL = 1, 2, 3
"""Axes of a feature map, `[N, H, W, C]`."""


class LayerKind(Enum):
    """How the output of a layer depends on its inputs.

    CONVOLUTION  `[N, H, W, C]`: a window of the first input, all its channels; matrix products
                 with constant weights are convolutions with a window of one
    DEPTHWISE    a window of the first input, the same channel
    POOLING      a window of the first input, the same channel; no weights
    POINTWISE    the same position of every input, which may be broadcast
    MOVEMENT     inputs laid into the output at offsets: concatenation, padding, slices
    MATMUL       `[N, H, C]`, `[N, C, W]`: a row of the first input, a column of the second; further
                 inputs position by position
    REDUCTION    every position of some axes, the same position of the others: sums, softmax
    GENERAL      everything of every input: softmax, reshape, whatever has no rule. It is not split
    """

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    POOLING = "pooling"
    POINTWISE = "pointwise"
    MOVEMENT = "movement"
    MATMUL = "matmul"
    REDUCTION = "reduction"
    GENERAL = "general"


WINDOWED = frozenset({LayerKind.CONVOLUTION, LayerKind.DEPTHWISE, LayerKind.POOLING})


@dataclass(frozen=True, slots=True)
class Tensor:
    """What layers give and take: dense, with elements of `item_bytes` bytes."""

    name: str
    shape: tuple[int, ...]
    item_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole tensor."""
        return math.prod(self.shape) * self.item_bytes


@dataclass(frozen=True, slots=True)
class Window:
    """A window over height and width, each pair as (height, width).

    `padding` is what lies before the first row and column; what lies after the last follows from
    the output's shape.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: it takes tensors and gives one.

    inputs            indices of tensors. Of a windowed layer the first goes through the window, the
                      others are added position by position
    window            of a windowed layer
    input_channels    of a convolution, the sum's length without the kernel
    weight_item_bytes bytes of a weight; weights are ``kernel x input_channels`` an output channel
    channel_bytes     bytes an output channel besides: bias, multiplier, shift
    constant_bytes    bytes that every tile of the layer has, whatever its box: tables
    offsets           of a movement, where each input begins in the output, which may be negative
    reduced_axes      of a reduction
    chain             the operations, as a graph whose inputs are the layer's in their order and
                      whose one output is the layer's; None for networks of shapes only
    """

    name: str
    kind: LayerKind
    inputs: tuple[int, ...]
    output: int
    window: Window | None = None
    input_channels: int = 0
    weight_item_bytes: int = 1
    channel_bytes: int = 0
    constant_bytes: int = 0
    offsets: tuple[tuple[int, ...], ...] = ()
    reduced_axes: tuple[int, ...] = ()
    chain: Graph | None = None
    origin: Origin | None = None


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in an order of execution, the tensors between them, what comes in and goes out.

    graph   the whole network as operations, which the results of a mesh are compared with; None for
            networks of shapes only
    values  the graph's value of each tensor
    edges   how the user's inputs and outputs are turned into the network's; None where they are not
    """

    name: str
    tensors: tuple[Tensor, ...]
    layers: tuple[Layer, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    graph: Graph | None = None
    values: tuple[Value, ...] = ()
    edges: Edges | None = None

    @property
    def is_executable(self) -> bool:
        """Whether every layer has its operations and weights."""
        return all(layer.chain is not None for layer in self.layers)

    @cached_property
    def producer(self) -> dict[int, int]:
        """Tensor to the layer that gives it."""
        return {layer.output: index for index, layer in enumerate(self.layers)}

    @cached_property
    def consumers(self) -> dict[int, tuple[int, ...]]:
        """Tensor to the layers that take it, in order."""
        consumers: dict[int, list[int]] = {index: [] for index in range(len(self.tensors))}
        for index, layer in enumerate(self.layers):
            for tensor in dict.fromkeys(layer.inputs):
                consumers[tensor].append(index)
        return {tensor: tuple(layers) for tensor, layers in consumers.items()}

    def weight_bytes(self, layer: Layer) -> int:
        """Return the bytes that a layer holds, when it is not split."""
        channels = self.tensors[layer.output].shape[-1]
        return channels * _channel_bytes(layer, layer.input_channels) + layer.constant_bytes


def _channel_bytes(layer: Layer, input_channels: int) -> int:
    """Return the bytes of weights and constants of one output channel."""
    if layer.window is None or not input_channels:
        return layer.channel_bytes
    kernel = math.prod(layer.window.kernel)
    return kernel * input_channels * layer.weight_item_bytes + layer.channel_bytes


def held_bytes(layer: Layer, channels: int, input_channels: int) -> int:
    """Return the bytes of constants of a tile with so many output and input channels.

    A depthwise layer has `input_channels` 1, whatever its tile.
    """
    return channels * _channel_bytes(layer, input_channels) + layer.constant_bytes
