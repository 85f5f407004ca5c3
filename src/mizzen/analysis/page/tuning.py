"""What a search found, as a page."""

from __future__ import annotations

from mizzen.report.page import Cell, Figure, Figures, Page, Section, Table
from mizzen.report.tuning import Candidate, TuningReport
from mizzen.report.words import per_second, share, size


def tuning_page(tuning: TuningReport) -> Page:
    """Return the page: what was chosen, and what nothing is better than in everything."""
    figures = [Figure("Tried", f"{tuning.tried:,}", f"{tuning.distinct:,} different programs")]
    if tuning.chosen is not None:
        chosen, base = tuning.chosen, tuning.base
        cycles = f"{share(chosen.cycles, base.cycles)} of what the options as they are take"
        figures.append(Figure("Cycles", f"{chosen.cycles:,}", cycles))
        rate = chosen.inferences_per_second
        if rate:
            figures.append(Figure("Inferences per second", per_second(rate), "estimated"))
        figures.append(Figure("SRAM", size(chosen.sram_bytes), f"{size(base.sram_bytes)} before"))
        flash = f"{size(base.constants_bytes)} before"
        figures.append(Figure("Flash", size(chosen.constants_bytes), flash))
    front = Table(
        "Candidates that none is better than in everything, and the options as they are",
        ("options", "cycles", "SRAM", "other memory", "flash", "chosen"),
        tuple(_row(candidate, tuning) for candidate in (tuning.base, *tuning.front)),
        wide=frozenset({0}),
    )
    model = f"{tuning.model} on {tuning.configuration.get('accelerator', '')}"
    return Page(
        model,
        "A search of compilations.",
        (Section("Pareto front", (front,)),),
        (Figures(tuple(figures)),),
    )


def _row(candidate: Candidate, tuning: TuningReport) -> tuple[Cell, ...]:
    chosen = "yes" if candidate == tuning.chosen else None
    return (
        str(candidate.choice), candidate.cycles, candidate.sram_bytes, candidate.other_bytes,
        candidate.constants_bytes, chosen,
    )  # fmt: skip
