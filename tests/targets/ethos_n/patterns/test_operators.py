"""Single operators: what they become, and that the network computes what the graph does.

Bounds: the graph rounds sums once, with 31 bits; the network with multipliers of 16 bits. Each
requantisation is off by half a step and less than 2**-16 of the number, so that both differ by one
step at most: |0.5 + 0.5 + 256 / 2**16| < 2. What only moves numbers is equal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.graph import Value

from .graphs import Array, Net, differences, kinds, names, whole

Build = Callable[[Net], Value]
Q = (0.05, 3)


FINE = (0.02, 3)
"""Of inputs of which functions do not saturate."""


def reals(q: tuple[float, int] = Q) -> Array:
    """Return what the integers of a table stand for."""
    return (np.arange(-128, 128) - q[1]) * q[0]


def leaky(alpha: float) -> Array:
    return np.where(reals() < 0, alpha * reals(), reals())


def by_channel(net: Net) -> Value:
    scales = (0.001, 0.002, 0.004, 0.003)
    return net.conv(net.input(1, 8, 8, 16), 4, scales=scales, recorded=False)


def cut_at_once(net: Net) -> Value:
    x = net.input(1, 16, 16, 16)
    b = net.begin("CONV_2D")
    shapes = b.shape((0, 0, 0, 0)), b.shape((1, 15, 15, 16))
    cut = b("SLICE", x, *shapes, quantization=x.quantization)
    return net.conv(cut, 8, (1, 1), stride=(2, 2), pad=(0, 0, 0, 0))


def padded(net: Net) -> Value:
    x = net.pad(net.input(1, 16, 16, 16), (0, 0, 0, 1, 0, 1, 0, 0))
    return net.conv(x, 8, stride=(2, 2), pad=(0, 0, 0, 0))


def of_one_channel(net: Net) -> Value:
    return net.conv(net.input(1, 8, 8, 1), 8, depthwise=True, q=(0.05, 0))


def requantized_average(net: Net) -> Value:
    x = net.pool("AVG_POOL2D", net.input(1, 8, 8, 16), (8, 8), (1, 1))
    return net.requantize(x, (0.02, 1))


def summed(net: Net) -> Value:
    x, y = net.input(1, 7, 9, 16), net.input(1, 7, 9, 16, q=(0.11, -20))
    return net.combined("ADD", x, y, (0.17, -7))


def doubled_by_itself(net: Net) -> Value:
    x = net.input(1, 8, 8, 16)
    return net.combined("ADD", x, x, (0.1, 3))


def tanh(net: Net) -> Value:
    return net.table(net.input(1, 8, 8, 16, q=FINE), np.tanh(reals(FINE)), (1 / 128, 0), "TANH")


def sigmoid(net: Net, q: tuple[float, int] = (1 / 256, -128)) -> Value:
    return net.table(net.input(1, 8, 8, 16, q=FINE), 1 / (1 + np.exp(-reals(FINE))), q)


OPERATORS: dict[str, tuple[Build, str, str, int]] = {
    "convolution": (lambda n: n.conv(n.input(1, 9, 12, 16), 24), "qnn_conv2d", "Convolution", 1),
    "scales by channel that only RESCALE has": (by_channel, "qnn_conv2d", "Convolution", 1),
    "scales by channel": (
        lambda n: n.conv(n.input(1, 8, 8, 16), 2, scales=(0.003, 0.004)),
        "qnn_conv2d", "Convolution", 1,
    ),
    "weights with a zero point": (
        lambda n: n.conv(n.input(1, 8, 8, 16), 8, weights_zero=-9), "qnn_conv2d", "Convolution", 1,
    ),
    "stride 2": (
        lambda n: n.conv(n.input(1, 16, 16, 16), 8, stride=(2, 2), pad=(0, 1, 0, 1)),
        "qnn_conv2d", "Convolution", 1,
    ),
    "stride 2 of 1x1": (cut_at_once, "qnn_conv2d", "Convolution", 1),
    "PAD in front": (padded, "qnn_conv2d", "Convolution", 1),
    "depthwise": (
        lambda n: n.conv(n.input(1, 8, 8, 16), 1, depthwise=True, q=(0.1, 0)),
        "qnn_conv2d", "DepthwiseConvolution", 1,
    ),
    "depthwise by channel": (
        lambda n: n.conv(
            n.input(1, 8, 8, 3), 1, depthwise=True, q=(0.1, 0), scales=(0.003, 0.002, 0.004)
        ),
        "qnn_conv2d", "DepthwiseConvolution", 1,
    ),
    "depthwise of one channel": (of_one_channel, "qnn_conv2d", "Convolution", 1),
    "transposed": (
        lambda n: n.transposed(n.input(1, 8, 8, 16), 8),
        "qnn_conv2d_transpose", "TransposeConvolution", 1,
    ),
    "dense": (
        lambda n: n.dense(n.input(1, 4, 4, 16), 10), "reshape qnn_fc reshape", "FullyConnected", 1,
    ),
    "dense of rows": (
        lambda n: n.dense(n.input(1, 64), 10), "reshape qnn_fc reshape", "FullyConnected", 1,
    ),
    "dense by channel": (
        lambda n: n.dense(n.input(1, 256), 2, scales=(0.003, 0.004)),
        "reshape qnn_conv2d reshape", "Convolution", 1,
    ),
    "maximum 2x2": (
        lambda n: n.pool("MAX_POOL2D", n.input(1, 16, 16, 16), (2, 2), (2, 2)),
        "nn.max_pool2d", "Pooling", 0,
    ),
    "maximum 3x3": (
        lambda n: n.pool("MAX_POOL2D", n.input(1, 17, 17, 16), (3, 3), (2, 2)),
        "nn.max_pool2d", "Pooling", 0,
    ),
    "maximum 3x3 padded around, even": (
        lambda n: n.pool(
            "MAX_POOL2D", n.input(1, 16, 16, 8, q=(0.05, -128)), (3, 3), (2, 2), (1, 0, 1, 0)
        ),
        "nn.max_pool2d_padded", "DepthwiseConvolution Pooling", 0,
    ),
    "maximum 3x3 padded around, odd": (
        lambda n: n.pool(
            "MAX_POOL2D", n.input(1, 9, 9, 20, q=(0.05, -128)), (3, 3), (2, 2), (1, 1, 1, 1)
        ),
        "nn.max_pool2d_padded", "DepthwiseConvolution Pooling", 0,
    ),
    "average of a plane in stages": (
        lambda n: n.pool("AVG_POOL2D", n.input(1, 14, 14, 16), (14, 14), (1, 1)),
        "qnn_avg_pool2d_in_stages", "DepthwiseConvolution DepthwiseConvolution", 1,
    ),
    "average of a plane with a stride": (
        lambda n: n.pool("AVG_POOL2D", n.input(1, 5, 5, 16), (5, 5), (5, 5)),
        "qnn_avg_pool2d_to_depthwise", "DepthwiseConvolution", 1,
    ),
    "average 3x3": (
        lambda n: n.pool("AVG_POOL2D", n.input(1, 8, 8, 16), (3, 3), (1, 1), (1, 1, 1, 1)),
        "qnn_avg_pool2d", "Pooling", 1,
    ),
    "average of a plane": (
        lambda n: n.pool("AVG_POOL2D", n.input(1, 8, 8, 16), (8, 8), (1, 1)),
        "qnn_avg_pool2d", "Pooling", 1,
    ),
    "average of other planes": (
        lambda n: n.pool("AVG_POOL2D", n.input(1, 3, 3, 16), (3, 3), (1, 1)),
        "qnn_avg_pool2d_to_depthwise", "DepthwiseConvolution", 1,
    ),
    "average of windows": (
        lambda n: n.pool("AVG_POOL2D", n.input(1, 16, 16, 16), (2, 2), (2, 2)),
        "qnn_avg_pool2d_to_depthwise", "DepthwiseConvolution", 1,
    ),
    # A mean is within a step of the input, which is 2.5 of the output's, and requantised.
    "average that is requantised": (
        requantized_average, "qnn_avg_pool2d qnn_requantize", "Pooling DepthwiseConvolution", 3,
    ),
    "mean": (
        lambda n: n.mean(n.input(1, 7, 7, 16), (0.05, 3)), "qnn_mean reshape", "MeanXy", 1,
    ),
    "mean in other steps": (
        lambda n: n.mean(n.input(1, 7, 7, 16), (0.02, 1)),
        "qnn_mean_to_depthwise reshape", "DepthwiseConvolution", 1,
    ),
    "mean of 8x8 in other steps": (
        lambda n: n.mean(n.input(1, 8, 8, 16), (0.02, 1)),
        "qnn_mean reshape", "MeanXy DepthwiseConvolution", 3,
    ),
    "mean of other planes": (
        lambda n: n.mean(n.input(1, 3, 3, 16), (0.03, 1)),
        "qnn_mean_to_depthwise reshape", "DepthwiseConvolution", 1,
    ),
    "sigmoid": (sigmoid, "qnn_sigmoid", "Sigmoid", 1),
    "sigmoid in other steps": (
        lambda n: sigmoid(n, (0.0037, -128)), "qnn_sigmoid", "Sigmoid Requantize", 3,
    ),
    "tanh": (tanh, "qnn_tanh", "Tanh", 1),
    "leaky ReLU": (
        lambda n: n.table(n.input(1, 8, 8, 16), leaky(0.1), (0.06, -20), "LEAKY_RELU"),
        "qnn_leaky_relu", "LeakyRelu", 1,
    ),
    "leaky ReLU of numbers that are not negative": (
        lambda n: n.table(
            n.input(1, 8, 8, 16, q=(0.02, -128)), reals((0.02, -128)), (0.03, -128), "LEAKY_RELU"
        ),
        "qnn_leaky_relu",
        "LeakyRelu",
        1,
    ),
    "clamp": (lambda n: n.clamp(n.input(1, 8, 8, 16), -60, 110), "clip", "Relu", 0),
    "requantisation": (
        lambda n: n.requantize(n.input(1, 8, 8, 16), (0.07, -9)), "qnn_requantize", "Requantize", 1,
    ),
    "sum": (summed, "qnn_add", "Addition", 1),
    "sum with itself": (doubled_by_itself, "qnn_add", "Addition", 1),
    "concatenation": (
        lambda n: n.concat(n.input(1, 8, 8, 16), n.input(1, 8, 8, 32)),
        "qnn.concatenate", "Concatenation", 0,
    ),
    "concatenation of rows": (
        lambda n: n.concat(n.input(1, 5, 8, 3), n.input(1, 2, 8, 3), axis=1),
        "qnn.concatenate", "Concatenation", 0,
    ),
    "blocks of channels": (
        lambda n: n.spread(n.input(1, 4, 6, 32)), "nn.depth_to_space", "DepthToSpace", 0,
    ),
    "nearest pixels": (
        lambda n: n.doubled(n.input(1, 4, 6, 16)), "qnn_resize", "Resize", 1,
    ),
    "change of shape": (
        lambda n: n.reshape(n.input(1, 4, 6, 16), 1, 8, 48), "reshape", "Reshape", 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name: str) -> None:
    build, composites, operations, bound = OPERATORS[name]
    net = Net()
    net.outputs(build(net))
    assert names(net.graph) == composites.split()
    assert kinds(whole(net)) == operations.split()
    (difference,) = differences(net)
    assert difference <= bound
