"""Networks from the files and programs that users have."""

from __future__ import annotations

from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower
from mizzen.mesh.network.graphs import network_of_graph
from mizzen.mesh.network.kernels import carry
from mizzen.mesh.network.network import Network


def network_of_tflite(data: bytes, name: str) -> Network:
    """Return the layers of a quantised TFLite network. E101 to E132 where it cannot be read."""
    lowered = lower(read(data, name))
    carry(lowered)
    return network_of_graph(lowered.graph, name)
