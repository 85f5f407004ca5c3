"""Write a graph as a TOSA 1.0 flatbuffer.

A region holds one block; the first is the graph, the others are the bodies of its control flow.
What the file cannot hold is left out: quantisation (TOSA has none) and groups.

Ref: TOSA serialization library 1.0, schema/tosa.fbs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer import write as write_file
from mizzen.flatbuffer.tosa import ENUMERATIONS, NUMBERS, SCHEMA, VERSION, TosaType, encode
from mizzen.flatbuffer.tosa_tables import OPERATIONS
from mizzen.graph import DType, Graph, Operation, Value
from mizzen.ops.control_flow import Constant, Variable, VariableRead, VariableWrite
from mizzen.ops.elementwise import Clamp

IN_TENSORS = (Constant, Variable)
"""Operations whose attributes are in the tensor that they give or declare."""

ACCESSES = (VariableRead, VariableWrite)
"""Operations that Arm's tools, and so this, write as IDENTITY with the attributes of their own."""


def write(graph: Graph, name: str = "main") -> bytes:
    """Write a graph; `name` is that of the region and the block.

    Operators are in the order of `graph.sorted()`, so an operator's index is the same in both,
    unless there are variables: tensors declare those, not operators. Raises E150 for a value whose
    element type TOSA does not have.
    """
    major, minor, patch = VERSION
    version = {"_major": major, "_minor": minor, "_patch": patch, "_draft": False}
    regions = list(_Writing().regions(graph, name))
    return write_file({"version": version, "regions": regions}, SCHEMA)


class _Writing:
    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._numbers = count()
        self.variables: dict[str, str] = {}
        """Name of a variable to that of the tensor that declares it."""

    def regions(self, graph: Graph, name: str) -> Iterator[Record]:
        """Return the region of a graph, then those of the bodies in it."""
        bodies: list[tuple[str, Graph]] = []
        yield {"name": name, "blocks": [_Block(self, graph, name, bodies).record()]}
        for body_name, body in bodies:
            yield from self.regions(body, body_name)

    def name(self, value: Value) -> str:
        """Return the value's name in the file; no two values of a file share one."""
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = self.unique(value.name or "value")
        return name

    def unique(self, name: str) -> str:
        """Return the name, with a number after it if it is taken."""
        unique = name
        while unique in self._taken:
            unique = f"{name}_{next(self._numbers)}"
        self._taken.add(unique)
        return unique


class _Block:
    def __init__(
        self, writing: _Writing, graph: Graph, name: str, bodies: list[tuple[str, Graph]]
    ) -> None:
        self._writing = writing
        self._graph = graph
        self._name = name
        self._bodies = bodies
        self._tensors: list[Record] = []
        self._shapes: list[Record] = []
        self._variables = writing.variables

    def record(self) -> Record:
        """Return the block; bodies of control flow that it needs are added to `bodies`."""
        operations = self._graph.sorted()
        name = self._writing.name
        for value in (*self._graph.inputs, *self._graph.outputs):  # their names are kept first
            name(value)
        for value in self._graph.inputs:
            self._tensor(value, None)
        for operation in operations:
            self._results(operation)
        return {
            "name": self._name,
            "operators": [
                self._operator(index, operation)
                for index, operation in enumerate(operations)
                if not isinstance(operation, Variable)
            ],
            "tensors": self._tensors,
            "inputs": [name(value) for value in self._graph.inputs],
            "outputs": [name(value) for value in self._graph.outputs],
            "shapes": self._shapes,
        }

    def _results(self, operation: Operation) -> None:
        if isinstance(operation, Variable):
            self._variable(operation)
        for value in operation.results:
            if value.dtype is DType.SHAPE:
                self._shape(value)
            else:
                self._tensor(value, operation)

    def _tensor(self, value: Value, operation: Operation | None) -> None:
        record = self._tensor_record(self._writing.name(value), value, operation)
        if value.constant is not None:
            record["data"] = encode(value.constant, TosaType(record["type"]))
        self._tensors.append(record)

    def _shape(self, value: Value) -> None:
        record: Record = {"name": self._writing.name(value), "rank": value.shape[0]}
        if value.constant is not None:
            record["data"] = encode(value.constant, TosaType.SHAPE)
        self._shapes.append(record)

    def _variable(self, operation: Variable) -> None:
        name = operation.name
        self._variables[name] = self._writing.unique(name)
        record = self._tensor_record(self._variables[name], operation.type, operation)
        record.update(variable=True, variable_name=name)
        if operation.initial is not None:
            record["data"] = encode(operation.initial, TosaType(record["type"]))
        self._tensors.append(record)

    def _tensor_record(self, name: str, typed: Any, operation: Operation | None) -> Record:
        dtype: DType = typed.dtype
        if dtype.name not in TosaType.__members__:
            raise fail(
                "E150",
                f"{name} must have an element type of TOSA 1.0 to be in its file, and has "
                f"{dtype.value}",
                origin=operation.origin if operation else None,
                rule="TOSA 1.0, 1.10 Number formats",
            )
        shape = np.asarray(typed.shape, np.int32)
        return {"name": name, "shape": shape, "type": TosaType[dtype.name].value}

    def _operator(self, index: int, operation: Operation) -> Record:
        inputs = [self._writing.name(value) for value in operation.operands]
        outputs = [self._writing.name(value) for value in operation.results]
        if isinstance(operation, VariableRead):
            inputs = [self._variables[operation.name]]
        elif isinstance(operation, VariableWrite):
            outputs = [self._variables[operation.name]]
        place = str(operation.origin) if operation.origin else ""
        return {
            "op": NUMBERS["IDENTITY" if isinstance(operation, ACCESSES) else operation.kind],
            "attribute": self._attribute(operation),
            "inputs": inputs,
            "outputs": outputs,
            "location": {"text": f"{index} {place}".rstrip()},
        }

    def _attribute(self, operation: Operation) -> Member:
        table, _ = OPERATIONS[operation.kind]
        if isinstance(operation, (*IN_TENSORS, *ACCESSES)):
            return Member(table, {})
        fields = {
            name: self._field(operation, name, value)
            for name, value in operation.attributes.items()
        }
        return Member(table, fields)

    def _field(self, operation: Operation, name: str, value: Any) -> Any:
        if name in ENUMERATIONS:
            return ENUMERATIONS[name][value.name].value
        match value:
            case Graph():
                body = self._writing.unique(f"{self._name}_{name}")
                self._bodies.append((body, value))
                return body
            case bytes():
                return np.frombuffer(value, np.uint8)
            case _ if isinstance(operation, Clamp):
                dtype = operation.result.dtype
                return encode(np.asarray([value], dtype.numpy), TosaType[dtype.name])
            case _:
                return value
