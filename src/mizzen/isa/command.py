"""A command of a machine, as a table row, and one command in a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mizzen.diagnostics import Origin, fail
from mizzen.isa.register import Field, claim


class Kind(Enum):
    """What executing a command does."""

    OPERATION = "operation"
    """Starts work that reads or writes memory."""
    SETTING = "setting"
    """Writes a register that later operations read."""
    CONTROL = "control"
    """Acts on the command stream itself: waits, interrupts, branches, the end."""


@dataclass(frozen=True, slots=True)
class Command:
    """One row: a command's name, its key, its fields and where that is written.

    `key` is what the low `key_width` bits of word 0 hold for this command and no other; `words` is
    the command's length. Bits of neither key nor fields are reserved and must be zero.
    """

    name: str
    key: int
    words: int
    kind: Kind
    fields: tuple[Field, ...]
    doc: str
    source: str
    key_width: int = 16
    reserved: int = field(init=False, compare=False, repr=False)
    """The bits that must be zero."""

    def __post_init__(self) -> None:
        if self.key >> self.key_width:
            raise ValueError(f"{self.name}: key {self.key:#x} is over {self.key_width} bits")
        key_mask = (1 << self.key_width) - 1
        used = claim(self.name, self.fields, key_mask, 32 * self.words)
        object.__setattr__(self, "reserved", ((1 << 32 * self.words) - 1) & ~used)

    def __call__(self, **values: int) -> Instruction:
        """Make an instruction of this command from the user's numbers; E511 or E512 if wrong."""
        self.require(values)
        return Instruction(self, {item.name: item.read(values[item.name]) for item in self.fields})

    def require(self, values: Mapping[str, int]) -> None:
        """Check that `values` has each field once, in range; E511 or E512 if not."""
        for item in self.fields:
            if item.name not in values:
                raise fail("E512", f"{self.name}: needs a value for {item.name}, none came")
            item.require(values[item.name], self.name)
        if len(values) > len(self.fields):
            known = {item.name for item in self.fields}
            name = next(name for name in values if name not in known)
            raise fail("E512", f"{self.name}: {self._field_names()}, not {name!r}")

    def _field_names(self) -> str:
        names = ", ".join(item.name for item in self.fields)
        return f"the fields are {names}" if names else "there are no fields"

    def unpack(self, command_bits: int, offset_words: int) -> dict[str, int]:
        """Read all fields, in the user's numbers; E503 and E504 name the word offset."""
        if command_bits & self.reserved:
            raise self._reserved_error(command_bits, offset_words)
        values: dict[str, int] = {}
        for item in self.fields:
            value = item.unpack(command_bits)
            if value is None:
                raise self._undefined_error(item, command_bits, offset_words)
            values[item.name] = value
        return values

    def pack(self, values: Mapping[str, int]) -> int:
        """Return all bits of the command; E511 or E512 if a value is missing or does not fit."""
        self.require(values)
        packed = self.key
        for item in self.fields:
            packed |= item.pack(values[item.name])
        return packed

    def _reserved_error(self, command_bits: int, offset_words: int) -> Exception:
        wrong = command_bits & self.reserved
        word, bit = divmod((wrong & -wrong).bit_length() - 1, 32)
        came = f"word {word} is {command_bits >> 32 * word & 0xFFFFFFFF:#010x}"
        return fail(
            "E503",
            f"{self.name}: bit {bit} of word {word} is reserved and must be zero, {came}",
            origin=Origin(command=offset_words),
            rule=self.source,
        )

    def _undefined_error(self, item: Field, command_bits: int, offset_words: int) -> Exception:
        plain = Field(item.name, item.slices, item.doc)
        return fail(
            "E504",
            f"{self.name}: {item.name} must be {item.legal}, not {plain.unpack(command_bits)}",
            origin=Origin(command=offset_words),
            rule=self.source,
        )


@dataclass(frozen=True, slots=True)
class Instruction:
    """One command of a program with its fields' values, in the user's numbers.

    `values` holds members for enumerations (they are ints too). `offset_words` is the place in the
    stream it was decoded from, and 0 for an instruction made by hand; two instructions are equal
    when command and values are.
    """

    command: Command
    values: Mapping[str, int]
    offset_words: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        """The command's name."""
        return self.command.name

    def spoken(self) -> Iterator[tuple[Field, str]]:
        """Return each field with its value in words: the member's name, or the number."""
        for item in self.command.fields:
            value = self.values[item.name]
            yield item, str(value) if item.members is None else item.members[value].name
