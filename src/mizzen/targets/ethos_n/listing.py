"""The listing of an Ethos-N command stream: every command, and where the stream stops being one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from mizzen.diagnostics import Diagnostic
from mizzen.isa import Instruction, Kind
from mizzen.targets.ethos_n.commands import VERSION, Value, decode_partial, members_of, struct_of

_INDENT = " " * 8
_NAME_WIDTH = 27
_TEXT_WIDTH = 85


@dataclass(frozen=True, slots=True)
class Line:
    """One command: its offset in the stream in 32-bit words, and its members by path."""

    offset_words: int
    name: str
    kind: Kind
    members: tuple[tuple[str, Value], ...]

    @property
    def is_operation(self) -> bool:
        """Whether it starts work that reads or writes memory."""
        return self.kind is Kind.OPERATION

    def __str__(self) -> str:
        lines = [f"{self.offset_words:6}  {self.name}"]
        for group, texts in self._grouped():
            name = group
            for text in _filled(texts):
                lines.append(f"{_INDENT}{name:<{_NAME_WIDTH}}{text}")
                name = ""
        return "\n".join(lines)

    def _grouped(self) -> Iterator[tuple[str, list[str]]]:
        """Return each structure of the command with its members; others stand alone."""
        groups: dict[str, list[str]] = {}
        for path, value in self.members:
            group, _, member = path.rpartition(".")
            text = _spoken(value)
            groups.setdefault(group or path, []).append(f"{member}={text}" if group else text)
        return iter(groups.items())

    def as_dict(self) -> dict[str, object]:
        """Return the command as JSON-ready data: structures are objects, extents are lists."""
        structures: dict[str, dict[str, object]] = {}
        data: dict[str, object] = {}
        for path, value in self.members:
            group, _, member = path.rpartition(".")
            if group and group not in structures:
                data[group] = structures[group] = {}
            target = structures[group] if group else data
            target[member] = _plain(value)
        return {"offset_words": self.offset_words, "command": self.name, **data}


def _filled(texts: list[str]) -> Iterator[str]:
    """Join texts to lines of at most `_TEXT_WIDTH` characters."""
    line = texts[0]
    for text in texts[1:]:
        if len(line) + 1 + len(text) > _TEXT_WIDTH:
            yield line
            line = text
        else:
            line += f" {text}"
    yield line


def _spoken(value: Value) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(_plain(value))


def _plain(value: Value) -> int | str | list[int]:
    if isinstance(value, tuple):
        return list(value)
    return value.name if isinstance(value, IntEnum) else value


@dataclass(frozen=True, slots=True)
class StreamListing:
    """The good commands of a stream; `stopped_by` says why they end before the stream does."""

    lines: tuple[Line, ...]
    stopped_by: Diagnostic | None

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self.lines)

    def as_dict(self) -> dict[str, object]:
        """Return the listing as JSON-ready data."""
        data: dict[str, object] = {
            "command_stream": ".".join(map(str, VERSION)),
            "commands": [line.as_dict() for line in self.lines],
        }
        if self.stopped_by is not None:
            data["stopped_by"] = self.stopped_by.as_dict()
        return data


def list_stream(stream: bytes) -> StreamListing:
    """List a command stream as far as it is good."""
    unpacked = decode_partial(stream)
    lines = tuple(_line(instruction) for instruction in unpacked.instructions)
    return StreamListing(lines, unpacked.stopped_by)


def _line(instruction: Instruction) -> Line:
    members = members_of(struct_of(instruction), instruction.values)
    return Line(
        instruction.offset_words, instruction.name, instruction.command.kind, tuple(members)
    )
