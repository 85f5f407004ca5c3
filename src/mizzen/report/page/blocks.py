"""What a page is made of. Every number that a picture shows stands in its text too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads to a place of the page: the anchor of a row, of commands, of a section."""

    text: str
    anchor: str


Cell = str | int | float | Link | None
"""Text, a number that is sorted as one, or None for what is not known."""


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that one looks at first, and what belongs to it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers that one looks at first."""

    rows: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that sorts by a column and filters by words; numbers are shown with three digits.

    shares   columns whose numbers, 0 to 1, are shown in percent with a bar
    anchors  of the rows, for links that lead to them; none, or one a row, which may be empty
    wide     columns of long texts, which are broken into lines
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shares: frozenset[int] = frozenset()
    anchors: tuple[str, ...] = ()
    wide: frozenset[int] = frozenset()

    @property
    def numeric(self) -> frozenset[int]:
        """The columns of numbers."""
        columns = range(len(self.headings))
        return frozenset(
            place for place in columns
            if any(isinstance(line[place], (int, float)) for line in self.rows)
        )  # fmt: skip


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
    """A time span of a lane; bars of one `colour` belong together, `anchor` is where it leads."""

    start: float
    stop: float
    colour: int
    title: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of a timeline."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes over a common time; `unit` is what its numbers are in, `legend` names its colours."""

    title: str
    text: str
    unit: str
    lanes: tuple[Lane, ...]
    legend: tuple[tuple[int, str], ...] = ()


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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole; `text` says how much it is."""

    name: str
    value: float
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class Shares:
    """A whole and its parts, in one bar."""

    title: str
    text: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a graph: `letter` says by a sign what `colour` says, `title` all there is to say.

    after  places, among the boxes, of those that lead to it
    share  of the whole, 0 to 1, drawn as a bar in the box
    """

    name: str
    detail: str
    letter: str
    colour: int
    title: str
    after: tuple[int, ...] = ()
    anchor: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Graph:
    """Boxes and what leads from one to another, in layers from the top; it has no circle."""

    title: str
    text: str
    boxes: tuple[Box, ...]
    legend: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes from an address on (both in bytes), from column `first` to `last`."""

    first: int
    last: int
    low: int
    high: int
    colour: int
    title: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What lies in a memory from column to column; `peak` is the column with the most, or None."""

    title: str
    text: str
    columns: int
    across: str
    pieces: tuple[Piece, ...]
    peak: int | None
    peak_text: str
    legend: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a chart; both numbers are above 0."""

    x: float
    y: float
    colour: int
    title: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A line of a chart that no point is above: `slope` times x, up to `ceiling`."""

    name: str
    slope: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class Points:
    """A chart of points below lines, both axes logarithmic."""

    title: str
    text: str
    across: str
    upwards: str
    points: tuple[Point, ...]
    limits: tuple[Limit, ...]
    legend: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of a listing that belong together, below a heading, and the place they belong to."""

    anchor: str
    heading: str
    lines: str
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A long text in paragraphs that open one by one."""

    title: str
    paragraphs: tuple[Paragraph, ...]


Block = (
    Note | Facts | Figures | Table | Map | Timeline | Lines | Shares | Graph | Occupancy | Points
    | Listing
)  # fmt: skip


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
    head: tuple[Block, ...] = ()
