"""Reference pages in Markdown, made from the rows of an instruction set."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from mizzen.isa.codec import InstructionSet
from mizzen.isa.command import Command
from mizzen.isa.register import Field, Slice

_LEGEND = """\
The key is the low end of word 0. Bits are counted in their word; a field in several places has its
most significant bits first. Values are what you read and write: sizes, not sizes minus one. Bits
without a field must be zero."""
LARGEST_NUMBER_BITS = 64
"""A wider field is text, not a number."""
_HEAD = "| Key | Command | Field | Bits | Values | Meaning |\n|---|---|---|---|---|---|"


def markdown(machine: InstructionSet) -> str:
    """Return the page of an instruction set: its commands, their fields, and the enumerations."""
    parts = [
        f"# Commands of {machine.name}",
        _LEGEND,
        "\n".join([_HEAD, *(row for command in machine.commands for row in _rows(command))]),
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
