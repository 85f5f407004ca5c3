"""Networks as a mapper sees them: layers, tensors, and the boxes of inputs that an output needs.

A layer is an operation worth an element of its own (a convolution, a pooling, an elementwise
chain) with everything that follows it position by position: bias, rescaling, activation, the sum
with a tensor from elsewhere. What it computes is its `chain`, a small graph of TOSA operations;
networks of `shapes` only have none and cannot be executed. Of machines only the words for work are
known here.
"""

from mizzen.mesh.network.boxes import Box, box_of, elements_of, intersection, shape_of
from mizzen.mesh.network.files import network_of_tflite
from mizzen.mesh.network.graphs import network_of_graph
from mizzen.mesh.network.network import Layer, LayerKind, Network, Tensor, Window, held_bytes
from mizzen.mesh.network.regions import is_partial, needed_boxes, work_of

__all__ = [
    "Box",
    "Layer",
    "LayerKind",
    "Network",
    "Tensor",
    "Window",
    "box_of",
    "elements_of",
    "held_bytes",
    "intersection",
    "is_partial",
    "needed_boxes",
    "network_of_graph",
    "network_of_tflite",
    "shape_of",
    "work_of",
]
