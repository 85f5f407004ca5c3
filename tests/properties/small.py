"""A small network of several operators, quantised like real ones, for tests that cut and damage."""

from __future__ import annotations

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

INPUT_SHAPE = (1, 6, 5, 3)
OUTPUT_SHAPE = (1, 4)
OPERATORS = ("CONV_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX")


def small_network() -> bytes:
    """Return a convolution, a dense layer and a softmax, int8, with random weights."""
    rng = np.random.default_rng(1)
    net = NetworkBuilder("small")
    x = net.tensor("x", INPUT_SHAPE, "int8", 0.04, 3)
    filters = net.constant(
        "filters",
        rng.integers(-127, 128, (4, 3, 3, 3), np.int8),
        [0.010, 0.012, 0.008, 0.011],
        [0] * 4,
    )
    bias = net.constant(
        "bias", rng.integers(-500, 500, 4, np.int32), [0.00040, 0.00048, 0.00032, 0.00044], [0] * 4
    )
    conv = net.tensor("conv", (1, 3, 3, 4), "int8", 0.2, -11)
    flat = net.tensor("flat", (1, 36), "int8", 0.2, -11)
    shape = net.constant("shape", np.array([1, 36], np.int32))
    weights = net.constant("weights", rng.integers(-127, 128, (4, 36), np.int8), 0.006)
    dense = net.tensor("dense", (1, 4), "int8", 0.1, 5)
    y = net.tensor("y", OUTPUT_SHAPE, "int8", 1 / 256, -128)
    window = {"padding": 0, "stride_h": 2, "stride_w": 2, "fused_activation_function": 1}
    net.operator("CONV_2D", [x, filters, bias], [conv], ("Conv2DOptions", window))
    net.operator("RESHAPE", [conv, shape], [flat], ("ReshapeOptions", {"new_shape": [1, 36]}))
    net.operator("FULLY_CONNECTED", [flat, weights, -1], [dense], ("FullyConnectedOptions", {}))
    net.operator("SOFTMAX", [dense], [y], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([x], [y])
