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

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from hashlib import sha256
from typing import cast

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.graph.graph import Array, Graph, Operation, Value
from mizzen.graph.types import DType, TensorType

INLINE_ELEMENTS = 16
"""Arrays of at most as many elements are written out."""
HASH_DIGITS = 12

PLAIN_NAME = re.compile(r"[A-Za-z_][\w.]*")


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


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


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
        lines = [f"graph @{_name(graph.name)}({inputs}) {{"]
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
            parts.append(f"from {self.attributes(_parts(operation.origin))}")
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
            case bytes():
                return f'bytes "{b64encode(value).decode()}"'
            case tuple():
                return f"[{', '.join(map(self.value, cast('tuple[object, ...]', value)))}]"
            case TensorType():
                return str(value)
            case Graph():
                return "\n".join(self.graph(value))
            case np.ndarray():
                return self.array(cast(Array, value))
            case _:
                return _scalar(value)

    def array(self, array: Array) -> str:
        """Return an array: its NumPy type, shape and elements, or a hash of their bytes."""
        head = f"{array.dtype.name}{_list(array.shape).replace(' ', '')}"
        flat = np.ascontiguousarray(array).reshape(-1)
        if flat.size <= INLINE_ELEMENTS:
            elements = ", ".join(self.value(element) for element in flat.tolist())
            return f"dense<{head} {elements}>" if elements else f"dense<{head}>"
        each = flat.view(np.uint8).reshape(flat.size, -1)
        if (each == each[0]).all():
            return f"dense<{head} splat {self.value(flat[0].item())}>"
        data = flat.astype(flat.dtype.newbyteorder("<")).tobytes()
        key = sha256(head.encode() + data).hexdigest()[:HASH_DIGITS]
        self.blobs[f"#{key}"] = b64encode(data).decode()
        return f"dense<{head} #{key}>"

    def name(self, value: Value) -> str:
        """Return the name of a value; a number if it has none, or none of its own."""
        known = self.names.get(value)
        if known is not None:
            return known
        name = f"%{_name(value.name)}" if value.name else ""
        if not name or name in self.taken:
            name = f"%{len(self.names)}"
        self.taken.add(name)
        self.names[value] = name
        return name


def _scalar(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value)
        case DType():
            return value.value
        case Enum():
            return f"{type(value).__name__}.{value.value}"
        case _:
            return repr(value)


def _name(name: str) -> str:
    """Return a name as it is, or quoted where it could be read as something else."""
    plain = PLAIN_NAME.fullmatch(name) and name.partition(".")[0] not in ("inf", "nan")
    return name if plain else json.dumps(name)


def _parts(origin: Origin) -> dict[str, object]:
    parts = {field.name: getattr(origin, field.name) for field in fields(origin)}
    return {name: part for name, part in parts.items() if part is not None}
