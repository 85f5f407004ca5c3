"""Write FlatBuffers files by their schema, from the data that reading gives."""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np

from mizzen.flatbuffer.reader import Member, Record
from mizzen.flatbuffer.schema import Field, Kind, Schema

DATA_ALIGNMENT_BYTES = 16
"""Byte vectors are tensor contents; runtimes use them in place, aligned like this."""


def write(record: Record, schema: Schema) -> bytes:
    """Write a file whose root table is `record`; fields that are absent or None are left out."""
    writer = _Writer(schema)
    root = writer.table(schema.root, record)
    writer.builder.Finish(root, file_identifier=schema.identifier)
    return bytes(writer.builder.Output())


class _Writer:
    def __init__(self, schema: Schema) -> None:
        # The package has no type information.
        self.builder: Any = flatbuffers.Builder(1 << 16)
        self._schema = schema

    def table(self, name: str, record: Record) -> int:
        """Write a table after what it refers to; return its place. ValueError: unknown field."""
        fields = self._schema.fields(name)
        unknown = record.keys() - {field.name for field in fields}
        if unknown:
            raise ValueError(f"{self._schema.name} {name} has no field {sorted(unknown)}")
        present = [(field, record[field.name]) for field in fields
                   if record.get(field.name) is not None]  # fmt: skip
        values = [(field, self._child(field, value)) for field, value in present]
        slots = max((field.slot + 2 for field in fields), default=0)
        self.builder.StartObject(slots)
        for field, value in values:
            self._slot(field, value)
        return int(self.builder.EndObject())

    def _child(self, field: Field, value: Any) -> Any:
        """Write what the field refers to, and return what to store in the table."""
        if field.is_vector:
            return self._vector(field, value)
        match field.kind:
            case Kind.SCALAR:
                return value
            case Kind.STRING:
                return self.builder.CreateString(value)
            case Kind.TABLE:
                return self.table(field.type_name, value)
            case Kind.UNION:
                assert isinstance(value, Member)
                number = self._schema.unions[field.type_name].index(value.table)
                return number, self.table(value.table, value.fields)

    def _slot(self, field: Field, value: Any) -> None:
        builder = self.builder
        if field.kind is Kind.UNION:
            builder.PrependUint8Slot(field.slot, value[0], 0)
            builder.PrependUOffsetTRelativeSlot(field.slot + 1, value[1], 0)
        elif field.kind is Kind.SCALAR and not field.is_vector:
            _PREPEND[field.type_name](builder, field.slot, value, field.default)
        else:
            builder.PrependUOffsetTRelativeSlot(field.slot, value, 0)

    def _vector(self, field: Field, values: Any) -> int:
        builder = self.builder
        if field.kind is Kind.SCALAR:
            return self._numbers(np.ascontiguousarray(values, field.dtype))
        offsets = [
            builder.CreateString(value)
            if field.kind is Kind.STRING
            else self.table(field.type_name, value)
            for value in values
        ]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def _numbers(self, values: np.ndarray[Any, Any]) -> int:
        builder = self.builder
        size = values.dtype.itemsize
        builder.StartVector(size, values.size, DATA_ALIGNMENT_BYTES if size == 1 else size)
        data = values.tobytes()
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return int(builder.EndVector())


_BUILDER: Any = flatbuffers.Builder
_PREPEND: dict[str, Any] = {
    "bool": _BUILDER.PrependBoolSlot,
    "i8": _BUILDER.PrependInt8Slot,
    "u8": _BUILDER.PrependUint8Slot,
    "i16": _BUILDER.PrependInt16Slot,
    "u16": _BUILDER.PrependUint16Slot,
    "i32": _BUILDER.PrependInt32Slot,
    "u32": _BUILDER.PrependUint32Slot,
    "i64": _BUILDER.PrependInt64Slot,
    "u64": _BUILDER.PrependUint64Slot,
    "f32": _BUILDER.PrependFloat32Slot,
    "f64": _BUILDER.PrependFloat64Slot,
}
