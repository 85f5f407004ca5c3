"""What a page is made of. Every number that a picture shows stands in its text too."""

from __future__ import annotations

from dataclasses import dataclass

Cell = str | int | float
"""Text, or a number that is sorted as one."""


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that sorts by a column and filters by words; numbers are shown with three digits.

    `shares` are columns whose numbers, 0 to 1, are shown in percent with a bar.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shares: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """A rectangle of a map, `share` of its limit in use; None for one that is not there to use."""

    x: float
    y: float
    width: float
    height: float
    share: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a map, `share` of its limit in use."""

    x: float
    y: float
    to_x: float
    to_y: float
    share: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Map:
    """Places and the lines between them, coloured by how much of each is in use."""

    title: str
    text: str
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A time span of a lane; bars of one `colour` belong together."""

    start: float
    stop: float
    colour: int
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of a timeline."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes over a common time; `unit` is what its numbers are in."""

    title: str
    text: str
    unit: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one line of a chart."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of lines; both axes are logarithmic where `is_logarithmic`."""

    title: str
    text: str
    across: str
    upwards: str
    series: tuple[Series, ...]
    is_logarithmic: bool = False


Block = Note | Facts | Table | Map | Timeline | Lines


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A report."""

    title: str
    summary: str
    sections: tuple[Section, ...]
