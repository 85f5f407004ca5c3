"""The file of a network, as a user gives it, and what the user says of what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path

from mizzen.diagnostics import MizzenError, fail

Shapes = Mapping[str, int | Sequence[int]]
"""What a user says of open extents: the shape of an input, or an extent that has a name."""

Extents = dict[str, int | tuple[int, ...]]
"""The same, checked."""


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a network's file, and where it was.

    name    what diagnostics call it
    folder  where files beside it may lie; None of a network that came as bytes
    """

    data: bytes
    name: str
    folder: Path | None = None

    @property
    def stem(self) -> str:
        """Its name without what says its form."""
        return Path(self.name).stem


def checked(shapes: Shapes | None) -> Extents:
    """Return what shapes say, checked. E197 for extents that are no whole numbers from 1."""
    return {name: _extents(name, said) for name, said in (shapes or {}).items()}


def _extents(name: str, said: int | Sequence[int]) -> int | tuple[int, ...]:
    try:
        extents = tuple(map(index, said)) if isinstance(said, Sequence) else index(said)
    except TypeError:
        raise _malformed(f"{name}={said!r}") from None
    several = (extents,) if isinstance(extents, int) else extents
    if not name or min(several, default=1) < 1:
        raise _malformed(f"{name}={said!r}")
    return extents


def read_shapes(texts: Sequence[str]) -> Extents:
    """Read the options of a command line. E197 for one that does not say extents."""
    shapes: Extents = {}
    for text in texts:
        name, _, said = text.rpartition("=")
        extents = said.split(",")
        if not name.strip() or not all(_is_extent(each.strip()) for each in extents):
            raise _malformed(text)
        several = [int(each) for each in extents]
        shapes[name.strip()] = several[0] if len(several) == 1 else tuple(several)
    return shapes


def _is_extent(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


def _malformed(came: str) -> MizzenError:
    return fail(
        "E197",
        "a shape must be the name of an input, or of an extent, and whole numbers from 1, and "
        f"{came} came",
        help="write input=1,3,224,224 for an input, or batch=1 for an extent that has a name",
    )
