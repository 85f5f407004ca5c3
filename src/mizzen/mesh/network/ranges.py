"""How great the sums of a layer can become, by its own weights."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.graph import INTEGER_BITS, Array, Graph, integer_range
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, Windowed

Sums = npt.NDArray[np.int64]


def product_of(chain: Graph) -> Windowed | None:
    """Return the operation of a layer that an array of multipliers computes; None if none is."""
    for operation in chain.sorted():
        if isinstance(operation, Conv2d | DepthwiseConv2d):
            return operation
    return None


def centered_weights(product: Windowed) -> Array:
    """Return the weights less their zero point, `[outputs, places, input channels]`.

    A depthwise convolution has one input channel for each output.
    """
    weights, zero_point = product.weight.constant, product.weight_zp.constant
    assert weights is not None
    assert zero_point is not None
    plain = weights.astype(np.int64) - int(zero_point[0])
    if isinstance(product, DepthwiseConv2d):
        height, width, depth, multiplier = plain.shape
        return plain.reshape(height * width, depth * multiplier, 1).transpose(1, 0, 2)
    return plain.reshape(len(plain), -1, plain.shape[-1])


def greatest_sums(product: Windowed) -> Sums:
    """Return the bound of an output's sums over an input channel, `[outputs, input channels]`.

    Inputs may be anything of their type, taken as they are: zero points are no part of the sum.
    """
    if product.input.dtype not in INTEGER_BITS:
        return np.zeros((1, 1), np.int64)
    least, _ = integer_range(product.input.dtype)
    return np.abs(centered_weights(product)).sum(axis=1) * -least
