"""What models of files are made of: sections, and texts by the places that they go to.

The words of errors follow from the types: a range says its ends, an enumeration its values; texts
have `Must`. Patterns are Rust's regular expressions, in which `$` is the end of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A table of a file: no other keys than its own, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True, slots=True)
class Must:
    """What must hold of a value, for errors, where its type does not say it; how it is spelt."""

    words: str
    spell: Callable[[Any], str] = repr


Entry = TypeVar("Entry")

MOST = 256
Many = Annotated[tuple[Entry, ...], Field(fail_fast=True, max_length=MOST)]
"""Entries of a list that people write."""
Rows = Annotated[list[Entry], Field(fail_fast=True)]
"""Entries of a list that programs write."""
Some = Annotated[tuple[Entry, ...], Field(fail_fast=True, min_length=1, max_length=MOST)]
"""One at least."""

Identifier = Annotated[
    str,
    Field(pattern="^[A-Za-z][A-Za-z0-9_]*$", max_length=64),
    Must("be letters, digits and _, a letter first"),
]
"""A name in C and in linker scripts."""

Word = Annotated[
    str,
    Field(pattern="^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=64),
    Must("be letters, digits, '.', '_', '+' and '-', a letter or digit first"),
]
"""A word of a command line, of make and CMake, and of the name of a file."""

Title = Annotated[
    str,
    Field(pattern=r"^[\w .,:+\-/()]+$", max_length=100),
    Must("be letters, digits, spaces and .,:+-_/()"),
]
"""A title in comments of C and of linker scripts, in pages and in tables."""

Line = Annotated[
    str,
    Field(pattern=r"^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$", max_length=4096),
    Must("be a text on one line"),
]
"""A text for people, which is escaped where it goes."""
