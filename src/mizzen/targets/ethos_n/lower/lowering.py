"""From a network's operations to the nodes of the work graph, one operation after the other.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.lower.convolutions import (
    convolution_nodes,
    depth_to_space_nodes,
    fully_connected_nodes,
    resize_nodes,
    transpose_convolution_nodes,
)
from mizzen.targets.ethos_n.lower.graph import Graph, Layout, Node, chain, layout_of, make_node
from mizzen.targets.ethos_n.lower.identity import identity_after
from mizzen.targets.ethos_n.lower.joining import add_concatenation, add_split
from mizzen.targets.ethos_n.lower.pointwise import Pointwise, pointwise_work
from mizzen.targets.ethos_n.lower.work import (
    Relabel,
    Relayout,
    Requantise,
    Sink,
    Source,
    Stored,
)
from mizzen.targets.ethos_n.network import Network, Operand
from mizzen.targets.ethos_n.network import Node as NetworkNode
from mizzen.targets.ethos_n.operations import (
    Concatenation,
    Constant,
    Convolution,
    DepthToSpace,
    DepthwiseConvolution,
    FullyConnected,
    Input,
    Output,
    ReinterpretQuantization,
    Reshape,
    Resize,
    Split,
    TransposeConvolution,
    Weighted,
)
from mizzen.targets.ethos_n.tensors import TensorInfo


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
        """Add the nodes of an operation of one output; give the last."""
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
        if isinstance(work, Requantise) and self.strict_precision:
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
