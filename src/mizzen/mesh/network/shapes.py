"""Well-known networks as shapes only, for studies of mappings: 8-bit weights and activations.

Sources: He et al., arXiv:1512.03385 (ResNet, its stride in the 3x3 convolution, as torchvision
has it); Howard et al., arXiv:1704.04861 (MobileNet); Sandler et al., arXiv:1801.04381
(MobileNetV2);
Vaswani et al., arXiv:1706.03762 (transformer encoder block).
"""

from __future__ import annotations

from collections.abc import Callable

from mizzen.mesh.network.network import CHANNEL, HEIGHT, WIDTH, Layer, LayerKind, Network, Tensor
from mizzen.mesh.network.network import Window as _Window

CHANNEL_BYTES = 9
"""Of an output channel: bias (4), multiplier (4), shift (1)."""


class _Shapes:
    """A network while it is written down, layer by layer."""

    def __init__(self, name: str, *shape: int) -> None:
        self.name = name
        self.tensors = [Tensor("input", shape, 1)]
        self.layers: list[Layer] = []

    def network(self) -> Network:
        """Return the network, whose output is the last tensor."""
        last = len(self.tensors) - 1
        return Network(self.name, tuple(self.tensors), tuple(self.layers), (0,), (last,))

    def add(
        self,
        kind: LayerKind,
        inputs: tuple[int, ...],
        shape: tuple[int, ...],
        window: _Window | None = None,
        input_channels: int = 0,
        axes: tuple[int, ...] = (),
    ) -> int:
        """Add a layer; return the tensor that it gives."""
        name = f"{kind.value} {len(self.layers)}"
        output = len(self.tensors)
        self.tensors.append(Tensor(name, shape, 1))
        split = kind in (LayerKind.CONVOLUTION, LayerKind.DEPTHWISE)
        channel_bytes = CHANNEL_BYTES if split else 0
        layer = Layer(
            name,
            kind,
            inputs,
            output,
            window,
            input_channels,
            channel_bytes=channel_bytes,
            reduced_axes=axes,
        )
        self.layers.append(layer)
        return output

    def windowed(
        self,
        kind: LayerKind,
        taken: int,
        channels: int,
        kernel: int,
        stride: int = 1,
        added: tuple[int, ...] = (),
    ) -> int:
        """Add a convolution or pooling with half the kernel as padding."""
        shape = self.tensors[taken].shape
        padding = kernel // 2
        height, width = (
            (shape[axis] + 2 * padding - kernel) // stride + 1 for axis in (HEIGHT, WIDTH)
        )
        window = _Window((kernel, kernel), (stride, stride), padding=(padding, padding))
        summed = {LayerKind.CONVOLUTION: shape[CHANNEL], LayerKind.DEPTHWISE: 1}.get(kind, 0)
        return self.add(kind, (taken, *added), (1, height, width, channels), window, summed)

    def convolution(
        self, taken: int, channels: int, kernel: int = 1, stride: int = 1, *added: int
    ) -> int:
        """Add a convolution, to whose sums other tensors may be added."""
        return self.windowed(LayerKind.CONVOLUTION, taken, channels, kernel, stride, added)

    def depthwise(self, taken: int, stride: int = 1) -> int:
        """Add a depthwise convolution of 3 x 3."""
        channels = self.tensors[taken].shape[CHANNEL]
        return self.windowed(LayerKind.DEPTHWISE, taken, channels, 3, stride)

    def mean(self, taken: int) -> int:
        """Add the average over height and width."""
        _, height, width, channels = self.tensors[taken].shape
        window = _Window((height, width))
        return self.add(LayerKind.POOLING, (taken,), (1, 1, 1, channels), window)


Block = Callable[[_Shapes, int, int, int], int]


def _basic(shapes: _Shapes, taken: int, channels: int, stride: int) -> int:
    middle = shapes.convolution(taken, channels, 3, stride)
    same = stride == 1 and shapes.tensors[taken].shape[CHANNEL] == channels
    beside = taken if same else shapes.convolution(taken, channels, 1, stride)
    return shapes.convolution(middle, channels, 3, 1, beside)


def _bottleneck(shapes: _Shapes, taken: int, channels: int, stride: int) -> int:
    narrow = shapes.convolution(taken, channels)
    middle = shapes.convolution(narrow, channels, 3, stride)
    wide = 4 * channels
    same = stride == 1 and shapes.tensors[taken].shape[CHANNEL] == wide
    beside = taken if same else shapes.convolution(taken, wide, 1, stride)
    return shapes.convolution(middle, wide, 1, 1, beside)


def _resnet(name: str, block: Block, depths: tuple[int, ...]) -> Network:
    shapes = _Shapes(name, 1, 224, 224, 3)
    last = shapes.convolution(0, 64, 7, 2)
    last = shapes.windowed(LayerKind.POOLING, last, 64, 3, 2)
    for stage, depth in enumerate(depths):
        for index in range(depth):
            last = block(shapes, last, 64 << stage, 2 if stage and not index else 1)
    shapes.convolution(shapes.mean(last), 1000)
    return shapes.network()


def resnet18() -> Network:
    """ResNet-18 for 224 x 224 pixels."""
    return _resnet("resnet18", _basic, (2, 2, 2, 2))


def resnet50() -> Network:
    """ResNet-50 for 224 x 224 pixels."""
    return _resnet("resnet50", _bottleneck, (3, 4, 6, 3))


def mobilenet_v1() -> Network:
    """MobileNet with all its channels, for 224 x 224 pixels."""
    shapes = _Shapes("mobilenet-v1", 1, 224, 224, 3)
    last = shapes.convolution(0, 32, 3, 2)
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for channels, stride in [*blocks, *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        last = shapes.convolution(shapes.depthwise(last, stride), channels)
    shapes.convolution(shapes.mean(last), 1000)
    return shapes.network()


def mobilenet_v2() -> Network:
    """MobileNetV2 for 224 x 224 pixels."""
    shapes = _Shapes("mobilenet-v2", 1, 224, 224, 3)
    last = shapes.convolution(0, 32, 3, 2)
    blocks = [
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ]
    for expansion, channels, depth, stride in blocks:
        for index in range(depth):
            last = _inverted(shapes, last, expansion, channels, 1 if index else stride)
    last = shapes.convolution(last, 1280)
    shapes.convolution(shapes.mean(last), 1000)
    return shapes.network()


def _inverted(shapes: _Shapes, taken: int, expansion: int, channels: int, stride: int) -> int:
    before = shapes.tensors[taken].shape[CHANNEL]
    wide = shapes.convolution(taken, expansion * before) if expansion > 1 else taken
    middle = shapes.depthwise(wide, stride)
    beside = (taken,) if stride == 1 and before == channels else ()
    return shapes.convolution(middle, channels, 1, 1, *beside)


def transformer_block(tokens: int = 64, width: int = 128, heads: int = 4) -> Network:
    """An encoder block: attention of some heads, and two layers of which the first is 4 x as wide.

    Norms are left out; tokens lie along the height.
    """
    shapes = _Shapes("transformer-block", 1, tokens, 1, width)
    depth = width // heads
    summed: list[int] = []
    for _ in range(heads):
        query, key, value = (shapes.convolution(0, depth) for _ in range(3))
        queries = shapes.add(LayerKind.GENERAL, (query,), (1, tokens, depth))
        columns = shapes.add(LayerKind.GENERAL, (key,), (1, depth, tokens))
        values = shapes.add(LayerKind.GENERAL, (value,), (1, tokens, depth))
        scores = shapes.add(LayerKind.MATMUL, (queries, columns), (1, tokens, tokens))
        weights = shapes.add(LayerKind.REDUCTION, (scores,), (1, tokens, tokens), axes=(2,))
        attended = shapes.add(LayerKind.MATMUL, (weights, values), (1, tokens, depth))
        summed.append(shapes.add(LayerKind.GENERAL, (attended,), (1, tokens, 1, depth)))
    joined = len(shapes.tensors)
    offsets = tuple((0, 0, 0, head * depth) for head in range(heads))
    shapes.tensors.append(Tensor("heads", (1, tokens, 1, width), 1))
    joining = Layer("heads", LayerKind.MOVEMENT, tuple(summed), joined, offsets=offsets)
    shapes.layers.append(joining)
    attention = shapes.convolution(joined, width, 1, 1, 0)
    shapes.convolution(shapes.convolution(attention, 4 * width), width, 1, 1, attention)
    return shapes.network()


SHAPES: dict[str, Callable[[], Network]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet-v1": mobilenet_v1,
    "mobilenet-v2": mobilenet_v2,
    "transformer-block": transformer_block,
}
"""Networks of shapes only, by the name that the command line has for them."""
