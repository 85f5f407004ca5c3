"""Read a TOSA flatbuffer as a graph, checking what the schema cannot say.

What the operations need of their operands is not checked here: see `mizzen.ops.verify`.

Ref: TOSA serialization library 1.0, schema/tosa.fbs.
"""

from __future__ import annotations

from typing import Any

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tosa import KINDS, SCHEMA
from mizzen.frontends.tosa.attributes import attributes_of
from mizzen.frontends.tosa.tosa_tensors import Tensor, elements, shape_tensor, tensor
from mizzen.graph import Array, DType, Graph, Operation, Value

MAJOR = 1
"""The version of TOSA whose files are read; later minor ones only add to it."""

ACCESSES = {
    "VariableReadAttribute": "VARIABLE_READ",
    "VariableWriteAttribute": "VARIABLE_WRITE",
}
"""Attributes by which an IDENTITY of Arm's converter is something else."""

MAX_DEPTH = 64
"""How deep control flow may be nested; a body that names itself has no end."""


def read(data: bytes, file: str) -> Graph:
    """Read a file; `file` is what diagnostics call it.

    Constants stay views of `data` where NumPy holds elements as files do. Raises E102 for a
    damaged file, E151 for one of another format, E152 for another version, E153 for names that are
    not declared or computed in order, E154 for what is not of TOSA 1.0, E155 for contents that do
    not fit their tensor, E156 for a shape that is not known, E157 for missing parts.
    """
    if data[4:8] != SCHEMA.identifier:
        raise fail(
            "E151",
            f"{file} must be a TOSA file: bytes 4..8 must be {SCHEMA.identifier.decode()!r}, "
            f"not {data[4:8].decode('latin-1')!r}",
            help="give a .tosa flatbuffer; other formats go by other endings",
        )
    record = read_file(data, SCHEMA, file)
    _require_version(record["version"], file)
    regions: list[Record] = record["regions"] or []
    if not regions:
        raise fail("E157", f"{file} must have a region, and has none")
    graph = _File(file, regions).graph(regions[0], 0)
    if not graph.outputs:
        raise fail("E157", f"{file} must have an output, and has none")
    return graph


def _require_version(version: Record | None, file: str) -> None:
    came = (version or {}).get("_major", -1)
    if came != MAJOR:
        raise fail(
            "E152",
            f"{file} must be of TOSA {MAJOR}, and is of {came}.{(version or {}).get('_minor', -1)}",
            help="write it again with tools of TOSA 1.0",
        )


class _File:
    def __init__(self, file: str, regions: list[Record]) -> None:
        self.file = file
        self.declared: set[str] = set()
        """Names of the variables that some block has declared."""
        self._regions = {region["name"]: region for region in regions}

    def graph(self, region: Record, depth: int) -> Graph:
        """Return the graph that is a region's one block."""
        blocks: list[Record] = region["blocks"] or []
        if len(blocks) != 1:
            raise self.wrong("E157", f"region {region['name']} must have one block", len(blocks))
        if depth > MAX_DEPTH:
            raise self.wrong("E157", f"control flow must end within {MAX_DEPTH} levels", "more")
        return _Block(self, blocks[0], depth).graph()

    def body(self, name: str, depth: int, origin: Origin) -> Graph:
        """Return the graph of the region of that name."""
        if name not in self._regions:
            raise self.wrong("E153", f"a body must be a region of the file, {name!r}", "", origin)
        return self.graph(self._regions[name], depth + 1)

    def wrong(
        self, code: str, must: str, came: object, origin: Origin | None = None
    ) -> MizzenError:
        """Make the error for what must hold and what came instead, if that says anything."""
        told = f"{must}, and has {came}" if came != "" else f"{must}, and is none"
        return fail(code, told, origin=origin or Origin(model=self.file))


class _Block:
    def __init__(self, file: _File, record: Record, depth: int) -> None:
        self._file = file
        self._record = record
        self._depth = depth
        self._graph = Graph(record["name"] or "main")
        self._values: dict[str, Value] = {}
        self._tensors: dict[str, Tensor] = {}
        for declaration in record["tensors"] or ():
            self._declare(tensor(declaration, file.file))
        for declaration in record["shapes"] or ():
            self._declare(shape_tensor(declaration, file.file))

    def graph(self) -> Graph:
        """Return the block as a graph."""
        for name in self._record["inputs"] or ():
            declared = self._tensor(name, Origin(model=self._file.file))
            self._define(name, self._graph.add_input(declared.type, name))
        for declared in self._tensors.values():
            if declared.variable is not None and declared.variable not in self._file.declared:
                self._variable(declared, declared.variable)
        for index, operator in enumerate(self._record["operators"] or ()):
            self._operator(index, operator)
        here = Origin(model=self._file.file)
        self._graph.set_outputs(self._value(name, here) for name in self._record["outputs"] or ())
        return self._graph

    def _declare(self, declared: Tensor) -> None:
        if declared.name in self._tensors:
            raise fail(
                "E153",
                f"a tensor's name must be its own, and two are called {declared.name!r}",
                origin=Origin(model=self._file.file),
            )
        self._tensors[declared.name] = declared

    def _variable(self, declared: Tensor, name: str) -> None:
        self._file.declared.add(name)
        initial = None if declared.data is None else self._elements(declared, None)
        self._graph.add(
            "VARIABLE",
            (),
            (),
            {"name": name, "type": declared.type, "initial": initial},
            origin=Origin(model=self._file.file, kind="VARIABLE", name=name),
        )

    def _operator(self, index: int, operator: Record) -> None:
        inputs: list[str] = operator["inputs"] or []
        outputs: list[str] = operator["outputs"] or []
        origin = Origin(model=self._file.file, operator=index, name=outputs[0] if outputs else None)
        kind = _kind(operator, origin)
        origin = Origin(origin.model, origin.operator, kind, origin.name)
        match kind:
            case "VARIABLE":
                return  # the tensor that it gives has declared it
            case "CONST" | "CONST_SHAPE":
                self._constant(kind, outputs, origin)
            case "VARIABLE_READ":
                variable = self._variable_of(inputs, origin)
                attributes = {"name": variable.variable, "type": variable.type}
                self._add(kind, [], outputs, attributes, origin)
            case "VARIABLE_WRITE":
                attributes = {"name": self._variable_of(outputs, origin).variable}
                self._add(kind, inputs, [], attributes, origin)
            case _:
                attributes = attributes_of(kind, operator["attribute"], self._type(inputs), origin)
                self._add(kind, inputs, outputs, self._with_bodies(attributes, origin), origin)

    def _add(
        self,
        kind: str,
        inputs: list[str],
        outputs: list[str],
        attributes: dict[str, Any],
        origin: Origin,
    ) -> Operation:
        operands = [self._value(name, origin) for name in inputs]
        types = [self._tensor(name, origin).type for name in outputs]
        operation = self._graph.add(kind, operands, types, attributes, origin=origin)
        for name, result in zip(outputs, operation.results, strict=True):
            result.name = name
            self._define(name, result)
        return operation

    def _constant(self, kind: str, outputs: list[str], origin: Origin) -> None:
        if len(outputs) != 1:
            raise self._file.wrong("E157", f"{kind} must have one output", len(outputs), origin)
        declared = self._tensor(outputs[0], origin)
        self._add(kind, [], outputs, {"values": self._elements(declared, origin)}, origin)

    def _elements(self, declared: Tensor, origin: Origin | None) -> Array:
        return elements(declared, origin or Origin(model=self._file.file))

    def _with_bodies(self, attributes: dict[str, Any], origin: Origin) -> dict[str, Any]:
        return {
            name: self._file.body(value, self._depth, origin) if name.endswith("_graph") else value
            for name, value in attributes.items()
        }

    def _type(self, inputs: list[str]) -> DType | None:
        declared = self._tensors.get(inputs[0]) if inputs else None
        return declared.type.dtype if declared else None

    def _variable_of(self, names: list[str], origin: Origin) -> Tensor:
        declared = self._tensor(names[0], origin) if names else None
        if declared is None or declared.variable is None:
            raise self._file.wrong("E153", "a variable must be declared by a tensor", "", origin)
        return declared

    def _tensor(self, name: str, origin: Origin) -> Tensor:
        declared = self._tensors.get(name)
        if declared is None:
            raise fail("E153", f"every tensor must be declared, and {name!r} is not", origin=origin)
        return declared

    def _value(self, name: str, origin: Origin) -> Value:
        value = self._values.get(name)
        if value is None:
            raise fail(
                "E153",
                f"what is taken must be an input or computed before, and {name!r} is neither",
                origin=origin,
            )
        return value

    def _define(self, name: str, value: Value) -> None:
        if name in self._values:
            raise fail(
                "E153",
                f"a tensor must be given once, and {name!r} is given again",
                origin=Origin(model=self._file.file, name=name),
            )
        self._values[name] = value


def _kind(operator: Record, origin: Origin) -> str:
    kind = KINDS.get(operator["op"])
    if kind is None:
        raise fail(
            "E154",
            f"an operator must be one of TOSA 1.0, numbered 1 to {max(KINDS)}, and is "
            f"number {operator['op']}",
            origin=origin,
        )
    member = operator["attribute"]
    if kind == "IDENTITY" and isinstance(member, Member):
        return ACCESSES.get(member.table, kind)
    return kind
