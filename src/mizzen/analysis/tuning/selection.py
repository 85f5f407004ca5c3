"""Which candidates to tell of, and which to take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mizzen.analysis.tuning.search import SLOWER
from mizzen.report.tuning import Candidate, Objective, front_of

WORTH = 0.005
"""A candidate is told of if it is better than every other by this part of a measure at least."""


def told(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the front without those that are hardly better than others, fewest cycles first."""
    front: list[Candidate] = []
    for candidate in front_of(candidates):
        if not any(_is_hardly_better(candidate, other) for other in front):
            front.append(candidate)
    return front


def _is_hardly_better(candidate: Candidate, other: Candidate) -> bool:
    pairs = zip(candidate.measures, other.measures, strict=True)
    return all(theirs <= ours * (1 + WORTH) for ours, theirs in pairs)


def best(
    candidates: Iterable[Candidate],
    base: Candidate,
    objective: Objective,
    sram_budget_bytes: int | None,
) -> Candidate | None:
    """Return the best for an objective; None if none fits the budget.

    A budget alone bounds what there may be of SRAM. Without one, fewer cycles must not take more of
    any memory than what was asked for does; less memory must not take over 1 % more cycles.
    """
    fitting = [candidate for candidate in candidates if candidate.on_cpu <= base.on_cpu]
    if sram_budget_bytes is not None:
        fitting = [
            candidate for candidate in fitting if candidate.sram_total_bytes <= sram_budget_bytes
        ]
    elif objective is Objective.CYCLES:
        fitting = [candidate for candidate in fitting if _needs_no_more_memory(candidate, base)]
    else:
        fitting = [candidate for candidate in fitting if candidate.cycles <= SLOWER * base.cycles]
    return min(
        fitting, key=lambda candidate: (candidate.of(objective), *candidate.measures), default=None
    )


def _needs_no_more_memory(candidate: Candidate, base: Candidate) -> bool:
    pairs = zip(candidate.memories, base.memories, strict=True)
    return all(ours <= theirs for ours, theirs in pairs)
