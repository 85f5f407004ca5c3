"""A program as text and as data: offsets, words, commands, fields in the user's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.isa.command import Instruction, Kind

_NO_ORIGINS: Mapping[int, Origin] = {}
_BYTES_PER_WORD = 4
_MNEMONIC_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Line:
    """One command of a listing. `origin` is the model's operator, for operations that have one."""

    offset_words: int
    words: tuple[int, ...]
    name: str
    kind: Kind
    fields: tuple[tuple[str, str], ...]
    origin: Origin | None

    def __str__(self) -> str:
        words = " ".join(f"{word:08x}" for word in self.words)
        fields = " ".join(f"{name}={value}" for name, value in self.fields)
        text = f"{self.offset_words:6}  {words:<17}  {self.name:<{_MNEMONIC_WIDTH}}  {fields}"
        comment = "" if self.origin is None else f"  ; {self.origin}"
        return text.rstrip() + comment

    def as_dict(self) -> dict[str, object]:
        """Return the line as JSON-ready data; words are hexadecimal text, fields are as read."""
        data: dict[str, object] = {
            "offset_words": self.offset_words,
            "words": [f"{word:08x}" for word in self.words],
            "command": self.name,
            "kind": self.kind.value,
            "fields": {name: _plain(value) for name, value in self.fields},
        }
        if self.origin is not None:
            data["operator"] = str(self.origin)
        return data


def _plain(value: str) -> int | str:
    return int(value) if value.lstrip("-").isdigit() else value


def lines(
    instructions: Iterable[Instruction], origins: Mapping[int, Origin] = _NO_ORIGINS
) -> Iterator[Line]:
    """List instructions that follow each other from offset 0.

    `origins` gives the model's operator by the byte offset of an operation command.
    """
    at = 0
    for instruction in instructions:
        command = instruction.command
        packed = command.pack(instruction.values)
        words = tuple(packed >> 32 * place & 0xFFFFFFFF for place in range(command.words))
        fields = tuple((item.name, text) for item, text in instruction.spoken())
        is_operation = command.kind is Kind.OPERATION
        origin = origins.get(at * _BYTES_PER_WORD) if is_operation else None
        yield Line(at, words, command.name, command.kind, fields, origin)
        at += command.words


def listing(
    instructions: Iterable[Instruction], origins: Mapping[int, Origin] = _NO_ORIGINS
) -> list[str]:
    """List instructions as text, one line each: word offset, words, command, fields."""
    return [str(line) for line in lines(instructions, origins)]
