"""Node data of Model Explorer: a number on each node of the model's graph.

Nodes go by the tensors that they compute, as Model Explorer takes them for TFLite files. Colours go
from white, for the least, to a dark one; operators on the CPU have a colour of their own.

Ref: Model Explorer, node_data_builder.py.
"""

from __future__ import annotations

from mizzen.analysis.findings import Findings
from mizzen.diagnostics import Device

LEAST_COLOUR, MOST_COLOUR = "#ffffff", "#d55e00"
CPU_COLOUR = "#56b4e9"


def node_data(findings: Findings) -> dict[str, object]:
    """Return cycles by the tensor that each operator computes first; empty without a report."""
    nodes = {
        layer.name: _node(layer.cycles, layer.device) for layer in findings.layers if layer.name
    }
    gradient = [{"stop": 0, "bgColor": LEAST_COLOUR}, {"stop": 1, "bgColor": MOST_COLOUR}]
    return {"results": nodes, "gradient": gradient}


def _node(cycles: int, device: Device) -> dict[str, object]:
    node: dict[str, object] = {"value": cycles}
    return node | {"bgColor": CPU_COLOUR} if device is Device.CPU else node
