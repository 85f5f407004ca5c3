"""The text of a graph, for people, tests and files.

.. code-block:: text

    graph @main(%x: tensor<1x4xi8, scale 0.05 zp -128>) {
      %0 = CONST {values = dense<int32[1] 7>} : tensor<1xi32>
      %y = RESCALE(%x, %0, ...) {scale32 = true, ...} : tensor<1x4xi32> group 3
      return %y
    }

Every value has a name, or the number of its place. Constants of many elements are a hash of their
bytes, ``dense<int8[64,3] #3fa9c1d2e4b5>``; with `Blobs.APPENDED` the bytes follow the graph, and
`mizzen.graph.parse` gives the same graph back.
"""

from __future__ import annotations

from base64 import b64encode
from enum import Enum
from typing import cast

import numpy as np

from mizzen.graph.graph import Array, Graph, Operation, Value
from mizzen.graph.notation import array_text, name_text, origin_text, scalar_text
from mizzen.graph.types import DType, TensorType


class Blobs(Enum):
    """What becomes of the bytes of large constants in the text."""

    HASHED = "hashed"
    """Only their hash is there; the text cannot be parsed again."""
    APPENDED = "appended"
    """They follow the graph in base64."""


def print_graph(graph: Graph, blobs: Blobs = Blobs.HASHED) -> str:
    """Return the graph as text, in an order of execution; see the module for its form."""
    printer = _Printer()
    lines = printer.graph(graph)
    if blobs is Blobs.APPENDED:
        lines += [f'blob {key} "{data}"' for key, data in printer.blobs.items()]
    return "\n".join(lines) + "\n"


class _Printer:
    """Prints a graph and those within it; keeps the names of values and the bytes of arrays."""

    def __init__(self) -> None:
        self.blobs: dict[str, str] = {}
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()

    def graph(self, graph: Graph) -> list[str]:
        """Return the lines of a graph, not indented."""
        outer = self.names, self.taken
        self.names, self.taken = {}, set()
        inputs = ", ".join(f"{self.name(value)}: {value.type}" for value in graph.inputs)
        lines = [f"graph @{name_text(graph.name)}({inputs}) {{"]
        for operation in graph.sorted():
            lines += [f"  {line}" for line in self.operation(operation)]
        outputs = " ".join(("return", ", ".join(map(self.name, graph.outputs)))).rstrip()
        self.names, self.taken = outer
        return [*lines, f"  {outputs}", "}"]

    def operation(self, operation: Operation) -> list[str]:
        """Return the lines of an operation; several if it has graphs as attributes."""
        parts: list[str] = []
        if operation.results:
            parts += [", ".join(map(self.name, operation.results)), "="]
        operands = ", ".join(map(self.name, operation.operands))
        parts.append(f"{operation.kind}({operands})" if operands else operation.kind)
        if operation.attributes:
            parts.append(self.attributes(operation.attributes))
        if operation.results:
            parts += [":", ", ".join(str(value.type) for value in operation.results)]
        if operation.group is not None:
            parts.append(f"group {operation.group}")
        if operation.origin is not None:
            parts.append(f"from {origin_text(operation.origin)}")
        return " ".join(parts).split("\n")

    def attributes(self, attributes: dict[str, object]) -> str:
        """Return names and values in braces."""
        shown = ", ".join(
            f"{name} = {self.value(value)}" for name, value in sorted(attributes.items())
        )
        return f"{{{shown}}}"

    def value(self, value: object) -> str:
        """Return the value of an attribute; its form says which type it is."""
        match value:
            case tuple():
                return f"[{', '.join(map(self.value, cast('tuple[object, ...]', value)))}]"
            case TensorType():
                return str(value)
            case Graph():
                return "\n".join(self.graph(value))
            case np.ndarray():
                return self.array(cast(Array, value))
            case DType():
                return value.value
            case _:
                return scalar_text(value)

    def array(self, array: Array) -> str:
        """Return an array: its NumPy type, shape and elements, or a hash of their bytes."""
        written = array_text(array)
        if written.key:
            self.blobs[written.key] = b64encode(written.data).decode()
        return written.text

    def name(self, value: Value) -> str:
        """Return the name of a value; a number if it has none, or none of its own."""
        known = self.names.get(value)
        if known is not None:
            return known
        name = f"%{name_text(value.name)}" if value.name else ""
        if not name or name in self.taken:
            name = f"%{len(self.names)}"
        self.taken.add(name)
        self.names[value] = name
        return name
