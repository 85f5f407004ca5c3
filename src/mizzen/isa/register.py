"""A register, or any other word of a fixed layout, as a table row; and its fields.

A field says which bits hold it, and what number the user reads there. Bits are counted over all
words of a command, word 0 first: bit 32 is bit 0 of word 1. A field may lie in several slices; they
are listed least significant first. The user's number is the raw bits plus a bias (a register that
holds "width minus one" has bias 1), read as two's complement where the field is signed, or a
member of an enumeration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from mizzen.diagnostics import fail


@dataclass(frozen=True, slots=True)
class Slice:
    """Bits ``low`` to ``low + width - 1`` of a command."""

    low: int
    width: int

    @property
    def mask(self) -> int:
        """The slice's bits, in place."""
        return ((1 << self.width) - 1) << self.low

    def __str__(self) -> str:
        high = self.low + self.width - 1
        return str(high) if self.width == 1 else f"{high}:{self.low}"


def bits(high: int, low: int | None = None) -> Slice:
    """Return the slice a manual writes as ``high:low``, or a single bit."""
    low = high if low is None else low
    return Slice(low, high - low + 1)


@dataclass(frozen=True, slots=True)
class Field:
    """One field. Use `number`, `minus_one`, `signed` and `choice` to make rows.

    `minimum` and `maximum` bound the user's number; `mask` has the field's bits in place.
    """

    name: str
    slices: tuple[Slice, ...]
    doc: str
    unit: str | None = None
    bias: int = 0
    is_signed: bool = False
    enum: type[IntEnum] | None = None
    width: int = field(init=False, compare=False, repr=False)
    mask: int = field(init=False, compare=False, repr=False)
    minimum: int = field(init=False, compare=False, repr=False)
    maximum: int = field(init=False, compare=False, repr=False)
    members: dict[int, IntEnum] | None = field(init=False, compare=False, repr=False)
    parts: tuple[tuple[int, int, int], ...] = field(init=False, compare=False, repr=False)
    """(shift to the slice, mask after the shift, position in the raw number) of each slice."""

    def __post_init__(self) -> None:
        width = 0
        mask = 0
        parts: list[tuple[int, int, int]] = []
        for piece in self.slices:
            if mask & piece.mask:
                raise ValueError(f"field {self.name}: bits {piece} are listed twice")
            mask |= piece.mask
            parts.append((piece.low, (1 << piece.width) - 1, width))
            width += piece.width
        lowest = -(1 << width - 1) if self.is_signed else 0
        derived = {
            "width": width,
            "mask": mask,
            "parts": tuple(parts),
            "minimum": lowest + self.bias,
            "maximum": lowest + (1 << width) - 1 + self.bias,
            "members": self._fitting_members(width),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _fitting_members(self, width: int) -> dict[int, IntEnum] | None:
        if self.enum is None:
            return None
        members = {member.value: member for member in self.enum}
        if not all(0 <= value < 1 << width for value in members):
            raise ValueError(f"field {self.name}: {self.enum.__name__} needs over {width} bits")
        return members

    def unpack(self, command_bits: int) -> int | None:
        """Read the user's number from all bits of a command; None for an undefined member."""
        raw = 0
        for shift, mask, position in self.parts:
            raw |= (command_bits >> shift & mask) << position
        if self.members is not None:
            return self.members.get(raw)
        if self.is_signed and raw >> self.width - 1:
            raw -= 1 << self.width
        return raw + self.bias

    def pack(self, value: int) -> int:
        """Return the user's number as bits in place. `value` must be `admits`-ible."""
        raw = (value - self.bias) & (1 << self.width) - 1
        placed = 0
        for shift, mask, position in self.parts:
            placed |= (raw >> position & mask) << shift
        return placed

    def admits(self, value: int) -> bool:
        """Tell whether the field can hold the user's number `value`."""
        if self.members is not None:
            return value in self.members
        return self.minimum <= value <= self.maximum

    def read(self, value: int) -> int:
        """Return `value` as the member it stands for, if the field holds an enumeration."""
        return value if self.members is None else self.members[value]

    @property
    def legal(self) -> str:
        """What the field can hold, in words: a range with its unit, or the defined members."""
        if self.enum is not None:
            return "one of " + ", ".join(f"{member.name} ({member.value})" for member in self.enum)
        unit = f" {self.unit}" if self.unit else ""
        return f"in {self.minimum}..{self.maximum}{unit}"

    def require(self, value: int, command_name: str) -> int:
        """Return `value` back if the field can hold it; E511 if not."""
        if not self.admits(value):
            raise fail("E511", f"{command_name}: {self.name} must be {self.legal}, not {value}")
        return value


def claim(owner: str, fields: tuple[Field, ...], taken: int, width: int) -> int:
    """Return all bits that `taken` and `fields` use.

    A field beyond `width` bits, or over bits of `taken` or of a field before it, is a mistake in a
    table: ValueError.
    """
    for place, item in enumerate(fields):
        if item.mask >> width:
            raise ValueError(f"{owner}: {item.name} lies beyond {width} bits")
        if item.mask & taken:
            before = (other.name for other in fields[:place] if other.mask & item.mask)
            raise ValueError(f"{owner}: {item.name} lies over {next(before, 'the key')}")
        taken |= item.mask
    return taken


def number(name: str, *slices: Slice, doc: str, unit: str | None = None) -> Field:
    """Make an unsigned field."""
    return Field(name, slices, doc, unit)


def minus_one(name: str, *slices: Slice, doc: str, unit: str | None = None) -> Field:
    """Make a field whose register holds the user's number minus one."""
    return Field(name, slices, doc, unit, bias=1)


def signed(name: str, *slices: Slice, doc: str, unit: str | None = None) -> Field:
    """Make a two's complement field."""
    return Field(name, slices, doc, unit, is_signed=True)


def choice(name: str, enum: type[IntEnum], *slices: Slice, doc: str) -> Field:
    """Make a field that holds a member of an enumeration."""
    return Field(name, slices, doc, enum=enum)


@dataclass(frozen=True, slots=True)
class Register:
    """One 32-bit word: its fields and where that is written. Other bits are of no interest."""

    name: str
    fields: tuple[Field, ...]
    doc: str
    source: str

    def __post_init__(self) -> None:
        claim(self.name, self.fields, 0, 32)

    def unpack(self, word: int) -> dict[str, int]:
        """Read all fields, in the user's numbers; E505 for an undefined member."""
        values: dict[str, int] = {}
        for item in self.fields:
            value = item.unpack(word)
            if value is None:
                message = f"{self.name} is {word:#010x}, whose {item.name} must be {item.legal}"
                raise fail("E505", message, rule=self.source)
            values[item.name] = value
        return values

    def pack(self, values: Mapping[str, int]) -> int:
        """Return the word with all fields set; E511 if a value does not fit."""
        word = 0
        for item in self.fields:
            word |= item.pack(item.require(values[item.name], self.name))
        return word
