"""What executing a region's code showed."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.compiler.proof.difference import Difference
from mizzen.diagnostics import MizzenError
from mizzen.report.proof import Proof


@dataclass(frozen=True, slots=True)
class RegionFindings:
    """What executing a region's code showed: a difference, or why it cannot be executed."""

    proof: Proof
    wrong: Difference | MizzenError | None = None
