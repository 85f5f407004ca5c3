"""The networks that are compiled in Mesa's manner: one operator each, and chains of several."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from mizzen.conformance.cases import cases
from mizzen.package.tflite.builder import NetworkBuilder

ONE_OPERATOR = (
    "conv_1x5x5x8_o8_k3x3_s1x1_d1x1_same_int8_per_tensor",
    "conv_1x7x9x5_o11_k3x3_s1x1_d1x1_same_int8", "conv_1x8x8x3_o8_k5x3_s2x2_d1x1_same_int8",
    "conv_1x6x5x40_o33_k1x1_s1x1_d1x1_same_act1_int8",
    "conv_1x13x13x100_o20_k3x3_s1x1_d1x1_same_int8", "conv_1x9x9x3_o130_k1x1_s2x2_d1x1_same_int8",
    "dw_1x9x7x11_m1_k3x3_s1x1_d1x1_same_int8", "dw_1x9x9x16_m1_k3x3_s2x2_d1x1_same_int8",
    "fc_1x100_o40_act0_int8", "fc_16x33_o8_act0_int8", "add_1x5x6x7_1x5x6x7_int8",
    "add_1x5x6x7_1x1x1x7_int8", "add_1x1x6x7_1x5x6x7_int8", "sub_1x5x6x7_1x5x6x7_int8",
    "sub_1x1x6x7_1x5x6x7_int8", "mul_1x5x6x7_1x5x6x7_int8", "mul_1x5x6x7_1x1x1x7_int8",
    "mul_1x5x6x7_1x5x6x7_int16", "minimum_1x5x6x7_1x5x6x7_int8", "minimum_1x5x6x7_1x5x6x7_int16",
    "maximum_1x5x6x7_1x1x1x7_int8", "average_pool_2d_1x8x8x16_k2x2_s2x2_d1x1_valid_int8",
    "max_pool_2d_1x9x8x13_k3x3_s2x2_d1x1_same_int8",
    "max_pool_2d_1x8x8x16_k2x2_s2x2_d1x1_valid_int16",
    "average_pool_2d_1x7x5x6_k7x5_s1x1_d1x1_valid_int8", "strided_slice_c", "slice_int8",
    "slice_int16", "pad_int8", "pad_c_int8", "pad_int16", "resize_nearest_neighbor_2_plain",
    "resize_nearest_neighbor_2_plain_int16", "concatenation_c_int8", "concatenation_h_int8",
    "concatenation_w3", "concatenation_c_int16", "logistic_table_1x5x7x9_int8",
    "tanh_table_1x5x7x9_int8", "hard_swish_table_1x5x7x9_int8", "leaky_relu_1x5x7x9_int8",
    "leaky_relu_rescaled_1x5x7x9_int8", "quantize_rescaled_1x5x7x9_int8", "softmax_1x12_int8",
    "softmax_1x6x5x10_int8",
)  # fmt: skip
"""Names among the networks of the conformance suite, which TFLite Micro has kernels for."""


@cache
def one_operator(name: str) -> bytes:
    """Return a network of the suite by its name."""
    (case,) = (case for case in cases() if case.name == name)
    return case.build()


class Chain:
    """Builds a network of INT8 in which operators follow one another."""

    def __init__(self, name: str, seed: int) -> None:
        self.net = NetworkBuilder(name)
        self.rng = np.random.default_rng(seed)
        self.shapes: dict[int, tuple[int, ...]] = {}

    def map(self, shape: tuple[int, ...], scale: float = 0.05, zero: int = 3) -> int:
        """Add a map of INT8."""
        index = self.net.tensor(f"t{len(self.shapes)}", shape, np.int8, scale, zero)
        self.shapes[index] = shape
        return index

    def convolution(self, x: int, outputs: int, taps: int = 3, **more: Any) -> int:
        """Add a convolution of stride 1, or a `depthwise` one; with `sparse` weights, if asked."""
        depthwise, sparse = more.get("depthwise", False), more.get("sparse", False)
        _, height, width, depth = self.shapes[x]
        shape = (1, taps, taps, depth) if depthwise else (outputs, taps, taps, depth)
        weights = self.rng.integers(-127, 128, shape).astype(np.int8)
        if sparse:
            weights[..., ::2] = 0
        scales = self.rng.uniform(0.002, 0.006, outputs).tolist()
        kernel = self.net.constant(f"w{x}", weights, scales, 0, axis=3 if depthwise else 0)
        bias = self.net.constant(
            f"b{x}",
            self.rng.integers(-900, 900, outputs).astype(np.int32),
            [0.05 * each for each in scales],
        )
        y = self.map((1, height, width, outputs), 0.1, -5)
        options: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": 0}
        kind = "Conv2DOptions"
        if depthwise:
            kind, options = "DepthwiseConv2DOptions", {**options, "depth_multiplier": 1}
        self.net.operator("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [x, kernel, bias], [y],
                          (kind, options))  # fmt: skip
        return y

    def pool(self, x: int, kind: str, scale: float = 0.1, zero: int = -5) -> int:
        """Add a pooling of 2 x 2; its result is quantised as its input, which is said anew."""
        _, height, width, depth = self.shapes[x]
        y = self.map((1, height // 2, width // 2, depth), scale, zero)
        options = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2,
                   "padding": 1}  # fmt: skip
        self.net.operator(kind, [x], [y], ("Pool2DOptions", options))
        return y

    def function(self, x: int, kind: str, scale: float, zero: int) -> int:
        """Add a function of one map."""
        y = self.map(self.shapes[x], scale, zero)
        options = {"LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.2})}.get(kind)
        self.net.operator(kind, [x], [y], options)
        return y

    def binary(self, kind: str, x: int, y: int, scale: float = 0.12) -> int:
        """Add an elementwise operator."""
        z = self.map(self.shapes[x], scale, 7)
        names = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}
        self.net.operator(kind, [x, y], [z], (names[kind], {}))
        return z

    def padded(self, x: int) -> int:
        """Add a padding of one on each side."""
        _, height, width, depth = self.shapes[x]
        y = self.map((1, height + 2, width + 2, depth))
        amounts = self.net.constant(f"p{x}", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
        self.net.operator("PAD", [x, amounts], [y], ("PadOptions", {}))
        return y

    def seen_as(self, x: int, shape: tuple[int, ...]) -> int:
        """Add a RESHAPE."""
        y = self.map(shape, 0.1, -5)
        to = self.net.constant(f"s{x}", np.array(shape, np.int32))
        self.net.operator("RESHAPE", [x, to], [y], ("ReshapeOptions", {"new_shape": list(shape)}))
        return y

    def end(self, inputs: list[int], outputs: list[int]) -> bytes:
        """Return the file."""
        return self.net.finish(inputs, outputs)


def _sparse() -> bytes:
    chain = Chain("sparse", 1)
    x = chain.map((1, 6, 7, 24))
    return chain.end([x], [chain.convolution(x, 12, sparse=True)])


def _padded_convolution() -> bytes:
    chain = Chain("padded", 2)
    x = chain.map((1, 6, 6, 8))
    padded = chain.padded(x)
    wide = chain.convolution(padded, 8)
    return chain.end([x], [wide])


def _reshaped() -> bytes:
    chain = Chain("reshaped", 3)
    x = chain.map((1, 4, 6, 8), 0.1, -5)
    return chain.end([x], [chain.seen_as(chain.pool(x, "MAX_POOL_2D"), (1, 1, 2, 24))])


def _residual() -> bytes:
    chain = Chain("residual", 4)
    x = chain.map((1, 8, 8, 8))
    first = chain.convolution(x, 16)
    second = chain.convolution(first, 16, depthwise=True)
    third = chain.convolution(second, 16, 1)
    added = chain.binary("ADD", third, first)
    smooth = chain.function(added, "LOGISTIC", 1 / 256, -128)
    return chain.end([x], [chain.pool(smooth, "MAX_POOL_2D", 1 / 256, -128)])


def _gated() -> bytes:
    chain = Chain("gated", 5)
    x = chain.map((1, 6, 8, 12))
    y = chain.map((1, 6, 8, 12), 0.07, -9)
    gate = chain.function(chain.convolution(x, 12, 1), "TANH", 1 / 128, 0)
    product = chain.binary("MUL", y, gate, 0.03)
    less = chain.binary("SUB", product, x, 0.09)
    bent = chain.function(less, "LEAKY_RELU", 0.09, 5)
    return chain.end([x, y], [chain.convolution(bent, 8)])


def _classifier() -> bytes:
    chain = Chain("classifier", 6)
    x = chain.map((1, 8, 8, 4))
    a = chain.pool(chain.convolution(x, 8), "AVERAGE_POOL_2D")
    b = chain.pool(chain.convolution(a, 8, depthwise=True), "MAX_POOL_2D")
    flat = chain.seen_as(b, (1, 32))
    scores = chain.map((1, 10), 0.1, 0)
    weights = chain.net.constant(
        "f", chain.rng.integers(-127, 128, (10, 32)).astype(np.int8), 0.004
    )
    bias = chain.net.constant("g", chain.rng.integers(-500, 500, 10).astype(np.int32), 0.0004)
    chain.net.operator("FULLY_CONNECTED", [flat, weights, bias], [scores],
                       ("FullyConnectedOptions", {}))  # fmt: skip
    most = chain.map((1, 10), 1 / 256, -128)
    chain.net.operator("SOFTMAX", [scores], [most], ("SoftmaxOptions", {"beta": 1.0}))
    return chain.end([x], [most])


CHAINS = {
    "sparse": _sparse,
    "padded_convolution": _padded_convolution,
    "reshaped": _reshaped,
    "residual": _residual,
    "gated": _gated,
    "classifier": _classifier,
}
LONG = ("residual", "gated", "classifier")
"""Chains of six operators and more."""


def network(name: str) -> bytes:
    """Return a network by its name."""
    return CHAINS[name]() if name in CHAINS else one_operator(name)
