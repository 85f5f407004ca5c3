"""From a network's operations to the nodes of the work graph, one operation after the other.

For a convolution of stride 2 the feature map is interleaved: channel c lies in SRAM bank c modulo
the number of banks, and each of the four submaps begins in bank 0. An identity is a stage that
changes nothing, for what needs one to ride on; its weights are the library's, so that the numerics
are. Concatenations and splits move parts of a map in DRAM. In bricks that is possible where every
part's extent along the axis is a whole number of brick groups; otherwise the map is NHWC.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import MceOperation, PleOperation, Upsample
from mizzen.targets.ethos_n.config import BRICK_GROUP_SHAPE, Capabilities
from mizzen.targets.ethos_n.lower.work_graph import (
    Clamp,
    Concat,
    Copy,
    Extract,
    FusedPle,
    Graph,
    Layout,
    LonePle,
    Mce,
    Node,
    Ratio,
    Relabel,
    Relayout,
    Requantization,
    ShapeRatio,
    Sink,
    Source,
    Stored,
    chain,
    layout_of,
    make_node,
)
from mizzen.targets.ethos_n.network import (
    Addition,
    Concatenation,
    Constant,
    Convolution,
    DepthToSpace,
    DepthwiseConvolution,
    FullyConnected,
    Input,
    LeakyRelu,
    MeanXy,
    Network,
    Operand,
    Output,
    Pooling,
    PoolingType,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Sigmoid,
    Split,
    Tanh,
    TransposeConvolution,
    Weighted,
)
from mizzen.targets.ethos_n.network import Node as NetworkNode
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
    """Return channels of the four submaps, with the gaps between them but not after the last."""
    rounded = -(-channels // srams) * srams
    return rounded * (STRIDE * STRIDE - 1) + channels


REQUANTIZING_WEIGHT = 128
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
        identity_mce(node.shape, REQUANTIZING_WEIGHT),
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
    line, column, channel = np.ix_(range(block), range(block), range(outputs))
    data[line, column, (line * block + column) * outputs + channel, channel] = COPYING_WEIGHT
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


PleWork = Clamp | FusedPle | LonePle | Requantization
Pointwise = Addition | LeakyRelu | MeanXy | Pooling | Relu | Requantize | Sigmoid | Tanh

MEANS = {7: PleOperation.MEAN_XY_7X7, 8: PleOperation.MEAN_XY_8X8}
"""Kernels by the extent of the square planes that they take the mean of."""
MAXIMA = {1: PleOperation.DOWNSAMPLE_2X2, 2: PleOperation.MAXPOOL_2X2_2_2}
"""Kernels of stride 2 by the size of the window."""


def pointwise_work(operation: Pointwise, inputs: tuple[TensorInfo, ...]) -> PleWork:
    """Return the work of an operation that a single node does."""
    match operation:
        case Relu(lower, upper):
            return Clamp(lower, upper)
        case Requantize():
            return Requantization()
        case LeakyRelu(alpha):
            return FusedPle(PleOperation.LEAKY_RELU, alpha=alpha)
        case Sigmoid() | Tanh():
            # A tanh is a sigmoid of twice the input, with another quantisation of the output.
            return FusedPle(PleOperation.SIGMOID)
        case MeanXy():
            return FusedPle(MEANS[inputs[0].height])
        case Pooling():
            return _pooling(operation, inputs[0])
        case Addition(output):
            same = all(info.quantization == output for info in inputs)
            return LonePle(PleOperation.ADDITION if same else PleOperation.ADDITION_RESCALE)


def _pooling(operation: Pooling, info: TensorInfo) -> FusedPle | LonePle:
    stride = operation.stride
    ratio = ShapeRatio(Ratio(1, stride.y), Ratio(1, stride.x))
    if operation.type is PoolingType.AVG:
        if operation.size == (info.height, info.width) and info.height in MEANS:
            return FusedPle(MEANS[info.height], ratio)
        return LonePle(PleOperation.AVGPOOL_3X3_1_1_UDMA)
    size = operation.size[0]
    if size in MAXIMA:
        return FusedPle(MAXIMA[size], ratio)
    odd = info.height % 2 and info.width % 2
    kernel = PleOperation.MAXPOOL_3X3_2_2_ODD if odd else PleOperation.MAXPOOL_3X3_2_2_EVEN
    return FusedPle(kernel, ratio)


def _common_layout(axis: int, extents: Sequence[int]) -> Layout:
    whole = all(extent % BRICK_GROUP_SHAPE[axis] == 0 for extent in extents)
    return Layout.NHWCB if whole else Layout.NHWC


def add_concatenation(
    graph: Graph,
    operation: Concatenation,
    sources: Sequence[Node],
    infos: Sequence[TensorInfo],
    output: TensorInfo,
    ids: set[int],
    *,
    strict_precision: bool,
) -> Node:
    """Add the nodes of a concatenation; return the last.

    Every part is requantised where it needs to be, then copied: a copy that only the concatenation
    uses is later made by the pass that computes the part.
    """
    layout = _common_layout(operation.axis, [info.shape[operation.axis] for info in infos])
    concat = Node(
        Concat(operation.axis), output.shape, output.data_type, operation.output, layout, ids
    )
    nodes = [concat]
    if layout is not Layout.NHWCB:
        nodes.append(_like(concat, Relayout(), Layout.NHWCB))
    last = chain(graph, sources, nodes)
    for place, info in enumerate(infos):
        if concat.inputs[place].layout is not layout:
            part = make_node(Relayout(), info, layout, ids)
            graph.insert_before(concat, place, part)
    for place, info in enumerate(infos):
        if concat.inputs[place].quantization != operation.output:
            work = Requantization()
            part = Node(work, info.shape, info.data_type, operation.output, layout, set(ids))
            graph.insert_before(concat, place, part)
            if strict_precision:
                graph.insert_before(part, 0, identity_after(part.source))
    for place, info in enumerate(infos):
        part = Node(Copy(), info.shape, info.data_type, operation.output, layout, set(ids))
        graph.insert_before(concat, place, part)
    return last


def _like(node: Node, work: Relayout, layout: Layout) -> Node:
    return Node(
        work, node.shape, node.data_type, node.quantization, layout, set(node.operation_ids)
    )


def add_split(
    graph: Graph, operation: Split, source: Node, info: TensorInfo, ids: set[int]
) -> list[Node]:
    """Add the nodes of a split; return those of its outputs."""
    layout = _common_layout(operation.axis, operation.sizes)
    if source.layout is not layout:
        relayout = make_node(Relayout(), info, layout, ids)
        source = chain(graph, [source], [relayout])
    parts: list[Node] = []
    begin = 0
    for size in operation.sizes:
        offset = _with_extent((0, 0, 0, 0), operation.axis, begin)
        shape = _with_extent(info.shape, operation.axis, size)
        work = Extract(offset)
        parts.append(Node(work, shape, info.data_type, info.quantization, layout, set(ids)))
        begin += size
    for part in parts:
        chain(graph, [source], [part])
    return parts


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    n, h, w, c = (extent if at == axis else old for at, old in enumerate(shape))
    return n, h, w, c


def lower(network: Network, capabilities: Capabilities, *, strict_precision: bool = False) -> Graph:
    """Return the work graph of a network whose operations are all supported.

    strict_precision  requantise by a stage of its own, where it could ride on the one before

    E970 for an operation that there is no lowering of.
    """
    lowering = _Lowering(network, capabilities, strict_precision)
    for node in network:
        lowering.lower(node)
    return lowering.graph


@dataclass(slots=True)
class _Lowering:
    network: Network
    capabilities: Capabilities
    strict_precision: bool
    graph: Graph = field(default_factory=Graph)
    made: dict[Operand, Node] = field(default_factory=dict[Operand, Node])
    """The node that gives an operand."""

    def lower(self, node: NetworkNode) -> None:
        """Add an operation's nodes."""
        operation = node.operation
        match operation:
            case Constant():
                pass
            case Split():
                (operand,) = node.inputs
                parts = add_split(self.graph, operation, self._of(operand), operand.info, {node.id})
                self.made.update(zip(node.outputs, parts, strict=True))
            case Output():
                self._lower_output(node)
            case _:
                self.made[node.operand] = self._lower_one(node)

    def _of(self, operand: Operand) -> Node:
        """Return the node of an operand; that of a constant comes with its first use."""
        if operand not in self.made:
            data = self.network.data_of(operand)
            assert data is not None, "operands come before their users"
            layout = layout_of(operand.info.format)
            node = make_node(Stored(data), operand.info, layout, {operand.operation_id})
            self.made[operand] = self.graph.add(node)
        return self.made[operand]

    def _lower_one(self, node: NetworkNode) -> Node:
        """Add the nodes of an operation of one output; return the last."""
        operation, operands, output = node.operation, node.inputs, node.operand.info
        match operation:
            case Input(info):
                return self._lower_input(info, node.id)
            case Convolution() | DepthwiseConvolution() | TransposeConvolution() | FullyConnected():
                return self._chain(operands[:1], self._weighted(operation, node))
            case Concatenation():
                return add_concatenation(
                    self.graph,
                    operation,
                    [self._of(operand) for operand in operands],
                    [operand.info for operand in operands],
                    output,
                    {node.id},
                    strict_precision=self.strict_precision,
                )
            case Reshape() | ReinterpretQuantization() | DepthToSpace() | Resize():
                return self._chain(operands, self._moving(node))
            case _:
                return self._lower_pointwise(node)

    def _chain(self, operands: Sequence[Operand], nodes: Sequence[Node]) -> Node:
        return chain(self.graph, [self._of(operand) for operand in operands], nodes)

    def _lower_pointwise(self, node: NetworkNode) -> Node:
        operation = node.operation
        if not isinstance(operation, Pointwise):
            raise fail(
                "E970",
                f"operation {node.id} must be one that Ethos-N78 can run; {node.kind} has no "
                "kernel or data path",
                origin=node.origin,
                help="leave the operation to the CPU",
            )
        work = pointwise_work(operation, tuple(operand.info for operand in node.inputs))
        made = make_node(work, node.operand.info, Layout.NHWCB, {node.id})
        self._chain(node.inputs, [made])
        if isinstance(work, Requantization) and self.strict_precision:
            self.graph.insert_before(made, 0, identity_after(made.source))
        return made

    def _lower_input(self, info: TensorInfo, operation_id: int) -> Node:
        layout = layout_of(info.format)
        nodes = [make_node(Source(), info, layout, {operation_id})]
        if layout is not Layout.NHWCB:
            nodes.append(make_node(Relayout(), info, Layout.NHWCB, {operation_id}))
        return chain(self.graph, [], nodes)

    def _lower_output(self, node: NetworkNode) -> None:
        (operand,), operation = node.inputs, node.operation
        assert isinstance(operation, Output)
        layout, ids = layout_of(operation.format), {operand.operation_id}
        nodes: list[Node] = []
        if self._of(operand).layout is not layout:
            nodes.append(make_node(Relayout(), operand.info, layout, ids))
        sink = make_node(Sink(operand.output_index), operand.info, layout, ids)
        self._chain([operand], [*nodes, sink])

    def _weighted(self, operation: Weighted, node: NetworkNode) -> list[Node]:
        feature_map, bias, weights = node.inputs
        info, output = feature_map.info, node.operand.info
        constants = (
            weights.info,
            self._numbers(weights, node),
            self._numbers(bias, node).reshape(-1),
        )
        ids = {node.id, bias.operation_id, weights.operation_id}
        match operation:
            case TransposeConvolution():
                return transpose_convolution_nodes(operation, info, output, constants, node.id)
            case FullyConnected():
                layout = self._of(feature_map).layout
                return fully_connected_nodes(info, output, constants, ids, layout)
            case Convolution() | DepthwiseConvolution():
                srams = self.capabilities.srams
                return convolution_nodes(operation, info, output, constants, ids, srams)

    def _numbers(self, operand: Operand, user: NetworkNode) -> npt.NDArray[Any]:
        """Return the numbers of weights or a bias of an operation."""
        data = self.network.data_of(operand)
        if data is None:
            kind = self.network[operand.operation_id].kind
            raise fail(
                "E974",
                f"weights and biases must be constants; operation {operand.operation_id} ({kind}), "
                f"which gives one to operation {user.id}, is none",
                origin=user.origin,
                help="leave the operation to the CPU",
            )
        return data

    def _moving(self, node: NetworkNode) -> list[Node]:
        """Return the nodes of an operation that moves numbers, or only reads them otherwise."""
        (operand,), output, ids = node.inputs, node.operand.info, {node.id}
        info = operand.info
        match node.operation:
            case DepthToSpace(block):
                return depth_to_space_nodes(block, info, output, node.id)
            case Resize(algorithm):
                return resize_nodes(algorithm, info, output, ids)
            case ReinterpretQuantization():
                return [make_node(Relabel(), output, self._of(operand).layout, ids)]
            case _:
                nodes = [
                    make_node(Relabel(), output, Layout.NHWC, ids),
                    make_node(Relayout(), output, Layout.NHWCB, ids),
                ]
                if self._of(operand).layout is not Layout.NHWC:
                    nodes.insert(0, make_node(Relayout(), info, Layout.NHWC, ids))
                return nodes
