"""How the table of layers reads: shares, what bounds each, memory, names as wide as there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.cli.console import MAXIMUM_WIDTH
from mizzen.cli.layout import GAP, named_table, paragraph, size, table

if TYPE_CHECKING:
    from mizzen.report.cliffs import Cliff
    from mizzen.report.layers import Layer

HEADING = "Layers (cycles are estimates)"
NOTHING = "-"
WIDE = 140
"""Columns from which on a table has room for everything."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, on terminals of at least some width."""

    heading: str
    text: Callable[[Layer], str]
    is_number: bool = True
    from_width: int = 0


def _share(row: Layer) -> str:
    return f"{100 * row.share:.1f} %" if row.cycles else NOTHING


def _use(row: Layer) -> str:
    return f"{100 * row.utilisation:.0f} %" if row.macs and row.cycles else NOTHING


COLUMNS = (
    Column("#", lambda row: NOTHING if row.index is None else str(row.index)),
    Column("type", lambda row: row.kind, is_number=False),
    Column("on", lambda row: row.device.value, is_number=False),
    Column("MACs", lambda row: f"{row.macs:,}", from_width=110),
    Column("cycles", lambda row: f"{row.cycles:,}" if row.cycles else NOTHING),
    Column("share", _share),
    Column("MAC use", _use, from_width=90),
    Column("bound", lambda row: row.bound.value if row.bound else NOTHING, is_number=False),
    Column("SRAM", lambda row: size(row.sram_bytes) if row.sram_bytes else NOTHING, from_width=100),
    Column("shapes", lambda row: row.shape or NOTHING, is_number=False, from_width=WIDE),
)
"""What stands before the name of the output, which takes the rest of the line."""


def layers_text(rows: Sequence[Layer], *, width: int) -> str:
    """Return the table of layers, and what would make some of them cheaper."""
    columns = [column for column in COLUMNS if column.from_width <= width]
    text = named_table(
        [tuple(column.text(row) for column in columns) for row in rows],
        [f"{row.subgraph}: {row.name}" if row.subgraph else row.name for row in rows],
        width=width,
        headings=(*(column.heading for column in columns), "output"),
        right=[index for index, column in enumerate(columns) if column.is_number],
    )
    told = list(_advice(rows, width=width))
    return "\n".join([HEADING, text, *(["", "What would make it cheaper", *told] if told else [])])


def _advice(rows: Sequence[Layer], *, width: int) -> Iterator[str]:
    """Return what advice there is, layers with the same together."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.advice:
            place = row.kind if row.index is None else f"{row.index} {row.kind}"
            groups.setdefault(row.advice, []).append(place)
    for said, places in groups.items():
        text = f"{', '.join(places)}: {said}"
        yield paragraph(text, width=min(width, MAXIMUM_WIDTH), indent=GAP)


def cliff_text(cliff: Cliff, *, width: int) -> str:
    """Return what a layer's neighbours cost, as a table, and what follows."""
    own = cliff.own
    rows = [
        (
            f"{row.channels}{'  <' if row.channels == cliff.channels else ''}".ljust(6),
            f"{row.cycles:,}",
            f"{row.cycles / own.cycles:.2f}" if own.cycles else NOTHING,
            size(row.sram_bytes),
            size(row.flash_bytes),
        )
        for row in cliff.neighbours
    ]
    title = f"Layer {cliff.index} {cliff.kind} alone, {cliff.axis} around its {cliff.channels}"
    headings = (cliff.axis, "cycles", "ratio", "SRAM", "constants")
    text = table(rows, width=width, headings=headings, right=(1, 2, 3))
    told = [paragraph(cliff.advice, width=width, indent=GAP)] if cliff.advice else []
    return "\n".join([title, text, *told])
