"""Networks from the files and programs that users have."""

from __future__ import annotations

from mizzen.diagnostics import fail
from mizzen.frontends.tflite import read, require_agreement
from mizzen.frontends.tflite.lower import lower
from mizzen.frontends.tflite.subgraphs import executed, names_of
from mizzen.mesh.network.graphs import network_of_graph
from mizzen.mesh.network.kernels import carry
from mizzen.mesh.network.network import Network


def network_of_tflite(data: bytes, name: str) -> Network:
    """Return the layers of a quantised TFLite network. E101 to E143 where it cannot be read."""
    model = read(data, name)
    require_agreement(model)
    if executed(model) != (0,):
        names = ", ".join(names_of(model)[index] for index in executed(model))
        raise fail(
            "E139",
            f"a mesh executes the layers of one subgraph in a fixed order, and {name} has {names}",
            help="make a network of each subgraph, without control flow",
        )
    lowered = lower(model)
    carry(lowered)
    return network_of_graph(lowered.graph, name)
