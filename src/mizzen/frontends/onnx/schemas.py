"""What the package `onnx` knows of operators: the only module that imports it for reading.

Its C++ code gets one node at a time, whose inputs' types are known and checked, and constants of a
few elements; so nothing in a file can make it walk, nest or allocate much.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail, install_extra
from mizzen.frontends.onnx.draft import Draft
from mizzen.frontends.onnx.model import Array, Node, TensorType
from mizzen.frontends.onnx.tensors import NUMBER_OF, OTHERS, require_extents

MOST_KNOWN = 256
"""Elements of a constant whose values shape inference is told."""

OLDEST = 7
"""The oldest version of ONNX's operators that is read."""
FORMS = 21
"""The version of ONNX's operators whose forms nodes are brought to."""

_TYPE_NAMES = {
    "float32": "float", "float64": "double", "float16": "float16", "bool": "bool",
}  # fmt: skip

_ATTRIBUTE_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "FLOAT": float, "INT": int, "STRING": str, "TENSOR": np.ndarray, "FLOATS": tuple,
    "INTS": tuple, "STRINGS": tuple, "SPARSE_TENSOR": np.ndarray,
}  # fmt: skip


_OF_TYPES_ALONE = ("QuantizeLinear", "DequantizeLinear")
"""Operators whose results' extents no value says."""


def require_onnx() -> None:
    """Raise E193 where the package `onnx` is not installed."""
    if importlib.util.find_spec("onnx") is None:
        raise fail(
            "E193",
            "reading ONNX needs the package onnx, which is not installed",
            help=install_extra("onnx"),
        )


def require_opset(opset: int, subject: str, origin: Origin) -> None:
    """Raise E194 for a version of ONNX's operators that is too old, or newer than `onnx` is."""
    import onnx.defs

    newest = onnx.defs.onnx_opset_version()
    if not OLDEST <= opset <= newest:
        raise fail(
            "E194",
            f"{subject} must be of opset {OLDEST} to {newest}, and is of {opset}",
            origin=origin,
            help="export the network with another opset"
            if opset < OLDEST
            else "pip install --upgrade onnx, or export the network with an older opset",
        )


def oldest_opset(node: Node, opset: int, types: Sequence[TensorType | None]) -> int:
    """Say the oldest version of ONNX's operators that has a node's form.

    opset  the version that the node is of; its form may be newer than `FORMS`
    types  of the node's inputs
    """
    schema = _schema(node.kind, min(FORMS, opset))
    is_older = (
        schema is not None
        and schema.attributes.keys() >= node.attributes.keys()
        and len(node.inputs) <= schema.max_input
        and len(node.outputs) <= schema.max_output
        and all(_takes(schema, place, type) for place, type in enumerate(types))
    )
    schema = schema if is_older else _schema(node.kind, opset)
    return opset if schema is None else schema.since_version


def _takes(schema: Any, place: int, type: TensorType | None) -> bool:
    formal = schema.inputs[min(place, len(schema.inputs) - 1)]
    return type is None or _type_name(type.dtype) in formal.types


def _type_name(dtype: np.dtype[Any]) -> str:
    return f"tensor({_TYPE_NAMES.get(dtype.name, dtype.name)})"


def _attribute_types(node: Node) -> tuple[Any, ...]:
    """Say which attributes a node has, and of which types; lists hold one type each."""
    return tuple((name, *_types_of(value)) for name, value in node.attributes.items())


def _types_of(value: Any) -> tuple[Any, Any]:
    parts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()
    given = cast("object", value)
    return type(given), type(parts[0]) if parts else None


def _schema(kind: str, opset: int) -> Any:
    import onnx.defs

    try:
        schema = onnx.defs.get_schema(kind, opset, "")
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@dataclass(eq=False)
class Schemas:
    """Types of results, by the schemas of one version; what was asked once is remembered."""

    draft: Draft
    _schemas: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any])
    _types: dict[TensorType, Any] = field(default_factory=dict[TensorType, Any])
    _results: dict[Any, list[TensorType | None]] = field(
        default_factory=dict[Any, "list[TensorType | None]"]
    )
    _checked: set[Any] = field(default_factory=set[Any])

    def schema(self, node: Node, opset: int) -> Any:
        """Look up an operator; E194 where a version has none of the name."""
        key = node.kind, opset
        if key not in self._schemas:
            self._schemas[key] = _schema(*key)
        if self._schemas[key] is None:
            raise self.draft.refused(
                node,
                f"must be an operator of opset {opset} of ONNX, and is none",
                "export the network with ONNX's own operators",
            )
        return self._schemas[key]

    def check(self, node: Node, opset: int) -> None:
        """Hold a node's attributes, and types of its inputs, against the schema of a version.

        Raises E190 for what is missing or of another type, E194 for what is not known.
        """
        dtypes = tuple(self.draft.types[name].dtype if name else None for name in node.inputs)
        key = node.kind, opset, dtypes, len(node.outputs), _attribute_types(node)
        if key in self._checked:
            return
        schema = self.schema(node, opset)
        self._check_attributes(node, schema, opset)
        for what, count, least, most in (
            ("inputs", len(node.inputs), schema.min_input, schema.max_input),
            ("outputs", len(node.outputs), schema.min_output, schema.max_output),
        ):
            if not least <= count <= most:
                raise self.draft.wrong(node, f"must have {least} to {most} {what}, and has {count}")
        self._check_types(node, schema, dtypes)
        self._checked.add(key)

    def _check_attributes(self, node: Node, schema: Any, opset: int) -> None:
        for name, value in node.attributes.items():
            known = schema.attributes.get(name)
            if known is None:
                rule = f'must have attributes of opset {opset}, and "{name}" is none'
                raise self.draft.refused(node, rule)
            wanted = _ATTRIBUTE_TYPES.get(known.type.name)
            if wanted is not None and not isinstance(value, wanted):
                rule = f'must have an attribute "{name}" of type {known.type.name}'
                raise self.draft.wrong(node, f"{rule}, and has another")
            if known.type.name in ("INTS", "FLOATS") and any(isinstance(v, str) for v in value):
                raise self.draft.wrong(node, f'must have numbers as "{name}", and has texts')
        for name, known in schema.attributes.items():
            if known.required and name not in node.attributes:
                raise self.draft.wrong(node, f'must have the attribute "{name}", and has none')

    def _check_types(self, node: Node, schema: Any, dtypes: Sequence[np.dtype[Any] | None]) -> None:
        allowed = {
            formal.type_param_str: set(formal.allowed_type_strs)
            for formal in schema.type_constraints
        }
        bound: dict[str, str] = {}
        for place, dtype in enumerate(dtypes):
            formal = schema.inputs[min(place, len(schema.inputs) - 1)]
            if dtype is None:
                if formal.option.name == "Single":
                    raise self.draft.wrong(node, f"must have an input {formal.name}, and has none")
                continue
            text = _type_name(dtype)
            choices = allowed.get(formal.type_str, {formal.type_str})
            homogeneous = formal.is_homogeneous and formal.type_str in allowed
            first = bound.setdefault(formal.type_str, text) if homogeneous else text
            if text not in choices or first != text:
                rule = f"must have an input {formal.name} of a type that it takes"
                said = (
                    f"{dtype} does not fit" if first == text else f"has {first[7:-1]} and {dtype}"
                )
                raise self.draft.wrong(node, f"{rule}, and {said}")

    def results(self, node: Node) -> list[TensorType | None]:
        """Infer the types of a node's results; None where extents depend on values.

        Raises E190 where the schema says that the node is wrong, E194 for types that no step takes.
        """
        values = self._told(node)
        attributes = tuple(node.attributes.items())
        key = (
            node.kind,
            tuple(
                (self.draft.types[name], name in values) if name else None for name in node.inputs
            ),
            tuple(bool(name) for name in node.outputs),
            attributes,
            tuple(value.tobytes() for value in values.values()),
        )
        if any(isinstance(value, np.ndarray) for _, value in attributes):
            return self._inferred(node, values)
        if key not in self._results:
            self._results[key] = self._inferred(node, values)
        return self._results[key]

    def _told(self, node: Node) -> dict[str, Array]:
        """Look up the inputs whose values may say extents: small constants."""
        if node.kind in _OF_TYPES_ALONE:
            return {}
        return {
            name: value
            for name in node.inputs
            if (value := self.draft.value(name)) is not None and value.size <= MOST_KNOWN
        }

    def _inferred(self, node: Node, values: Mapping[str, Array]) -> list[TensorType | None]:
        import onnx

        schema = self.schema(node, self.draft.opset)
        inputs = {name: self._type(self.draft.types[name]) for name in node.inputs if name}
        tensors = {name: tensor_message("", value) for name, value in values.items()}
        opset = onnx.OperatorSetIdProto(domain="", version=self.draft.opset)
        try:
            results = onnx.shape_inference.infer_node_outputs(
                schema, node_message(node), inputs, tensors, opset_imports=[opset]
            )
        except MemoryError:
            raise
        except Exception as error:
            raise self._refused(node, error) from None
        return [self._result(node, name, results.get(name)) for name in node.outputs]

    def _refused(self, node: Node, error: Exception) -> MizzenError:
        said = str(error).strip().splitlines() or [type(error).__name__]
        text = said[0].partition("] ")[2] or said[0]
        return self.draft.wrong(node, f"must follow the rules of ONNX, and: {text[:300]}")

    def _result(self, node: Node, name: str, message: Any) -> TensorType | None:
        if not name or message is None:
            return None
        if message.WhichOneof("value") != "tensor_type":
            raise self.draft.refused(node, "must make a tensor, and makes another kind of value")
        tensor = message.tensor_type
        dtype = next((d for d, number in NUMBER_OF.items() if number == tensor.elem_type), None)
        if dtype is None:
            text = OTHERS.get(tensor.elem_type, str(tensor.elem_type))
            raise self.draft.refused(node, f"must make numbers that steps hold, and makes {text}")
        if not tensor.HasField("shape") or any(
            not d.HasField("dim_value") for d in tensor.shape.dim
        ):
            return None
        shape = tuple(int(dim.dim_value) for dim in tensor.shape.dim)
        require_extents(shape, f'"{name}"', self.draft.origin(node))
        return TensorType(dtype, shape)

    def _type(self, type: TensorType) -> Any:
        if type not in self._types:
            import onnx.helper

            self._types[type] = onnx.helper.make_tensor_type_proto(
                NUMBER_OF[type.dtype], type.shape
            )
        return self._types[type]


def tensor_message(name: str, value: Array) -> Any:
    """Make a tensor as ONNX's package has it."""
    import onnx

    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return onnx.TensorProto(
        name=name, dims=value.shape, data_type=NUMBER_OF[value.dtype], raw_data=little.tobytes()
    )


def input_message(name: str, type: TensorType) -> Any:
    """Make the declaration of a tensor as ONNX's package has it."""
    import onnx.helper

    return onnx.helper.make_tensor_value_info(name, NUMBER_OF[type.dtype], type.shape)


def node_message(node: Node) -> Any:
    """Make a node as ONNX's package has it."""
    import onnx

    return onnx.NodeProto(
        op_type=node.kind,
        domain=node.domain,
        input=node.inputs,
        output=node.outputs,
        attribute=[_attribute(name, value) for name, value in node.attributes.items()],
    )


def _attribute(name: str, value: Any) -> Any:
    """Make an attribute; what type it is of, a value says."""
    import onnx

    kinds = onnx.AttributeProto
    match value:
        case bool() | int():
            return kinds(name=name, type=kinds.INT, i=int(value))
        case float():
            return kinds(name=name, type=kinds.FLOAT, f=value)
        case str():
            return kinds(name=name, type=kinds.STRING, s=value.encode())
        case np.ndarray():
            tensor = cast("Array", value)
            return kinds(name=name, type=kinds.TENSOR, t=tensor_message("", tensor))
        case _:
            return _list_attribute(name, value)


def _list_attribute(name: str, values: tuple[Any, ...]) -> Any:
    import onnx

    kinds = onnx.AttributeProto
    if any(isinstance(value, str) for value in values):
        texts = [str(value).encode() for value in values]
        return kinds(name=name, type=kinds.STRINGS, strings=texts)
    if any(isinstance(value, float) for value in values):
        return kinds(name=name, type=kinds.FLOATS, floats=values)
    return kinds(name=name, type=kinds.INTS, ints=values)
