"""Which fields the messages of an ONNX file have: numbers, names and kinds of what reading needs.

What is in no row here is skipped: documentation, metadata, training.

Ref: onnx/onnx.proto, IR version 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Scalar(Enum):
    """How the value of a field that is no message is written."""

    INT = auto()
    UNSIGNED = auto()
    FLOAT = auto()
    DOUBLE = auto()
    TEXT = auto()
    BYTES = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    kind  how it is written, or the name of the message that it is
    many  whether it may come several times
    """

    name: str
    kind: Scalar | str
    many: bool = False


INT, UNSIGNED, FLOAT = Scalar.INT, Scalar.UNSIGNED, Scalar.FLOAT
DOUBLE, TEXT, BYTES = Scalar.DOUBLE, Scalar.TEXT, Scalar.BYTES

FIELDS: Mapping[str, Mapping[int, Field]] = {
    "ModelProto": {
        1: Field("ir_version", INT),
        2: Field("producer_name", TEXT),
        7: Field("graph", "GraphProto"),
        8: Field("opset_import", "OperatorSetIdProto", many=True),
        25: Field("functions", "FunctionProto", many=True),
    },
    "OperatorSetIdProto": {1: Field("domain", TEXT), 2: Field("version", INT)},
    "GraphProto": {
        1: Field("node", "NodeProto", many=True),
        2: Field("name", TEXT),
        5: Field("initializer", "TensorProto", many=True),
        11: Field("input", "ValueInfoProto", many=True),
        12: Field("output", "ValueInfoProto", many=True),
        13: Field("value_info", "ValueInfoProto", many=True),
        15: Field("sparse_initializer", "SparseTensorProto", many=True),
    },
    "ValueInfoProto": {1: Field("name", TEXT), 2: Field("type", "TypeProto")},
    "TypeProto": {
        1: Field("tensor_type", "TypeProto.Tensor"),
        4: Field("sequence_type", BYTES),
        5: Field("map_type", BYTES),
        8: Field("sparse_tensor_type", BYTES),
        9: Field("optional_type", BYTES),
    },
    "TypeProto.Tensor": {1: Field("elem_type", INT), 2: Field("shape", "TensorShapeProto")},
    "TensorShapeProto": {1: Field("dim", "TensorShapeProto.Dimension", many=True)},
    "TensorShapeProto.Dimension": {1: Field("dim_value", INT), 2: Field("dim_param", TEXT)},
    "NodeProto": {
        1: Field("input", TEXT, many=True),
        2: Field("output", TEXT, many=True),
        3: Field("name", TEXT),
        4: Field("op_type", TEXT),
        5: Field("attribute", "AttributeProto", many=True),
        7: Field("domain", TEXT),
        8: Field("overload", TEXT),
    },
    "AttributeProto": {
        1: Field("name", TEXT),
        2: Field("f", FLOAT),
        3: Field("i", INT),
        4: Field("s", BYTES),
        5: Field("t", "TensorProto"),
        6: Field("g", "GraphProto"),
        7: Field("floats", FLOAT, many=True),
        8: Field("ints", INT, many=True),
        9: Field("strings", BYTES, many=True),
        10: Field("tensors", "TensorProto", many=True),
        11: Field("graphs", "GraphProto", many=True),
        14: Field("tp", BYTES),
        15: Field("type_protos", BYTES, many=True),
        20: Field("type", INT),
        21: Field("ref_attr_name", TEXT),
        22: Field("sparse_tensor", "SparseTensorProto"),
        23: Field("sparse_tensors", BYTES, many=True),
    },
    "TensorProto": {
        1: Field("dims", INT, many=True),
        2: Field("data_type", INT),
        4: Field("float_data", FLOAT, many=True),
        5: Field("int32_data", INT, many=True),
        6: Field("string_data", BYTES, many=True),
        7: Field("int64_data", INT, many=True),
        8: Field("name", TEXT),
        9: Field("raw_data", BYTES),
        10: Field("double_data", DOUBLE, many=True),
        11: Field("uint64_data", UNSIGNED, many=True),
        13: Field("external_data", "StringStringEntryProto", many=True),
        14: Field("data_location", INT),
    },
    "StringStringEntryProto": {1: Field("key", TEXT), 2: Field("value", TEXT)},
    "SparseTensorProto": {
        1: Field("values", "TensorProto"),
        2: Field("indices", "TensorProto"),
        3: Field("dims", INT, many=True),
    },
    "FunctionProto": {
        1: Field("name", TEXT),
        4: Field("input", TEXT, many=True),
        5: Field("output", TEXT, many=True),
        6: Field("attribute", TEXT, many=True),
        7: Field("node", "NodeProto", many=True),
        9: Field("opset_import", "OperatorSetIdProto", many=True),
        10: Field("domain", TEXT),
        11: Field("attribute_proto", "AttributeProto", many=True),
        13: Field("overload", TEXT),
    },
}
