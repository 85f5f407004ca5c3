"""What a search found, as a page."""

from __future__ import annotations

from mizzen.report.page import Cell, Figure, Figures, Page, Section, Table
from mizzen.report.tuning import Candidate, TuningReport
from mizzen.report.words import share, size


def tuning_page(found: TuningReport) -> Page:
    """Return the page: what was chosen, and what nothing is better than in everything."""
    figures = [Figure("Tried", f"{found.tried:,}", f"{found.distinct:,} different programs")]
    if found.chosen is not None:
        chosen, base = found.chosen, found.base
        cycles = f"{share(chosen.cycles, base.cycles)} of what the options as they are take"
        figures.append(Figure("Cycles", f"{chosen.cycles:,}", cycles))
        figures.append(Figure("SRAM", size(chosen.sram_bytes), f"{size(base.sram_bytes)} before"))
    front = Table(
        "Candidates that none is better than in everything, and the options as they are",
        ("options", "cycles", "SRAM", "other memory", "constants", "chosen"),
        tuple(_row(row, found) for row in (found.base, *found.front)),
        wide=frozenset({0}),
    )
    model = f"{found.model} on {found.configuration.get('accelerator', '')}"
    return Page(
        model,
        "A search of compilations.",
        (Section("Front", (front,)),),
        (Figures(tuple(figures)),),
    )


def _row(row: Candidate, found: TuningReport) -> tuple[Cell, ...]:
    chosen = "yes" if row == found.chosen else None
    return (
        str(row.choice), row.cycles, row.sram_bytes, row.other_bytes, row.constants_bytes, chosen,
    )  # fmt: skip
