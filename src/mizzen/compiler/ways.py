"""Ways to make the code of a unit, tried in their order against one prover.

A unit is what becomes one NPU operator: a region of a network, or all of it. A family of NPUs says
which ways there are, the best first; each is data. What a way makes is taken if the prover finds
nothing wrong with it. What was tried before, and why it was not taken, stays with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mizzen.compiler.codegen import RegionCode, RegionRefusal, Way
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.diagnostics import ProgressCallback
from mizzen.partition import Extracted
from mizzen.report.code import Tried
from mizzen.report.proof import Proof

Unit = TypeVar("Unit")

Prove = Callable[[RegionCode], RegionFindings]
"""Executes code beside what says what must come."""


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Code that was taken, what was proved of it, and what was tried before."""

    code: RegionCode
    proof: Proof
    tried: tuple[Tried, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """Why no way gives right code.

    refusal   of the first way, where a way makes no code
    findings  of the first code that is wrong; None where no way makes code
    code      that code
    """

    tried: tuple[Tried, ...]
    refusal: RegionRefusal | None
    findings: RegionFindings | None
    code: RegionCode | None


def first_right(
    unit: Callable[[], Extracted],
    ways: Sequence[Way],
    prove: Prove,
    on_progress: ProgressCallback | None,
) -> Made | Failed:
    """Return the first way's code in which nothing is wrong.

    unit  gives the unit, which a way may change, anew for each
    """
    tried: list[Tried] = []
    refusal: RegionRefusal | None = None
    wrong: tuple[RegionCode, RegionFindings] | None = None
    for way in ways:
        code = way.make(unit(), on_progress)
        if isinstance(code, RegionRefusal):
            refusal = refusal or code
            tried.append(Tried(way.name, code.general.message))
            continue
        findings = prove(code)
        if findings.wrong is None:
            return Made(code, findings.proof, tuple(tried))
        wrong = wrong or (code, findings)
        tried.append(Tried(way.name, str(findings.wrong)))
    code, findings = wrong or (None, None)
    return Failed(tuple(tried), refusal, findings, code)
