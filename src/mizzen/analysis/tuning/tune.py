"""Search for better ways to compile a network, prove what is found, choose one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack

from mizzen.analysis.tuning.measuring import Bench, Told
from mizzen.analysis.tuning.search import AS_ASKED, most, search
from mizzen.analysis.tuning.selection import best, told
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import PYTORCH, TFLITE, front_end_for, source_of
from mizzen.compiler.options import CompileKeywords, options_of
from mizzen.diagnostics import fail
from mizzen.report.tuning import Candidate, Choice, Objective, TuningReport

MOST_PROOFS = 8
"""Candidates of the front that are proved and told of; what is chosen always is."""

PROVED_AT_ONCE = 2
"""Of these, however many compilations may run at once: what comes must not depend on that."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found, and the artifact of what it chose; None where nothing fits."""

    report: TuningReport
    artifact: Artifact | None

    def __str__(self) -> str:
        """Return what the command line prints of it."""
        return str(self.report)


def tune(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    *,
    objective: str = Objective.CYCLES.value,
    sram_budget: int | None = None,
    jobs: int | None = None,
    budget_seconds: float | None = None,
    on_progress: Told | None = None,
    **options: Unpack[CompileKeywords],
) -> Tuned:
    """Search the options of the code generator and exact rewrites for better artifacts.

    objective       ``cycles``, ``sram`` or ``flash``: what to want the least of
    sram_budget     bytes of SRAM that the artifact may need; without one, fewer cycles must not
                    take more of any memory, and less memory at most 1 % more cycles
    jobs            compilations at once; the processors that this process may use by default. Of
                    PyTorch programs there is one at once
    budget_seconds  most time of all this; nothing begins that would not be done then, but the
                    compilation that is asked for and the proof of what is chosen
    on_progress     called with the compilations done, and how many there are at most

    The other keywords are those of `mizzen.compile`, and where the search starts. What comes does
    not depend on `jobs`. Raises E264 for a family whose compiler has nothing to search, E265 for an
    objective that there is not, and as `mizzen.compile` if the network does not compile as it is.
    """
    wanted = _objective(objective)
    start = time.monotonic()
    tuning = begin(
        model,
        accelerator,
        jobs=jobs,
        budget_seconds=budget_seconds,
        on_progress=on_progress,
        **options,
    )
    chosen = tuning.best(wanted, sram_budget)
    front = tuning.front()
    bench = tuning.bench
    report = TuningReport(
        model=bench.source.name,
        configuration=tuning.configuration,
        objective=wanted,
        sram_budget_bytes=sram_budget,
        base=tuning.base,
        front=tuple(front),
        chosen=chosen,
        tried=bench.done,
        distinct=bench.distinct,
        refused=tuple(bench.refused.values()),
        seconds=time.monotonic() - start,
    )
    return Tuned(report, None if chosen is None else tuning.artifacts[chosen.choice])


def begin(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    *,
    jobs: int | None = None,
    budget_seconds: float | None = None,
    on_progress: Told | None = None,
    **options: Unpack[CompileKeywords],
) -> Search:
    """Compile a network in many ways, and prove the one that is asked for.

    Keywords and errors as `tune`.
    """
    ends = None if budget_seconds is None else time.monotonic() + budget_seconds
    asked = options_of(accelerator, options, CompileKeywords, tune)
    target = resolve_target(asked)
    source = source_of(model)
    front_end = front_end_for(source, target)
    network = read_network(source.data, source.name) if front_end is TFLITE else None
    levers = target.backend.levers(network, target.configuration)
    if levers is None:
        raise fail(
            "E264",
            f"the compiler of {target.accelerator} must have options to search, and has none",
            help="compile with `mizzen compile`",
        )
    at_once = 1 if front_end is PYTORCH else jobs or _processors()  # it reads one file at a time
    bench = Bench(source, asked, at_once, ends, most(levers), on_progress)
    begun = Search(bench, target.configuration.as_dict(), {AS_ASKED: bench.start()})
    search(bench, levers)
    return begun


@dataclass(slots=True)
class Search:
    """What was tried: what is asked of it is proved first, and again where that shows less.

    artifacts  of what was proved, by choice
    """

    bench: Bench
    configuration: dict[str, Any]
    artifacts: dict[Choice, Artifact]

    @property
    def base(self) -> Candidate:
        """The network compiled as it was asked for."""
        return self.bench.candidates[AS_ASKED]

    @property
    def candidates(self) -> list[Candidate]:
        """Everything that compiled, and was not found to be wrong."""
        return list(self.bench.candidates.values())

    def best(self, objective: Objective, sram_budget_bytes: int | None = None) -> Candidate | None:
        """Return the best for an objective, proved; None if none fits the budget."""
        while True:
            chosen = best(self.candidates, self.base, objective, sram_budget_bytes)
            if chosen is None or self._are_proved([chosen]):
                return chosen

    def front(self) -> list[Candidate]:
        """Return the candidates that are worth to be told of, proved, fewest cycles first.

        Those that there was no time to prove are left out.
        """
        while True:
            front = told(self.candidates)[:MOST_PROOFS]
            missing = [each for each in front if each.choice not in self.artifacts]
            if not missing or self.bench.too_late_to_prove:
                return [each for each in front if each.choice in self.artifacts]
            self._are_proved(missing[:PROVED_AT_ONCE])

    def _are_proved(self, candidates: list[Candidate]) -> bool:
        """Prove those that are not; False if any were, since that may change them."""
        missing = [each.choice for each in candidates if each.choice not in self.artifacts]
        for candidate, artifact in self.bench.prove(missing):
            self.artifacts[candidate.choice] = artifact
        return not missing


def _objective(word: str) -> Objective:
    try:
        return Objective(word)
    except ValueError:
        names = ", ".join(objective.value for objective in Objective)
        said = f"what to want the least of must be one of {names}, not {word!r}"
        raise fail("E265", said) from None


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
