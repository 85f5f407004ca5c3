"""The TFLite schema against the one that tensorflow/tflite-micro generates from the original."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from mizzen.flatbuffer import Member, Record, write
from mizzen.flatbuffer.schema import Field, Kind, Schema
from mizzen.flatbuffer.tflite import (
    SCHEMA,
    ActivationFunctionType,
    BuiltinOperator,
    Padding,
    TensorType,
)

UNIONS_THEIRS = {
    "BuiltinOptions": "BuiltinOptions",
    "BuiltinOptions2": "BuiltinOptions2",
    "QuantizationDetails": "QuantizationDetails",
    "SparseIndexVector": "SparseIndexVector",
}


@pytest.fixture(scope="module")
def theirs() -> Any:
    pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated

    return schema_py_generated


@pytest.mark.parametrize("ours", [TensorType, BuiltinOperator, ActivationFunctionType, Padding])
def test_enumerations_have_the_numbers_of_the_original(theirs: Any, ours: type[IntEnum]) -> None:
    numbers = {name: value for name, value in vars(getattr(theirs, ours.__name__)).items()
               if not name.startswith("_")}  # fmt: skip
    known = {member.name: int(member) for member in ours}
    assert numbers.items() <= known.items()


@pytest.mark.parametrize("union", SCHEMA.unions)
def test_unions_have_the_numbers_of_the_original(theirs: Any, union: str) -> None:
    numbers = {value: name for name, value in vars(getattr(theirs, union)).items()
               if not name.startswith("_")}  # fmt: skip
    ours = SCHEMA.unions[union]
    assert {number: ours[number] for number in numbers} == numbers


@pytest.mark.parametrize("table", SCHEMA.tables)
def test_tables_have_the_slots_and_types_of_the_original(theirs: Any, table: str) -> None:
    """A file of ours with every field set says the same when read by generated accessors."""
    generated = getattr(theirs, table, None)
    if generated is None:
        pytest.skip(f"the original of tflite-micro is older than {table}")
    record = filled(table)
    data = write(record, Schema("TFLite", table, b"TFL3", SCHEMA.tables, SCHEMA.unions))
    read = getattr(theirs, f"{table}T").InitFromObj(generated.GetRootAs(data, 0))
    for field in SCHEMA.fields(table):
        name = camel(field.name)
        if not hasattr(read, name):
            assert (table, field.name) in NEWER, f"the original has no {table}.{field.name}"
            continue
        assert same(getattr(read, name), record[field.name]), f"{table}.{field.name}"


NEWER = {
    ("FullyConnectedOptions", "quant_spec"),
    ("Model", "external_buffer_groups"),
    ("Model", "external_buffers"),
    ("Operator", "debug_metadata_index"),
    ("SubGraph", "debug_metadata_index"),
    ("Tensor", "external_buffer"),
}
"""Fields of newer schemas than tflite-micro's."""


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def filled(table: str) -> Record:
    """Return a record with every field different from its default, and from its neighbours'."""
    return {field.name: value(field, 3 + place) for place, field in enumerate(SCHEMA.fields(table))}


def value(field: Field, number: int) -> Any:
    if field.kind is Kind.UNION:
        member = SCHEMA.unions[field.type_name][1]
        return Member(member, filled(member))
    if field.kind is Kind.STRING:
        return [f"text{number}"] if field.is_vector else f"text{number}"
    if field.kind is Kind.TABLE:
        return [filled(field.type_name)] if field.is_vector else filled(field.type_name)
    if field.is_vector:
        return np.arange(number, number + 3).astype(field.dtype)
    return not field.default if field.type_name == "bool" else field.dtype.type(number).item()


def same(theirs: Any, ours: Any) -> bool:
    if isinstance(ours, Member):
        return same(theirs, ours.fields)
    if isinstance(ours, dict):
        return all(
            same(getattr(theirs, camel(str(name))), part)
            for name, part in ours.items()
            if hasattr(theirs, camel(str(name)))
        )
    if isinstance(ours, str):
        return theirs == ours.encode()
    if isinstance(ours, np.ndarray):
        return np.array_equal(theirs, ours)
    if isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    return theirs == ours
