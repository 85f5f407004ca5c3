"""ONNX operators in float32 NumPy, a few lines each: what lowered ones are measured against.

ONNX Runtime, fused, gives the same integers. Written apart from the lowering, which it has to be
able to disagree with. Sums of means are taken in float64: one in float32 depends on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf as erf_of
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Attributes = Mapping[str, Any]
FloatModel = Callable[..., Array]
"""Takes the attributes and the real inputs."""

ONE, HALF, ZERO = np.float32(1), np.float32(0.5), np.float32(0)


def conv(attributes: Attributes, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Convolve [N,C,H,W] or [N,C,W], groups too."""
    spatial, groups = weight.ndim - 2, attributes.get("group", 1)
    pads = attributes.get("pads", [0] * 2 * spatial)
    strides = attributes.get("strides", [1] * spatial)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:], strict=True)])
    axes = tuple(range(2, 2 + spatial))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axes)
    windows = windows[(slice(None), slice(None), *(slice(None, None, step) for step in strides))]
    letters = "hw"[:spatial], "ij"[:spatial]
    sums = [
        np.einsum(f"nc{letters[0]}{letters[1]},oc{letters[1]}->no{letters[0]}", part, kernel,
                  optimize=True)
        for part, kernel in zip(
            np.split(windows, groups, axis=1), np.split(weight, groups), strict=True
        )
    ]  # fmt: skip
    result = np.concatenate(sums, axis=1)
    return result if bias is None else result + bias.reshape(-1, *(1,) * spatial)


def conv_transpose(attributes: Attributes, x: Array, weight: Array) -> Array:
    """Convolve [N,C,H,W] transposed: numbers with zeros between, and the kernel turned round."""
    step, (count, channels, height, width) = attributes["strides"][0], x.shape
    size = weight.shape[2]
    spread = np.zeros(
        (count, channels, (height - 1) * step + 1, (width - 1) * step + 1), np.float32
    )
    spread[:, :, ::step, ::step] = x
    pads = [size - 1 - pad for pad in attributes["pads"]]
    turned = weight[:, :, ::-1, ::-1].swapaxes(0, 1)
    return conv({"pads": pads}, spread, turned)


def pool(attributes: Attributes, x: Array, filling: float) -> Array:
    """Return the windows of a pool, in two last dimensions."""
    pads = attributes.get("pads", [0, 0, 0, 0])
    step = attributes.get("strides", [1, 1])
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])],
               constant_values=filling)  # fmt: skip
    windows = np.lib.stride_tricks.sliding_window_view(x, attributes["kernel_shape"], (2, 3))
    return windows[:, :, :: step[0], :: step[1]]


def average_pool(attributes: Attributes, x: Array) -> Array:
    """Return means; padding counts where the attribute says so."""
    sums = pool(attributes, x, 0.0).sum((4, 5), np.float64)
    ones = np.ones_like(x) if not attributes.get("count_include_pad") else None
    if ones is None:
        return sums / np.float32(np.prod(attributes["kernel_shape"]))
    return sums / pool(attributes, ones, 0.0).sum((4, 5), np.float32)


def softmax(attributes: Attributes, x: Array) -> Array:
    """Return exponentials over their sum, along the last axis."""
    terms = np.exp(x - x.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


def log_softmax(attributes: Attributes, x: Array) -> Array:
    """Return numbers less the logarithm of the sum of exponentials, along the last axis."""
    below = x - x.max(-1, keepdims=True)
    return below - np.log(np.exp(below).sum(-1, keepdims=True))


def layer_norm(attributes: Attributes, x: Array, scale: Array, bias: Array) -> Array:
    """Normalise along the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * scale + bias


def batch_norm(
    attributes: Attributes, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> Array:
    """Normalise each channel by constants: multiply and add, as ONNX Runtime does."""
    factor = scale / np.sqrt(variance + np.float32(1e-5))
    rest = bias - mean * factor
    return x * factor.reshape(-1, 1, 1) + rest.reshape(-1, 1, 1)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x)."""
    return ONE / (ONE + np.exp(-x))


def erf(x: Array) -> Array:
    """Return the error function."""
    return np.array([erf_of(each) for each in x.ravel()], np.float32).reshape(x.shape)


def softplus(x: Array) -> Array:
    """Return log(1 + e^x)."""
    return np.logaddexp(x, ZERO)


def elu(x: Array) -> Array:
    """Return x, or e^x - 1 below zero."""
    return np.where(x < 0, np.expm1(x), x)


SELU = np.float32(1.67326319217681884765625), np.float32(1.05070102214813232421875)

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Atan": np.arctan,
    "Ceil": np.ceil,
    "Celu": elu,
    "Cos": np.cos,
    "Elu": elu,
    "Erf": erf,
    "Exp": np.exp,
    "Floor": np.floor,
    "Gelu": lambda x: HALF * x * (ONE + erf(x * np.float32(0.5**0.5))),
    "HardSigmoid": lambda x: np.clip(np.float32(0.2) * x + HALF, ZERO, ONE),
    "HardSwish": lambda x: x * np.clip(x * np.float32(1 / 6) + HALF, ZERO, ONE),
    "LeakyRelu": lambda x: np.where(x < 0, x * np.float32(0.01), x),
    "Log": np.log,
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "Neg": np.negative,
    "Reciprocal": lambda x: ONE / x,
    "Relu": lambda x: np.maximum(x, ZERO),
    "Round": np.rint,
    "Selu": lambda x: SELU[1] * np.where(x <= 0, SELU[0] * np.expm1(x), x),
    "Sigmoid": sigmoid,
    "Sin": np.sin,
    "Softplus": softplus,
    "Softsign": lambda x: x / (ONE + np.abs(x)),
    "Sqrt": np.sqrt,
    "Swish": lambda x: x * sigmoid(x),
    "Tanh": np.tanh,
}
"""Functions of each number."""


def gemm(attributes: Attributes, x: Array, weight: Array, bias: Array) -> Array:
    """Multiply matrices, and add a row."""
    return x @ weight + bias


def concat(attributes: Attributes, *inputs: Array) -> Array:
    """Put tensors one after the other."""
    return np.concatenate(inputs, attributes["axis"])


def clip(attributes: Attributes, x: Array, low: Array, high: Array) -> Array:
    """Cut at two bounds."""
    return np.clip(x, low, high)


def _one(function: Callable[[Array], Array]) -> FloatModel:
    def model(attributes: Attributes, x: Array) -> Array:
        return function(x)

    return model


def _two(function: Callable[[Array, Array], Array]) -> FloatModel:
    def model(attributes: Attributes, x: Array, y: Array) -> Array:
        return function(x, y)

    return model


def max_pool(attributes: Attributes, x: Array) -> Array:
    """Return the greatest of each window."""
    return pool(attributes, x, -np.inf).max((4, 5))


MODELS: dict[str, FloatModel] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Gemm": gemm,
    "MatMul": _two(np.matmul),
    "Add": _two(np.add),
    "Sub": _two(np.subtract),
    "Mul": _two(np.multiply),
    "Div": _two(np.divide),
    "Max": _two(np.maximum),
    "Min": _two(np.minimum),
    "PRelu": _two(lambda x, slope: np.where(x < 0, x * slope, x)),
    "Clip": clip,
    "Pow": _two(np.power),
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": _one(lambda x: x.mean((2, 3), np.float64, keepdims=True)),
    "GlobalMaxPool": _one(lambda x: x.max((2, 3), keepdims=True)),
    "ReduceMean": _two(lambda x, axes: x.mean(tuple(axes), np.float64, keepdims=True)),
    "ReduceSum": _two(lambda x, axes: x.sum(tuple(axes), np.float64, keepdims=True)),
    "ReduceMax": _two(lambda x, axes: x.max(tuple(axes), keepdims=True)),
    "Softmax": softmax,
    "LogSoftmax": log_softmax,
    "Concat": concat,
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
    **{kind: _one(function) for kind, function in FUNCTIONS.items()},
}
"""Types of operators to what they compute."""
