"""How comparisons read in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.cli.layout import count, fields, table
from mizzen.report.comparison import Outcome

if TYPE_CHECKING:
    from mizzen.report.comparison import Comparison, LayerComparison

NAME_WIDTH = 24
"""Of an output in a table of a narrow terminal; the ends of names tell most."""


def comparison_text(found: Comparison, *, width: int) -> str:
    """Say what was compared, how many elements differ, and what was found of each layer."""
    head = fields(_head(found), width=width)
    rows = [_row(row) for row in found.layers]
    headings = ("#", "type", "on", "elements", "differ", "steps", "found", "output")
    text = table(rows, width=width, headings=headings, right=(0, 3, 4, 5))
    return f"{found.model} beside {found.reference}\n{head}\n\nLayers\n{text}"


def _head(found: Comparison) -> list[tuple[str, str]]:
    made = "the user's own" if found.seed is None else f"made with seed {found.seed}"
    in_row = f" of {found.run} inferences in a row" if found.run > 1 else ""
    inputs = f"{count(found.inputs, 'stream' if found.run > 1 else 'input')}{in_row}, {made}"
    counts = [(found.count(row), row.value) for row in Outcome]
    layers = ", ".join(f"{number} {word}" for number, word in counts if number)
    return [
        ("inputs", inputs),
        ("outputs", f"{found.differing:,} of {found.elements:,} elements differ"),
        ("layers", layers),
    ]


def _row(row: LayerComparison) -> tuple[str, ...]:
    told = row.outcome.value if row.into is None else f"{row.outcome.value} with {row.into}"
    name = row.name if len(row.name) <= NAME_WIDTH else f"...{row.name[3 - NAME_WIDTH :]}"
    if not row.elements:
        return str(row.index), row.kind, row.device.value, "-", "-", "-", told, name
    numbers = f"{row.elements:,}", f"{row.differing:,}", f"{row.steps:g}"
    return str(row.index), row.kind, row.device.value, *numbers, told, name
