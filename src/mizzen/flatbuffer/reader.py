"""Read FlatBuffers files by their schema, checking every offset against the file.

A damaged file ends in a diagnostic that names the table and the byte; it can neither make the
reader run outside the file nor make it build more than the file could hold.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer.schema import SCALARS, Field, Kind, Schema

Record = dict[str, Any]
"""A table: field name to value. Absent scalars have their default, other absent fields are None."""

BUDGET_PER_BYTE = 4
"""How much a file may ask for, in bytes for each of its own. Whole files ask for less than half of
it; more needs many references to the same bytes, and could ask for any amount."""

VTABLE_HEAD_BYTES = 4
"""Before a table's offsets: the vtable's size, and the table's."""

COST_BYTES = 32
"""What a table or a string costs of the budget, beside a string's characters."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """The member of a union that is set: which table, and its fields."""

    table: str
    fields: Record


def read(data: bytes, schema: Schema, file: str) -> Record:
    """Read a whole file; `file` names it in diagnostics.

    Raises E101 for a file of another format, E102 for a damaged one, E141 for a field that is set
    and that nothing reads.
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
    root = (None, schema.root)
    return reader.table(schema.root, reader.follow(0, root), root)


def extent(data: bytes, schema: Schema, file: str) -> int:
    """Return where a file ends that other bytes follow, up to three bytes late.

    Raises as `read`.
    """
    reader = _Reader(data, schema, file)
    root = (None, schema.root)
    reader.table(schema.root, reader.follow(0, root), root)
    end = reader.end + 1  # after a string is a zero
    return min(len(data), end + -end % 4)


Path = tuple[Any, str | int]
"""Where in a file: the place that has it, and a field's name or an element's index there."""

U8, U16, I32, U32 = (struct.Struct(form) for form in ("<B", "<H", "<i", "<I"))

NUMBERS = {
    name: struct.Struct(f"<{letter}")
    for name, letter in zip(
        SCALARS, ("B", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d"), strict=True
    )
}
"""How a single scalar is read, by the name of its type."""


class _Reader:
    def __init__(self, data: bytes, schema: Schema, file: str) -> None:
        self._data = data
        self._schema = schema
        self._file = file
        self._budget = len(data) * BUDGET_PER_BYTE
        self.end = 0

    def follow(self, at: int, path: Path) -> int:
        """Follow the offset stored at `at`."""
        return at + self._number(U32, at, path)

    def table(self, name: str, at: int, path: Path) -> Record:
        """Return the fields of the table at a byte. E102 for one that the file cannot have."""
        self._spend(COST_BYTES, at, path)
        fields = self._schema.fields(name)
        offsets = self._offsets(at, path, fields[-1].slot + 2 if fields else 0)
        record: Record = {}
        for field in fields:
            place = at + offsets[field.slot] if offsets[field.slot] else None
            if field.kind is Kind.UNION:
                value = offsets[field.slot + 1]
                within = (path, field.name)
                record[field.name] = self._union(field, place, at + value if value else 0, within)
            elif place is None:
                is_number = field.kind is Kind.SCALAR and not field.is_vector
                record[field.name] = field.default if is_number else None
            else:
                record[field.name] = self._field(field, place, (path, field.name))
        uses = self._schema.uses.get(name)
        if uses is not None and uses.refused:
            self._refuse(record, fields, uses.refused, path)
        return record

    def _refuse(
        self, record: Record, fields: Sequence[Field], refused: Mapping[str, str], path: Path
    ) -> None:
        """Refuse a field that is set, and that nothing reads, by what the file would mean."""
        for field in fields:
            value = record[field.name]
            if field.name not in refused or value is None:
                continue
            is_empty = (field.is_vector or field.kind is Kind.STRING) and not len(value)
            is_number = field.kind is Kind.SCALAR and not field.is_vector
            if is_empty or (is_number and value == field.default):
                continue
            shown = f", not {value}" if is_number else ""
            default = f" or {field.default}" if is_number else ""
            raise fail(
                "E141",
                f"{self._file} must have {_written((path, field.name))} absent{default}{shown}: "
                f"as it is, {refused[field.name]}, which Mizzen does not read",
                help="write the file without it",
            )

    def _offsets(self, at: int, path: Path, slots: int) -> tuple[int, ...]:
        """Return where in a table each of its first slots is; 0 for those that it does not have."""
        vtable = at - self._number(I32, at, path)
        size = self._number(U16, vtable, path)
        if size < VTABLE_HEAD_BYTES or size % 2:
            raise self._damaged(vtable, path, f"a vtable cannot have {size} bytes")
        self._check(vtable, size, path)
        held = min(slots, (size - VTABLE_HEAD_BYTES) // 2)
        offsets = struct.unpack_from(f"<{held}H", self._data, vtable + VTABLE_HEAD_BYTES)
        return offsets + (0,) * (slots - held)

    def _field(self, field: Field, place: int, path: Path) -> Any:
        if field.is_vector:
            return self._vector(field, self.follow(place, path), path)
        match field.kind:
            case Kind.SCALAR:
                value = self._number(NUMBERS[field.type_name], place, path)
                if field.type_name != "bool":
                    return value
                self._spend(1, place, path)
                return bool(value)
            case Kind.STRING:
                return self._string(self.follow(place, path), path)
            case _:
                return self.table(field.type_name, self.follow(place, path), path)

    def _union(self, field: Field, tag: int | None, value: int, path: Path) -> Member | None:
        number: int = 0 if tag is None else self._number(U8, tag, path)
        members = self._schema.unions[field.type_name]
        if number == 0 or value == 0:
            return None
        if number >= len(members):
            raise self._damaged(tag or 0, path, f"{field.type_name} has no member {number}")
        table = members[number]
        return Member(table, self.table(table, self.follow(value, path), path))

    def _vector(self, field: Field, at: int, path: Path) -> Any:
        count = self._number(U32, at, path)
        if field.kind is Kind.SCALAR:
            return self._scalars(field, at + 4, count, path)
        self._check(at + 4, 4 * count, path)
        places = range(at + 4, at + 4 + 4 * count, 4)
        if field.kind is Kind.STRING:
            return [self._string(self.follow(place, path), path) for place in places]
        return [
            self.table(field.type_name, self.follow(place, path), (path, index))
            for index, place in enumerate(places)
        ]

    def _scalars(self, field: Field, at: int, count: int, path: Path) -> np.ndarray[Any, Any]:
        self._check(at, count * field.dtype.itemsize, path)
        if field.dtype == np.bool_:  # any byte but zero is true
            self._spend(count, at, path)
            return np.frombuffer(self._data, np.uint8, count, at) != 0
        return np.frombuffer(self._data, field.dtype, count, at)

    def _string(self, at: int, path: Path) -> str:
        length = self._number(U32, at, path)
        self._check(at + 4, length, path)
        self._spend(COST_BYTES + length, at, path)
        return self._data[at + 4 : at + 4 + length].decode("utf-8", errors="replace")

    def _number(self, form: struct.Struct, at: int, path: Path) -> Any:
        self._check(at, form.size, path)
        return form.unpack_from(self._data, at)[0]

    def _spend(self, cost: int, at: int, path: Path) -> None:
        self._budget -= cost
        if self._budget < 0:
            raise self._damaged(at, path, "there is more in the file than it has room for")

    def _check(self, at: int, length: int, path: Path) -> None:
        if at < 0 or at + length > len(self._data):
            raise self._damaged(
                at, path, f"{length} bytes are needed there and the file has {len(self._data)}"
            )
        self.end = max(self.end, at + length)

    def _damaged(self, at: int, path: Path, reason: str) -> MizzenError:
        return fail(
            "E102",
            f"{self._file} must be a whole {self._schema.name} file, and is damaged at byte {at}, "
            f"{_written(path)}: {reason}",
            help="get the file again; it is truncated or its bytes have changed",
        )


def _written(path: Path) -> str:
    """Return a place as text: ``Model.subgraphs[0].tensors[3]``."""
    outer, here = path
    if outer is None:
        return str(here)
    return f"{_written(outer)}[{here}]" if isinstance(here, int) else f"{_written(outer)}.{here}"
