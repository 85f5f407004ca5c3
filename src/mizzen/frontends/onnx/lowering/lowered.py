"""A network as a graph, and how the two belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.frontends.onnx.model import Model, Node
from mizzen.graph import Graph, Value


@dataclass(frozen=True, eq=False)
class Lowered:
    """A network as a graph.

    graph      inputs and outputs are the model's, in its order and named as there
    nodes      group to the nodes that are computed in it, in the model's order; those that
               quantise and dequantise belong to what they are for
    origins    group to the operator that it is named by
    name_of    value to the ONNX tensor that it holds
    offset_of  ONNX tensor of integers without a sign to how far it is above the graph's
    """

    model: Model
    graph: Graph
    nodes: Mapping[int, tuple[Node, ...]]
    origins: Mapping[int, Origin]
    name_of: Mapping[Value, str]
    offset_of: Mapping[str, int]
