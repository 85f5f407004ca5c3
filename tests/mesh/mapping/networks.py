"""A small network for tests of mappings."""

from __future__ import annotations

from mizzen.mesh.network import Layer, LayerKind, Network, Tensor, Window


def small_network(height: int = 12, channels: int = 48) -> Network:
    """Return a residual network of five layers, with all ways to split."""
    tensors: list[Tensor] = []
    layers: list[Layer] = []

    def tensor(shape: tuple[int, ...]) -> int:
        tensors.append(Tensor(f"t{len(tensors)}", shape, 1))
        return len(tensors) - 1

    def convolution(taken: int, kernel: int, *added: int) -> int:
        given = tensor((1, height, height, channels))
        window = Window((kernel, kernel), padding=(kernel // 2, kernel // 2))
        kind, inputs = LayerKind.CONVOLUTION, (taken, *added)
        depth = tensors[taken].shape[-1]
        name = f"convolution {len(layers)}"
        layers.append(Layer(name, kind, inputs, given, window, depth, channel_bytes=9))
        return given

    start = tensor((1, height, height, 8))
    first = convolution(start, 3)
    last = convolution(convolution(convolution(first, 1), 3), 1, first)
    pooled = tensor((1, 1, 1, channels))
    layers.append(Layer("pool", LayerKind.POOLING, (last,), pooled, Window((height, height))))
    return Network("small", tuple(tensors), tuple(layers), (start,), (pooled,))
