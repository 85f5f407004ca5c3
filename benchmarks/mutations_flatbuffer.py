"""Mutate FlatBuffers files field by field: where the schema says that a number is, another is put.

Files are changed in place, so that everything else in them stays as it was: scalars, elements of
vectors, lengths, offsets, the numbers of unions' members, characters, entries of vtables.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from mizzen.flatbuffer import Schema
from mizzen.flatbuffer.schema import Field, Kind
from mutations_bytes import Mutate, flipped, poke, raw

FORMS = {
    "bool": "<B", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I",
    "i64": "<q", "u64": "<Q", "f32": "<f", "f64": "<d",
}  # fmt: skip
MOST_ELEMENTS = 24
"""Of a vector of numbers whose places are listed; a long one is data."""
WORDS_BYTES = 64
"""A byte vector that is longer is contents: numbers of 32 bits, commands or weights."""


@dataclass(frozen=True, slots=True)
class Place:
    """A number in a file: how it is stored, and what it is."""

    at: int
    form: str
    what: str


@dataclass(frozen=True, slots=True)
class Text:
    """Characters in a file, or contents of a tensor."""

    at: int
    size: int


class _Walk:
    """Lists the places of a sound file, without building anything."""

    def __init__(self, data: bytes, schema: Schema) -> None:
        self.data = data
        self.schema = schema
        self.places: list[Place] = [Place(0, "<I", "root")]
        self.texts: list[Text] = []
        self._seen: set[int] = set()
        self.table(schema.root, self._follow(0))

    def _number(self, form: str, at: int) -> int:
        return struct.unpack_from(form, self.data, at)[0]

    def _follow(self, at: int) -> int:
        return at + self._number("<I", at)

    def table(self, name: str, at: int) -> None:
        if at in self._seen:
            return
        self._seen.add(at)
        self.places.append(Place(at, "<i", f"vtable of {name}"))
        vtable = at - self._number("<i", at)
        size = self._number("<H", vtable)
        self.places += [Place(vtable, "<H", "vtable size"), Place(vtable + 2, "<H", "table size")]
        for field in self.schema.fields(name):
            entry = vtable + 4 + 2 * field.slot
            if entry + 2 > vtable + size:
                continue
            self.places.append(Place(entry, "<H", f"slot of {name}.{field.name}"))
            offset = self._number("<H", entry)
            if field.kind is Kind.UNION:
                self._union(field, name, at, entry, vtable + size)
            elif offset:
                self._field(field, name, at + offset)

    def _union(self, field: Field, name: str, at: int, entry: int, end: int) -> None:
        tag = self._number("<H", entry)
        value = self._number("<H", entry + 2) if entry + 4 <= end else 0
        if not tag or not value:
            return
        self.places.append(Place(at + tag, "<B", f"member of {name}.{field.name}"))
        self.places.append(Place(at + value, "<I", f"offset of {name}.{field.name}"))
        member = self.schema.unions[field.type_name][self.data[at + tag]]
        if member in self.schema.tables:
            self.table(member, self._follow(at + value))

    def _field(self, field: Field, name: str, place: int) -> None:
        what = f"{name}.{field.name}"
        if field.kind is Kind.SCALAR and not field.is_vector:
            self.places += [Place(place, FORMS[field.type_name], what)] * 3
            return
        self.places.append(Place(place, "<I", f"offset of {what}"))
        target = self._follow(place)
        if field.is_vector:
            self._vector(field, what, target)
        elif field.kind is Kind.STRING:
            self._text(target)
        else:
            self.table(field.type_name, target)

    def _text(self, at: int) -> None:
        self.places.append(Place(at, "<I", "length of a text"))
        self.texts.append(Text(at + 4, self._number("<I", at)))

    def _vector(self, field: Field, what: str, at: int) -> None:
        count = self._number("<I", at)
        self.places.append(Place(at, "<I", f"length of {what}"))
        if field.kind is Kind.SCALAR:
            form = FORMS[field.type_name]
            size = struct.calcsize(form)
            if size == 1 and count > WORDS_BYTES:
                self.texts.append(Text(at + 4, count))
                return
            rows = range(at + 4, at + 4 + size * min(count, MOST_ELEMENTS), size)
            self.places += [Place(row, form, what) for row in rows]
            return
        for row in range(at + 4, at + 4 + 4 * count, 4):
            self.places.append(Place(row, "<I", f"offset in {what}"))
            if field.kind is Kind.STRING:
                self._text(self._follow(row))
            else:
                self.table(field.type_name, self._follow(row))


@lru_cache(maxsize=64)
def _walked(data: bytes, name: str) -> _Walk:
    return _Walk(data, SCHEMAS[name])


SCHEMAS: dict[str, Schema] = {}
"""By their names: a walk is remembered by the file and the name."""


def by_schema(schema: Schema) -> Mutate:
    """Return what mutates files of a schema, fields mostly."""
    SCHEMAS[schema.name] = schema

    def mutate(data: bytes, chance: Random) -> bytes:
        if chance.random() < 0.15:
            return raw(data, chance)
        walk = _walked(data, schema.name)
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
            _change(changed, walk, chance)
        return bytes(changed)

    return mutate


def _change(data: bytearray, walk: _Walk, chance: Random) -> None:
    if chance.random() < 0.85 or not walk.texts:
        place = chance.choice(walk.places)
        match chance.randrange(6):
            case 0:  # what another such number is
                alike = [row for row in walk.places if row.what == place.what]
                size = struct.calcsize(place.form)
                other = chance.choice(alike).at
                data[place.at : place.at + size] = data[other : other + size]
            case 1:  # what it is in some other use: small numbers are indices, types, axes
                size = struct.calcsize(place.form)
                data[place.at : place.at + size] = chance.randrange(40).to_bytes(size, "little")
            case _:
                poke(data, place.at, place.form, chance)
        return
    text = chance.choice(walk.texts)
    if text.size > WORDS_BYTES and chance.random() < 0.6:
        poke(data, text.at + 4 * chance.randrange(text.size // 4), "<I", chance)
        return
    held = bytes(data[text.at : text.at + text.size])
    data[text.at : text.at + text.size] = flipped(held, chance)[: text.size].ljust(text.size, b"\0")


def places_of(data: bytes, schema: Schema) -> Iterator[str]:
    """Name the numbers of a file."""
    SCHEMAS[schema.name] = schema
    return (place.what for place in _walked(data, schema.name).places)
