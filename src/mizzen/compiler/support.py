"""What an NPU family supports, as tables that programs and people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mizzen.flatbuffer.tflite import BuiltinOperator

Cell = str | int
"""Text, or a number of bytes."""


@dataclass(frozen=True, slots=True)
class SupportTable:
    """A table; `right` are the columns whose cells stand at their right edge."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SupportText:
    """A paragraph."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SupportRule:
    """What operators must keep to for the NPU.

    npus   the products that it holds for
    limit  what must hold; `help` says what to change
    """

    id: str
    npus: tuple[str, ...]
    limit: str
    help: str
    source: str
    operators: frozenset[str]

    def as_dict(self) -> dict[str, object]:
        """Return the rule as JSON-ready data, without its operators."""
        return {
            "id": self.id,
            "npus": list(self.npus),
            "limit": self.limit,
            "help": self.help,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Support:
    """All of it.

    operators     type of operator to the products that have a form of it
    accelerators  JSON-ready, like `files` (what is in files of configurations) and `inferred` (what
                  the simulator executes otherwise than by example)
    parts         for people
    """

    operators: Mapping[str, tuple[str, ...]]
    rules: tuple[SupportRule, ...]
    accelerators: tuple[dict[str, object], ...]
    inferred: tuple[dict[str, object], ...]
    parts: tuple[SupportTable | SupportText, ...]
    files: Mapping[str, Any] = field(default_factory=dict[str, Any])


def is_operator(kind: str) -> bool:
    """Whether TFLite has a type of operators of this name."""
    return kind in BuiltinOperator.__members__
