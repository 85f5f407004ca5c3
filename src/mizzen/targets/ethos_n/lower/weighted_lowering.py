"""Lowering of what the compute engines compute: convolutions, FC, resizes, identities.

For a convolution of stride 2 the feature map is interleaved: channel c lies in SRAM bank c modulo
the number of banks, and each of the four submaps begins in bank 0. An identity is a stage that
changes nothing, for what needs one to ride on; its weights are the library's, so that the numerics
are.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import MceOperation, PleOperation, Upsample
from mizzen.targets.ethos_n.lower.work_graph import (
    FusedPle,
    Layout,
    Mce,
    Node,
    Ratio,
    Relabel,
    Relayout,
    ShapeRatio,
    make_node,
)
from mizzen.targets.ethos_n.network import (
    Convolution,
    DepthwiseConvolution,
    ResizeAlgorithm,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)

STRIDE = 2
"""The only stride that there is an interleaving for, along both axes."""


def interleaved_channels(channels: int, srams: int) -> int:
    """Return channels of the four submaps, with the gaps between them but not behind the last."""
    rounded = -(-channels // srams) * srams
    return rounded * (STRIDE * STRIDE - 1) + channels


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


Array = npt.NDArray[Any]

LARGEST_UPSAMPLED_KERNEL = 7
"""A larger kernel is not applied in the pass that upsamples."""
FC_INPUTS_MULTIPLE = 1024
"""Inputs of a matrix product come in multiples of this, in brick groups of 8 x 8 x 16."""
UPSAMPLES = {
    ResizeAlgorithm.BILINEAR: Upsample.BILINEAR,
    ResizeAlgorithm.NEAREST_NEIGHBOUR: Upsample.NEAREST_NEIGHBOUR,
}
INTERLEAVE = FusedPle(
    PleOperation.INTERLEAVE_2X2_2_2,
    ShapeRatio(Ratio(1, STRIDE), Ratio(1, STRIDE), Ratio(STRIDE * STRIDE)),
)


def convolution_nodes(
    operation: Convolution | DepthwiseConvolution,
    info: TensorInfo,
    output: TensorInfo,
    constants: tuple[TensorInfo, Array, Array],
    ids: set[int],
    srams: int,
) -> list[Node]:
    """Return the nodes of a convolution: perhaps an interleaving, then the convolution.

    constants  the weights' info, weights, bias
    """
    weights, data, bias = constants
    kind = MceOperation.CONVOLUTION
    if isinstance(operation, DepthwiseConvolution):
        if weights.shape[3] > 1:
            # Of one input channel, a depthwise convolution is an ordinary one.
            weights = replace(weights, format=DataFormat.HWIO)
        else:
            kind = MceOperation.DEPTHWISE_CONVOLUTION
    stride, padding = operation.stride, operation.padding
    mce = Mce(kind, info.shape, weights, data, bias, stride, padding.top, padding.left)
    nodes = [make_node(mce, output, Layout.NHWCB, ids)]
    if stride.x > 1:
        n, h, w, c = info.shape
        channels = interleaved_channels(c, srams)
        shape = (n, -(-h // STRIDE), -(-w // STRIDE), channels)
        nodes.insert(0, make_node(INTERLEAVE, replace(info, shape=shape), Layout.NHWCB, ids))
    return nodes


def transpose_convolution_nodes(
    operation: TransposeConvolution,
    info: TensorInfo,
    output: TensorInfo,
    constants: tuple[TensorInfo, Array, Array],
    operation_id: int,
) -> list[Node]:
    """Return the nodes of a transpose convolution, an upsampling and a convolution of stride 1."""
    weights, data, bias = constants
    ids = {operation_id}
    nodes: list[Node] = []
    shape, upscale, upsample = info.shape, operation.stride.x, Upsample.TRANSPOSE
    if max(weights.shape[:2]) > LARGEST_UPSAMPLED_KERNEL:
        enlarge = identity_mce(shape, COPYING_WEIGHT, upsample, upscale)
        shape = (shape[0], shape[1] * upscale, shape[2] * upscale, shape[3])
        nodes.append(make_node(enlarge, replace(info, shape=shape), Layout.NHWCB, ids))
        upscale, upsample = 1, Upsample.OFF
    # The padding of the operation crops the output; uncropped, each kernel begins at its element.
    mce = Mce(
        MceOperation.CONVOLUTION,
        shape,
        weights,
        np.ascontiguousarray(data[::-1, ::-1]),
        bias,
        pad_top=weights.shape[0] - 1 - operation.padding.top,
        pad_left=weights.shape[1] - 1 - operation.padding.left,
        upsample=upsample,
        upscale=upscale,
    )
    return [*nodes, make_node(mce, output, Layout.NHWCB, ids)]


def depth_to_space_nodes(
    block: int, info: TensorInfo, output: TensorInfo, operation_id: int
) -> list[Node]:
    """Return the nodes of a depth-to-space: a transpose convolution that picks a channel each."""
    channels, outputs = info.channels, output.channels
    quantization = QuantizationInfo(0, (1 / COPYING_WEIGHT,))
    weights = TensorInfo(
        (block, block, channels, outputs), DataType.U8, DataFormat.HWIO, quantization
    )
    data = np.zeros(weights.shape, np.uint8)
    row, column, channel = np.ix_(range(block), range(block), range(outputs))
    data[row, column, (row * block + column) * outputs + channel, channel] = COPYING_WEIGHT
    bias = np.zeros(outputs, np.int32)
    operation = TransposeConvolution(Padding(), Stride(block, block), output.quantization)
    constants = (weights, data, bias)
    return transpose_convolution_nodes(operation, info, output, constants, operation_id)


def resize_nodes(
    algorithm: ResizeAlgorithm, info: TensorInfo, output: TensorInfo, ids: set[int]
) -> list[Node]:
    """Return the node of a resize to twice the planes, or one less."""
    upscale = -(-output.height // info.height)
    work = identity_mce(info.shape, COPYING_WEIGHT, UPSAMPLES[algorithm], upscale)
    return [make_node(work, output, Layout.NHWCB, ids)]


def linear_shape(elements: int) -> Shape:
    """Return the smallest shape that holds so many bytes when it is read in bricks.

    A brick is 4 x 4 x 16; a brick group has two along H, then two along W, then follow further
    groups along C. Only the last group may have fewer than 16 channels, of 16 or 64 elements each.
    """
    patches = -(-elements // 16)
    height = 4 if patches <= 16 else 8
    width = 4 if patches <= 32 else 8
    groups, rest = divmod(patches, 64)
    return 1, height, width, 16 * groups + min(16, rest)


def fully_connected_nodes(
    info: TensorInfo,
    output: TensorInfo,
    constants: tuple[TensorInfo, Array, Array],
    ids: set[int],
    layout: Layout,
) -> list[Node]:
    """Return the nodes of a matrix product of a map in `layout`.

    The map is read as NHWC bytes that lie in bricks, which no SRAM layout has to be made for.
    """
    nodes: list[Node] = []
    if layout is not Layout.NHWC:
        nodes.append(make_node(Relayout(), info, Layout.NHWC, ids))
    linear = replace(info, shape=linear_shape(info.channels))
    nodes.append(make_node(Relabel(), linear, Layout.NHWCB, ids))
    weights, data, bias = constants
    missing = -weights.shape[2] % FC_INPUTS_MULTIPLE
    zero_point = weights.quantization.zero_point
    data = np.pad(data, ((0, 0), (0, 0), (0, missing), (0, 0)), constant_values=zero_point)
    height, width, inputs, outputs = data.shape
    weights = replace(weights, shape=(height, width, inputs, outputs))
    mce = Mce(MceOperation.FULLY_CONNECTED, info.shape, weights, data, bias)
    result = replace(output, data_type=info.data_type)
    return [*nodes, make_node(mce, result, Layout.NHWCB, ids)]
