"""A register, or any other word of a fixed layout, as a table row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.isa.field import Field, claim


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
