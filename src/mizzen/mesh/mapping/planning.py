"""The stages of least period, whether layers have elements of their own or share them."""

from __future__ import annotations

from mizzen.mesh.mapping.sharing import SharedStages
from mizzen.mesh.mapping.stages import Problem, Stages, apart, bisect, period_range


def plan_stages(problem: Problem) -> Stages | None:
    """Return the stages of least period; None where no period lets the network fit."""
    if not problem.may_fit:
        return None
    if problem.shares:
        table = SharedStages(problem)
        return bisect(table.stages, table.least(), table.most())
    return bisect(lambda period: apart(problem, period), *period_range(problem))
