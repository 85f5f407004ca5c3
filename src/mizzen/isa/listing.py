"""Instruction sets and programs as text: offsets, words, commands, fields in the user's words.

Reference pages, in Markdown, are made from the rows of an instruction set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from mizzen.diagnostics import Origin
from mizzen.escaping import one_line
from mizzen.isa.codec import InstructionSet
from mizzen.isa.command import Command, Instruction, Kind
from mizzen.isa.register import Field, Slice

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

    @property
    def is_operation(self) -> bool:
        """Whether it starts work that reads or writes memory."""
        return self.kind is Kind.OPERATION

    def __str__(self) -> str:
        words = " ".join(f"{word:08x}" for word in self.words)
        fields = " ".join(f"{name}={value}" for name, value in self.fields)
        text = f"{self.offset_words:6}  {words:<17}  {self.name:<{_MNEMONIC_WIDTH}}  {fields}"
        comment = "" if self.origin is None else f"  ; {one_line(str(self.origin))}"
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
        starts_work = command.kind is Kind.OPERATION
        origin = origins.get(at * _BYTES_PER_WORD) if starts_work else None
        yield Line(at, words, command.name, command.kind, fields, origin)
        at += command.words


def listing(
    instructions: Iterable[Instruction], origins: Mapping[int, Origin] = _NO_ORIGINS
) -> list[str]:
    """List instructions as text, one line each: word offset, words, command, fields."""
    return [str(line) for line in lines(instructions, origins)]


_LEGEND = """\
These are all commands, with their fields and the meaning of each. The key is the low end of word 0.
Bits are counted in their word; a field in several places has its most significant bits first.
Values are those that you read and write: sizes, not sizes minus one. Bits without a field must be
zero."""
LARGEST_NUMBER_BITS = 64
"""A wider field is text, not a number."""
_HEAD = "| Key | Command | Field | Bits | Values | Meaning |\n|---|---|---|---|---|---|"


def markdown(machine: InstructionSet) -> str:
    """Return the page of an instruction set: its commands, their fields, and the enumerations."""
    parts = [
        f"# Commands of {machine.name}",
        _LEGEND,
        "\n".join(
            [_HEAD, *(table_row for command in machine.commands for table_row in _rows(command))]
        ),
        "## Enumerations",
        *(_members(enum) for enum in _enums(machine)),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(command: Command) -> Iterable[str]:
    digits = command.key_width // 4
    yield f"| `0x{command.key:0{digits}x}` | `{command.name}` | | | | {command.doc} |"
    for item in command.fields:
        yield f"| | | `{item.name}` | {_bits(item)} | {_values(item)} | {item.doc} |"


def _bits(item: Field) -> str:
    return ", ".join(_place(piece) for piece in reversed(item.slices))


def _place(piece: Slice) -> str:
    word, low = divmod(piece.low, 32)
    return f"word {word}, {Slice(low, piece.width)}"


def _values(item: Field) -> str:
    if item.enum is not None:
        return f"[{item.enum.__name__}](#{item.enum.__name__.lower()})"
    if item.width > LARGEST_NUMBER_BITS:
        return f"{item.width // 8} bytes"
    unit = f" {item.unit}" if item.unit else ""
    return f"{item.minimum} to {item.maximum}{unit}"


def _enums(machine: InstructionSet) -> list[type[IntEnum]]:
    fields = (item for command in machine.commands for item in command.fields)
    used = {item.enum.__name__: item.enum for item in fields if item.enum is not None}
    return [used[name] for name in sorted(used)]


def _members(enum: type[IntEnum]) -> str:
    head = f"### {enum.__name__}\n\n{enum.__doc__}\n\n| Value | Name |\n|---|---|\n"
    return head + "\n".join(f"| {member.value} | `{member.name}` |" for member in enum)
