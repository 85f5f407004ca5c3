"""Networks from quantised ONNX files."""

from __future__ import annotations

from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.lowering.notes import is_edge
from mizzen.frontends.onnx.model import Model
from mizzen.mesh.network.graphs import network_of_graph
from mizzen.mesh.network.network import Network
from mizzen.mesh.network.opening import open_quantisation, require_form
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits

ANY_WINDOW = WindowLimits(1 << 30, 1 << 30)
"""A mesh has no limits of windows."""


def network_of_onnx(model: Model, name: str) -> Network:
    """Return the layers of a quantised ONNX network, from its first integers to its last.

    Inputs and outputs are integers with a sign, in the network's own shapes (`Network.edges`).
    E506 for an operator that has no integer form.
    """
    graph = lower(model, ANY_WINDOW).graph
    customs = (operation for operation in graph if isinstance(operation, Custom))
    require_form(operation for operation in customs if not is_edge(operation))
    open_quantisation(graph)
    return network_of_graph(graph, name)
