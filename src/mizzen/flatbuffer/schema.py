"""FlatBuffers schemas as tables of text, from which files are read and written.

A table is a line of fields in slot order, ``name:type`` or ``name:type=default``. Types are scalars
(``bool i8 u8 i16 u16 i32 u32 i64 u64 f32 f64``), ``str``, the name of another table, a union
``<Name>`` (which takes two slots: the member's number, then the member), and vectors of any of
these but unions, ``[type]``. ``_`` names a slot that is no longer used.

Ref: FlatBuffers binary format, https://flatbuffers.dev/internals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache

import numpy as np

from mizzen.flatbuffer.fields import Fields, Table

SCALARS = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype("<i1"),
    "u8": np.dtype("<u1"),
    "i16": np.dtype("<i2"),
    "u16": np.dtype("<u2"),
    "i32": np.dtype("<i4"),
    "u32": np.dtype("<u4"),
    "i64": np.dtype("<i8"),
    "u64": np.dtype("<u8"),
    "f32": np.dtype("<f4"),
    "f64": np.dtype("<f8"),
}


class Kind(Enum):
    """What a field, or an element of a vector, is."""

    SCALAR = auto()
    STRING = auto()
    TABLE = auto()
    UNION = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table; `type_name` is the scalar's, table's or union's name."""

    name: str
    slot: int
    kind: Kind
    type_name: str
    is_vector: bool
    default: int | float | bool

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy type of a scalar, or of a vector's scalars."""
        return SCALARS[self.type_name]


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """All tables and unions of a file format, the root table and the file identifier.

    uses  what becomes of each field
    """

    name: str
    root: str
    identifier: bytes
    tables: dict[str, str]
    unions: dict[str, tuple[str, ...]]
    uses: Table = field(default_factory=dict[str, Fields])

    def fields(self, table: str) -> tuple[Field, ...]:
        """Return the fields of a table; made once."""
        return _fields(self.tables[table])


@cache
def _fields(line: str) -> tuple[Field, ...]:
    fields: list[Field] = []
    slot = 0
    for item in line.split():
        name, _, type_name = item.partition(":")
        type_name, _, default = type_name.partition("=")
        field = _field(name, slot, type_name, default)
        slot += 2 if field.kind is Kind.UNION else 1
        if name != "_":
            fields.append(field)
    return tuple(fields)


def _field(name: str, slot: int, type_name: str, default: str) -> Field:
    is_vector = type_name.startswith("[")
    inner = type_name.strip("[]")
    if inner in SCALARS:
        value = _default(inner, default)
        return Field(name, slot, Kind.SCALAR, inner, is_vector, value)
    if inner == "str":
        return Field(name, slot, Kind.STRING, inner, is_vector, 0)
    if inner.startswith("<"):
        return Field(name, slot, Kind.UNION, inner.strip("<>"), is_vector, 0)
    return Field(name, slot, Kind.TABLE, inner, is_vector, 0)


def _default(type_name: str, text: str) -> int | float | bool:
    match type_name:
        case "bool":
            return text == "1"
        case "f32" | "f64":
            return float(text or 0)
        case _:
            return int(text or 0)
