"""How the table of layers reads: shares, what bounds each, memory, names as wide as there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.cli.console import MAXIMUM_WIDTH
from mizzen.cli.layout import GAP, named_table, paragraph, size, table

if TYPE_CHECKING:
    from mizzen.report.advice import Advice
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


def _share(layer: Layer) -> str:
    return f"{100 * layer.share:.1f} %" if layer.cycles else NOTHING


def _use(layer: Layer) -> str:
    return f"{100 * layer.utilisation:.0f} %" if layer.macs and layer.cycles else NOTHING


COLUMNS = (
    Column("#", lambda layer: NOTHING if layer.index is None else str(layer.index)),
    Column("type", lambda layer: layer.kind, is_number=False),
    Column("on", lambda layer: layer.device.value, is_number=False),
    Column("MACs", lambda layer: f"{layer.macs:,}", from_width=110),
    Column("cycles", lambda layer: f"{layer.cycles:,}" if layer.cycles else NOTHING),
    Column("share", _share),
    Column("MAC use", _use, from_width=90),
    Column("bound", lambda layer: layer.bound.value if layer.bound else NOTHING, is_number=False),
    Column(
        "SRAM",
        lambda layer: size(layer.sram_bytes) if layer.sram_bytes else NOTHING,
        from_width=100,
    ),
    Column("shapes", lambda layer: layer.shape or NOTHING, is_number=False, from_width=WIDE),
)
"""What stands before the name of the output, which takes the rest of the line."""


def layers_text(
    layers: Sequence[Layer], advice: Sequence[Advice] = (), meaning: str = "", *, width: int
) -> str:
    """Return the table of layers, what its cycles mean, and what would make it cheaper."""
    columns = [column for column in COLUMNS if column.from_width <= width]
    text = named_table(
        [tuple(column.text(layer) for column in columns) for layer in layers],
        [f"{layer.subgraph}: {layer.name}" if layer.subgraph else layer.name for layer in layers],
        width=width,
        headings=(*(column.heading for column in columns), "output"),
        right=[index for index, column in enumerate(columns) if column.is_number],
    )
    narrow = min(width, MAXIMUM_WIDTH)
    noted = [paragraph(meaning, width=narrow, indent=GAP)] if meaning else []
    told = [paragraph(advice_text(each), width=narrow, indent=GAP) for each in advice]
    heading = ["", "What would make it cheaper, as tried"] if told else []
    return "\n".join([HEADING, text, *noted, *heading, *told])


def advice_text(advice: Advice) -> str:
    """Say what to change, and what it brought."""
    of = "" if advice.layer is None else f"{advice.layer} {advice.kind}, "
    return f"{of}{advice.text}"


def cliff_text(cliff: Cliff, *, width: int) -> str:
    """Return the costs of a layer's neighbours, as a table, and what follows."""
    own = cliff.own
    lines = [
        (
            f"{neighbour.channels}{'  <' if neighbour.channels == cliff.channels else ''}".ljust(6),
            f"{neighbour.cycles:,}",
            f"{neighbour.cycles / own.cycles:.2f}" if own.cycles else NOTHING,
            size(neighbour.sram_bytes),
            size(neighbour.flash_bytes),
        )
        for neighbour in cliff.neighbours
    ]
    title = f"Layer {cliff.index} {cliff.kind} alone, {cliff.axis} around its {cliff.channels}"
    headings = (cliff.axis, "cycles", "ratio", "SRAM", "constants")
    text = table(lines, width=width, headings=headings, right=(1, 2, 3))
    told = [paragraph(cliff.advice, width=width, indent=GAP)] if cliff.advice else []
    return "\n".join([title, text, *told])
