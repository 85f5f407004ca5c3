"""Kernels on the CPU get biases in the type that they read."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer.tflite import TensorType
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.package.tflite.long_biases import with_long_biases

KINDS = ["TRANSPOSE_CONV", "DEPTHWISE_CONV_2D"]
BIAS = [3000, -2000, 1000, -500]


def layer(kind: str, bias: str, dtype: str = "int16") -> bytes:
    """A 16-bit layer of one kernel of ones: outputs are the inputs of a place, and the bias."""
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 3, 3, 4), dtype, 0.5), net.tensor("y", (1, 3, 3, 4), dtype, 0.5)
    b = net.constant("b", np.array(BIAS, bias), 0.5)
    if kind == "TRANSPOSE_CONV":
        size = net.constant("size", np.array([1, 3, 3, 4], np.int32))
        weights = net.constant("w", np.eye(4, dtype=np.int8).reshape(4, 1, 1, 4), 1.0)
        options = {"stride_h": 1, "stride_w": 1, "quantized_bias_type": TensorType.INT32}
        net.operator(kind, [size, weights, x, b], [y], ("TransposeConvOptions", options))
    else:
        weights = net.constant("w", np.ones((1, 1, 1, 4), np.int8), 1.0, axis=3)
        options = {"stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
        net.operator(kind, [x, weights, b], [y], ("DepthwiseConv2DOptions", options))
    return net.finish([x], [y])


def inputs() -> np.ndarray:
    return np.random.default_rng(0).integers(-9000, 9000, (3, 1, 3, 3, 4)).astype(np.int16)


@pytest.mark.parametrize("bias", ["int32", "int64"])
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_add_the_bias_of_the_network(kind: str, bias: str) -> None:
    x = inputs()
    (found,) = CpuKernels(layer(kind, bias)).run([x])
    assert np.array_equal(found, x + BIAS)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize("kind", KINDS)
def test_artifacts_have_the_bias_that_kernels_read(kind: str, accelerator: str) -> None:
    x = inputs()
    for ignored in ([], [kind]):
        artifact = mizzen.compile(layer(kind, "int32"), accelerator, ignore_ops=ignored)
        assert np.array_equal(artifact.run(x[:, 0]), x[:, 0] + BIAS)
        for row in read_network(artifact.data, "net").main.operators:
            assert row.custom == (not ignored)
    tensors = read_network(artifact.data, "net").main.tensors
    assert TensorType.INT64 in {tensor.type for tensor in tensors}


def test_the_option_says_the_type_too() -> None:
    record = with_long_biases(read_network(layer(KINDS[0], "int32"), "net").record)
    assert record is not None
    (operator,) = record["subgraphs"][0]["operators"]
    assert operator["builtin_options"].fields["quantized_bias_type"] == TensorType.INT64


@pytest.mark.parametrize(("bias", "dtype"), [("int64", "int16"), ("int32", "int8")])
def test_other_networks_stay_as_they_are(bias: str, dtype: str) -> None:
    assert with_long_biases(read_network(layer(KINDS[0], bias, dtype), "net").record) is None
