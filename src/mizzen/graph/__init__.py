"""The tensor graph of TOSA 1.0 operations: structure, types, edits, text.

One form for every network between front-ends and code generators, in single static assignment:
a value has one producer and knows its users, so a rewrite is local and needs no analysis. Every
edit goes through `Graph`, which keeps users and counts versions; a pass can tell whether another
changed anything. Values carry quantisation, operations their origin in the user's model and the
group that placement keeps together.

What an operation means, which operands it must have and of which types is not known here:
`mizzen.ops` adds a class for each kind, and is imported before a graph is made. Nor are
front-ends, targets and files known.
"""

from mizzen.graph.graph import Array, Attributes, Graph, Operation, Value
from mizzen.graph.reader import parse
from mizzen.graph.text import Blobs, print_graph
from mizzen.graph.types import (
    INTEGER_BITS,
    DType,
    NanMode,
    Quantization,
    ResizeMode,
    RoundingMode,
    TensorType,
    integer_range,
    other_sign,
)

__all__ = [
    "INTEGER_BITS",
    "Array",
    "Attributes",
    "Blobs",
    "DType",
    "Graph",
    "NanMode",
    "Operation",
    "Quantization",
    "ResizeMode",
    "RoundingMode",
    "TensorType",
    "Value",
    "integer_range",
    "other_sign",
    "parse",
    "print_graph",
]
