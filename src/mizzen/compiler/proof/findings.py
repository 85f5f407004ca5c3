"""What executing a region's code showed."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.compiler.proof.difference import Difference
from mizzen.compiler.proof.disagreement import Disagreement
from mizzen.diagnostics import MizzenError
from mizzen.report.proof import Proof

Wrong = Difference | Disagreement | MizzenError
"""A result that differs, a fact that does, or why code cannot be executed."""


@dataclass(frozen=True, slots=True)
class RegionFindings:
    """What executing a region's code showed.

    wrong  None if nothing is
    group  of the operation that is wrong, where that is known
    """

    proof: Proof
    wrong: Wrong | None = None
    group: int | None = None
