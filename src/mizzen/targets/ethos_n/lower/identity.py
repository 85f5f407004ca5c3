"""The compute engines as a stage that changes nothing, for what needs one to ride on.

Ref: Ethos-N driver stack 23.02; the weights are the library's, so that the numerics are.
"""

from __future__ import annotations

import numpy as np

from mizzen.targets.ethos_n.commands_values import MceOperation, Upsample
from mizzen.targets.ethos_n.lower.graph import Layout, Node
from mizzen.targets.ethos_n.lower.work import Mce
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    QuantizationInfo,
    Shape,
    TensorInfo,
)

REQUANTISING_WEIGHT = 128
"""Weight of an identity that a requantisation may ride on: 128 * 1/128."""
COPYING_WEIGHT = 2
"""Weight of an identity that only enlarges: 2 * 1/2."""


def identity_mce(
    shape: Shape, weight: int, upsample: Upsample = Upsample.OFF, upscale: int = 1
) -> Mce:
    """Return a depthwise 1x1 convolution, without bias, whose real weights are all 1."""
    channels = shape[3]
    quantization = QuantizationInfo(0, (1 / weight,))
    weights = TensorInfo((1, 1, channels, 1), DataType.U8, DataFormat.HWIM, quantization)
    return Mce(
        MceOperation.DEPTHWISE_CONVOLUTION,
        shape,
        weights,
        np.full(weights.shape, weight, np.uint8),
        np.zeros(channels, np.int32),
        upsample=upsample,
        upscale=upscale,
    )


def identity_after(node: Node) -> Node:
    """Make, unconnected, a stage that gives what `node` gives."""
    return Node(
        identity_mce(node.shape, REQUANTISING_WEIGHT),
        node.shape,
        node.data_type,
        node.quantization,
        Layout.NHWCB,
        set(node.operation_ids),
    )
