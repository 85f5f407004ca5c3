"""Read FlatBuffers files by their schema, checking every offset against the file.

A damaged file ends in a diagnostic that names the table and the byte; it can neither make the
reader run outside the file nor make it build more than the file could hold.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer.schema import Field, Kind, Schema

Record = dict[str, Any]
"""A table: field name to value. Absent scalars have their default, other absent fields are None."""

BUDGET_PER_BYTE = 4
"""How much a file may ask for, in bytes for each of its own. Whole files ask for less than half of
it; more needs many references to the same bytes, and could ask for any amount."""

COST_BYTES = 32
"""What a table or a string costs of the budget, beside a string's characters."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """The member of a union that is set: which table, and its fields."""

    table: str
    fields: Record


def read(data: bytes, schema: Schema, file: str) -> Record:
    """Read a whole file; `file` names it in diagnostics.

    Raises E101 for a file of another format, E102 for a damaged one.
    """
    identifier = schema.identifier
    if len(data) < 8 or data[4:8] != identifier:
        raise fail(
            "E101",
            f"{file} must be a {schema.name} file: bytes 4..8 must be {identifier.decode()!r}, "
            f"not {data[4:8].decode('latin-1')!r}",
            help="give a quantised .tflite file, or an artifact that `mizzen compile` wrote",
        )
    reader = _Reader(data, schema, file)
    return reader.table(schema.root, reader.follow(0, schema.root), schema.root)


class _Reader:
    def __init__(self, data: bytes, schema: Schema, file: str) -> None:
        self._data = data
        self._schema = schema
        self._file = file
        self._budget = len(data) * BUDGET_PER_BYTE

    def follow(self, at: int, path: str) -> int:
        """Follow the offset stored at `at`."""
        return at + self._number("<I", at, path)

    def table(self, name: str, at: int, path: str) -> Record:
        self._spend(COST_BYTES, at, path)
        vtable = at - self._number("<i", at, path)
        size = self._number("<H", vtable, path)
        if size < 4 or size % 2:
            raise self._damaged(vtable, path, f"a vtable cannot have {size} bytes")
        self._check(vtable, size, path)
        record: Record = {}
        for field in self._schema.fields(name):
            record[field.name] = self._field(field, at, vtable, size, f"{path}.{field.name}")
        return record

    def _field(self, field: Field, at: int, vtable: int, size: int, path: str) -> Any:
        place = self._place(field.slot, at, vtable, size)
        if field.kind is Kind.UNION:
            value = self._place(field.slot + 1, at, vtable, size)
            return self._union(field, place, value, path)
        if place is None:
            return field.default if field.kind is Kind.SCALAR and not field.is_vector else None
        if field.is_vector:
            return self._vector(field, self.follow(place, path), path)
        match field.kind:
            case Kind.SCALAR:
                return self._scalars(field, place, 1, path)[0].item()
            case Kind.STRING:
                return self._string(self.follow(place, path), path)
            case _:
                return self.table(field.type_name, self.follow(place, path), path)

    def _place(self, slot: int, at: int, vtable: int, size: int) -> int | None:
        entry = 4 + 2 * slot
        if entry + 2 > size:
            return None
        offset = struct.unpack_from("<H", self._data, vtable + entry)[0]
        return at + offset if offset else None

    def _union(self, field: Field, tag: int | None, value: int | None, path: str) -> Member | None:
        number = 0 if tag is None else self._number("<B", tag, path)
        members = self._schema.unions[field.type_name]
        if number == 0 or value is None:
            return None
        if number >= len(members):
            raise self._damaged(tag or 0, path, f"{field.type_name} has no member {number}")
        table = members[number]
        return Member(table, self.table(table, self.follow(value, path), path))

    def _vector(self, field: Field, at: int, path: str) -> Any:
        count = self._number("<I", at, path)
        if field.kind is Kind.SCALAR:
            return self._scalars(field, at + 4, count, path)
        self._check(at + 4, 4 * count, path)
        places = range(at + 4, at + 4 + 4 * count, 4)
        if field.kind is Kind.STRING:
            return [self._string(self.follow(place, path), path) for place in places]
        return [
            self.table(field.type_name, self.follow(place, path), f"{path}[{index}]")
            for index, place in enumerate(places)
        ]

    def _scalars(self, field: Field, at: int, count: int, path: str) -> np.ndarray[Any, Any]:
        self._check(at, count * field.dtype.itemsize, path)
        if field.dtype == np.bool_:  # any byte but zero is true
            self._spend(count, at, path)
            return np.frombuffer(self._data, np.uint8, count, at) != 0
        return np.frombuffer(self._data, field.dtype, count, at)

    def _string(self, at: int, path: str) -> str:
        length = self._number("<I", at, path)
        self._check(at + 4, length, path)
        self._spend(COST_BYTES + length, at, path)
        return self._data[at + 4 : at + 4 + length].decode("utf-8", errors="replace")

    def _number(self, form: str, at: int, path: str) -> int:
        self._check(at, struct.calcsize(form), path)
        return struct.unpack_from(form, self._data, at)[0]

    def _spend(self, cost: int, at: int, path: str) -> None:
        self._budget -= cost
        if self._budget < 0:
            raise self._damaged(at, path, "there is more in the file than it has room for")

    def _check(self, at: int, length: int, path: str) -> None:
        if at < 0 or at + length > len(self._data):
            raise self._damaged(
                at, path, f"{length} bytes are needed there and the file has {len(self._data)}"
            )

    def _damaged(self, at: int, path: str, reason: str) -> MizzenError:
        return fail(
            "E102",
            f"{self._file} must be a whole {self._schema.name} file, and is damaged at byte {at}, "
            f"{path}: {reason}",
            help="get the file again; it is truncated or its bytes have changed",
        )
