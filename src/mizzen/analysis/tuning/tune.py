"""Search for better ways to compile a network, prove what is found, choose one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from os import PathLike
from typing import Unpack

from mizzen.analysis.tuning.measuring import Bench, Told
from mizzen.analysis.tuning.search import AS_ASKED, search
from mizzen.analysis.tuning.selection import best, told
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import TFLITE, file_of, front_end_of, require_known
from mizzen.compiler.options import CompileKeywords, CompileOptions
from mizzen.diagnostics import fail
from mizzen.report.tuning import Candidate, Objective, TuningReport

MOST_PROOFS = 8
"""Candidates of the front that are proved and told of; what is chosen always is."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found, and the artifact of what it chose; None where nothing fits."""

    report: TuningReport
    artifact: Artifact | None


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
    jobs            compilations at once; the processors that this process may use by default
    budget_seconds  no compilation begins after this time, but of what is to be proved
    on_progress     called with the compilations done, and how many there are at most

    The other keywords are those of `mizzen.compile`, and where the search starts. What comes does
    not depend on `jobs`. Raises E264 for a family whose compiler has nothing to search, E265 for an
    objective that there is not, and as `mizzen.compile` if the network does not compile as it is.
    """
    wanted = _objective(objective)
    chosen = CompileOptions(accelerator, **options)
    target = resolve_target(chosen)
    require_known(target.configuration.ignore_ops)
    data, name = file_of(model)
    network = read_network(data, name) if front_end_of(data, name) is TFLITE else None
    levers = target.backend.levers(network, target.configuration)
    if levers is None:
        raise fail(
            "E264",
            f"the compiler of {target.accelerator} must have options to search, and has none",
            help="compile with `mizzen compile`",
        )
    start = time.monotonic()
    ends = None if budget_seconds is None else start + budget_seconds
    bench = Bench(data, name, chosen, jobs or _processors(), ends, on_progress=on_progress)
    search(bench, levers)
    artifacts = _proved(bench, wanted, sram_budget)
    rows = list(artifacts)
    base = bench.candidates[AS_ASKED]
    found = best([row for row in rows if _may_be_taken(row)], base, wanted, sram_budget)
    report = TuningReport(
        model=name,
        configuration=target.configuration.as_dict(),
        objective=wanted,
        sram_budget_bytes=sram_budget,
        base=base,
        front=tuple(told(rows)),
        chosen=found,
        tried=bench.done,
        distinct=bench.distinct,
        refused=tuple(bench.refused.values()),
        seconds=time.monotonic() - start,
    )
    return Tuned(report, None if found is None else artifacts[found])


def _proved(
    bench: Bench, objective: Objective, sram_budget_bytes: int | None
) -> dict[Candidate, Artifact]:
    """Prove the candidates to tell of and the best; once more where one of them is not exact."""
    proved: dict[Candidate, Artifact] = {}
    while True:
        rows = list(bench.candidates.values())
        base = bench.candidates[AS_ASKED]
        wanted = [base, best(rows, base, objective, sram_budget_bytes), *told(rows)[:MOST_PROOFS]]
        known = {row.choice for row in proved}
        missing = {row.choice: row for row in wanted if row is not None and row.choice not in known}
        if not missing:
            return proved
        proved.update(bench.prove(list(missing.values())))


def _may_be_taken(row: Candidate) -> bool:
    """Whether nothing speaks against it: no proof was asked for, or there is no difference."""
    return not row.proof.differing


def _objective(word: str) -> Objective:
    try:
        return Objective(word)
    except ValueError:
        names = ", ".join(row.value for row in Objective)
        raise fail(
            "E265", f"what to want the least of must be one of {names}, not {word!r}"
        ) from None


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
