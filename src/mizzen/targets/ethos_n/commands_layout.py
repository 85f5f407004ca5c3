"""How the structures of command stream 3.1 lie in memory, and the fields that follow from them.

A structure is a table of members; each member lies at the next multiple of its own alignment, as a
C compiler lays it out, and what is between members must be zero. From the table come the fields of
`mizzen.isa`, named by their path (`input.shape.h`), and the way back to the typed records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from mizzen.diagnostics import fail
from mizzen.isa import Field, Slice, choice, number, signed

BITS_PER_BYTE = 8
FILENAME_BYTES = 128


class Scalar(Enum):
    """An integer of a structure: its bytes, and whether it is signed."""

    U8 = (1, False)
    U16 = (2, False)
    I16 = (2, True)
    U32 = (4, False)
    I32 = (4, True)


class Extents(Enum):
    """Four 32-bit extents, and what they are called."""

    FEATURE_MAP = ("n", "h", "w", "c")
    WEIGHTS = ("h", "w", "i", "o")


class Text(Enum):
    """Characters of one byte, zeros after the last."""

    FILENAME = FILENAME_BYTES


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure: the record that holds it, and its members in order."""

    record: Callable[..., object]
    members: tuple[Member, ...]

    @property
    def alignment(self) -> int:
        """Bytes that its address is a multiple of."""
        return max((alignment_of(member.form) for member in self.members), default=1)

    @property
    def size_bytes(self) -> int:
        """Bytes of the structure and of the padding at its end."""
        end = 0
        for member, start in self.placed():
            end = start + size_of(member.form)
        return _round_up(end, self.alignment)

    def placed(self, start: int = 0) -> Iterator[tuple[Member, int]]:
        """Return each member with the byte it begins at, in a structure that begins at `start`."""
        at = start
        for member in self.members:
            at = _round_up(at, alignment_of(member.form))
            yield member, at
            at += size_of(member.form)


Leaf = Scalar | Extents | Text | type[IntEnum]
Form = Leaf | Struct
"""What a member is; an enumeration is one byte."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure: the record's attribute, what it is, what it means, its unit."""

    name: str
    form: Form
    doc: str
    unit: str | None = None


def alignment_of(form: Form) -> int:
    """Return the bytes that a member's address is a multiple of."""
    match form:
        case Scalar():
            return form.value[0]
        case Extents():
            return 4
        case Struct():
            return form.alignment
        case _:
            return 1


def size_of(form: Form) -> int:
    """Return the bytes of a member."""
    match form:
        case Scalar():
            return form.value[0]
        case Extents():
            return 16
        case Text():
            return form.value
        case Struct():
            return form.size_bytes
        case _:
            return 1


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def fields_of(struct: Struct, start: int, prefix: str = "") -> Iterator[Field]:
    """Return the fields of a structure that begins at byte `start` of a command."""
    for member, at in struct.placed(start):
        yield from _fields(member, at, prefix + member.name)


def _fields(member: Member, at: int, name: str) -> Iterator[Field]:
    doc, unit = member.doc, member.unit
    match member.form:
        case Struct() as inner:
            yield from fields_of(inner, at, f"{name}.")
        case Extents() as extents:
            for place, axis in enumerate(extents.value):
                where = _bytes(at + 4 * place, 4)
                yield number(f"{name}.{axis}", where, doc=f"{doc}, {axis.upper()}", unit=unit)
        case Text() as text:
            yield number(name, _bytes(at, text.value), doc=doc)
        case Scalar() as scalar:
            size, is_signed = scalar.value
            make = signed if is_signed else number
            yield make(name, _bytes(at, size), doc=doc, unit=unit)
        case enum:
            yield choice(name, enum, _bytes(at, 1), doc=doc)


def _bytes(at: int, count: int) -> Slice:
    return Slice(BITS_PER_BYTE * at, BITS_PER_BYTE * count)


Value = int | str | tuple[int, ...]
"""What a member holds, unless it is a structure; members of enumerations are integers."""


def members_of(
    struct: Struct, values: Mapping[str, int], prefix: str = ""
) -> Iterator[tuple[str, Value]]:
    """Return each member that is no structure by its path, from the values of the fields."""
    for member in struct.members:
        name = prefix + member.name
        if isinstance(member.form, Struct):
            yield from members_of(member.form, values, f"{name}.")
        else:
            yield name, _value(member.form, values, name)


def record_of(struct: Struct, values: Mapping[str, int], prefix: str = "") -> object:
    """Make the record of a structure from the values of its fields."""
    parts: list[object] = []
    for member in struct.members:
        name = prefix + member.name
        if isinstance(member.form, Struct):
            parts.append(record_of(member.form, values, f"{name}."))
        else:
            parts.append(_value(member.form, values, name))
    return struct.record(*parts)


def _value(form: Leaf, values: Mapping[str, int], name: str) -> Value:
    match form:
        case Extents() as extents:
            return tuple(values[f"{name}.{axis}"] for axis in extents.value)
        case Text() as text:
            return values[name].to_bytes(text.value, "little").decode("latin-1").rstrip("\0")
        case _:
            return values[name]


def values_of(struct: Struct, record: object, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Return the values of the fields of a structure from its record; E933 for a text too long."""
    for member in struct.members:
        part = getattr(record, member.name)
        name = prefix + member.name
        match member.form:
            case Struct() as inner:
                yield from values_of(inner, part, f"{name}.")
            case Extents() as extents:
                for axis, extent in zip(extents.value, part, strict=True):
                    yield f"{name}.{axis}", extent
            case Text() as text:
                yield name, _characters(name, str(part), text.value)
            case _:
                yield name, part


def _characters(name: str, text: str, most: int) -> int:
    if len(text) > most or any(ord(character) > 0xFF for character in text):
        raise fail("E933", f"{name} must be at most {most} characters of Latin-1, not {text!r}")
    return int.from_bytes(text.encode("latin-1"), "little")
