"""Small quantised ONNX networks to compile, and what the graph of one computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.reading import read
from mizzen.graph import Array
from mizzen.reference import evaluate

from ...frontends.onnx.lowering.networks import (  # noqa: TID252 tests are no package with a name
    LIMITS,
    Network,
    Scale,
    edge,
)

X, Y, Z = Scale(0.05, 3), Scale(0.1, -7), Scale(0.02, 11)
WEIGHTS = Scale(0.01)


def convolution(
    network: Network, x: str, channels: int, source: Scale, scale: Scale, seed: int = 0
) -> str:
    """Add a convolution 3 x 3 of real numbers, and round what it gives."""
    rng = np.random.default_rng(seed)
    before = channels if seed else 2
    weights = rng.integers(-127, 128, (channels, before, 3, 3)).astype(np.int8)
    bias = rng.integers(-500, 500, channels).astype(np.int32)
    sums = Scale(float(source.scale) * float(WEIGHTS.scale), dtype="int32")
    inputs = network.weight(weights, WEIGHTS), network.weight(bias, sums)
    y = network.add("Conv", x, *inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return network.both(y, scale)


def whole(dtype: str = "int8") -> Network:
    """Return a network that an NPU takes wholly: a convolution and a Relu of real numbers."""
    network = Network()
    source, target = (
        Scale(each.scale, each.zero + (128 if dtype == "uint8" else 0), dtype) for each in (X, Y)
    )
    x = network.both(network.input("image", (1, 2, 6, 5)), source)
    y = convolution(network, x, 4, source, target)
    network.outputs.append(network.add("Relu", y))
    network.outputs[0] = network.both(network.outputs[0], target)
    return network


def torn() -> Network:
    """Return two convolutions with an operator of real numbers between them."""
    network = Network()
    x = network.both(network.input("image", (1, 2, 6, 5)), X)
    middle = network.both(network.add("LRN", convolution(network, x, 4, X, Y), size=3), Z)
    network.outputs.append(convolution(network, middle, 4, Z, Y, seed=1))
    return network


def images(count: int = 8, seed: int = 1) -> Array:
    """Return inputs of these networks."""
    return np.random.default_rng(seed).uniform(-6, 6, (count, 1, 2, 6, 5)).astype(np.float32)


def outputs(artifact: Artifact, *arrays: Array) -> list[Array]:
    """Run an artifact."""
    given = artifact.run(*arrays)
    return list(given) if isinstance(given, tuple) else [given]


def reference(data: bytes, *arrays: Array) -> list[Array]:
    """Return what a file's graph computes, by the meaning of TOSA's operations."""
    graph = lower(read(data, "net.onnx"), LIMITS).graph
    results = [evaluate(graph, inference, custom=edge) for inference in zip(*arrays, strict=True)]
    return [np.stack(each) for each in zip(*results, strict=True)]


def differing(ours: Sequence[Array], theirs: Sequence[Array]) -> int:
    """Return how many elements differ."""
    return sum(
        int(np.count_nonzero(one.reshape(other.shape) != other))
        for one, other in zip(ours, theirs, strict=True)
    )
