"""What models of files are made of: sections, and texts by the places that they go to.

A key's type says what its value must be, with marks beside it: `Limits`, and `Must` where these do
not say it in words. Errors say a range by its ends, and an enumeration by its values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field
from typing import Annotated, Any, ClassVar, TypeVar, cast, dataclass_transform


@dataclass(frozen=True, slots=True)
class Limits:
    """What a number, a text or a list must keep to.

    pattern   of all of a text
    controls  those that there may be of the characters that show nothing, or turn what shows
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    controls: str | None = None


@dataclass(frozen=True, slots=True)
class Must:
    """What must hold of a value, for errors, where its type does not say it; how it is spelt."""

    words: str
    spell: Callable[[Any], str] = repr


NAME, DESCRIPTION = "name", "description"


def key(*, default: Any = MISSING, description: str = "", name: str = "") -> Any:
    """Say more of a key: what it is left out for, what it means, its name where Python has it."""
    return field(default=default, metadata={DESCRIPTION: description, NAME: name})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(key,))
class Section:
    """A table of a file: no other keys than its own, no conversion of types.

    OTHERS  whether there may be other keys, which nobody reads
    """

    OTHERS: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def as_dict(self) -> dict[str, Any]:
        """Return the values of all keys, those of sections in it as well, by names in Python."""
        return asdict(cast("Any", self))

    def problem(self) -> str | None:
        """Return what must hold of the keys together, where it does not."""
        return None


Entry = TypeVar("Entry")

MOST = 256
Many = Annotated[tuple[Entry, ...], Limits(max_length=MOST)]
"""Entries of a list that people write."""
Rows = tuple[Entry, ...]
"""Entries of a list that programs write."""
Some = Annotated[tuple[Entry, ...], Limits(min_length=1, max_length=MOST)]
"""One at least."""

Identifier = Annotated[
    str,
    Limits(pattern="[A-Za-z][A-Za-z0-9_]*", max_length=64),
    Must("be letters, digits and _, a letter first"),
]
"""A name in C and in linker scripts."""

Word = Annotated[
    str,
    Limits(pattern="[A-Za-z0-9][A-Za-z0-9._+-]*", max_length=64),
    Must("be letters, digits, '.', '_', '+' and '-', a letter or digit first"),
]
"""A word of a command line, of make and CMake, and of the name of a file."""

Title = Annotated[
    str,
    Limits(pattern=r"[\w .,:+\-/()]+", max_length=100),
    Must("be letters, digits, spaces and .,:+-_/()"),
]
"""A title in comments of C and of linker scripts, in pages and in tables."""

Line = Annotated[str, Limits(controls="", max_length=4096), Must("be a text on one line")]
"""A text for people, which is escaped where it goes."""

Text = Annotated[str, Limits(controls="\n", max_length=4096), Must("be a text")]
"""Some lines of it."""
