"""The tensor graph of TOSA 1.0 operations: structure, types, edits, text."""

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
    "parse",
    "print_graph",
]
