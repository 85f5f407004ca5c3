"""The stages of least period, whether layers have elements of their own or share them."""

from __future__ import annotations

from mizzen.mesh.mapping.choosing import Options, choice_of
from mizzen.mesh.mapping.options import Solver
from mizzen.mesh.mapping.sharing import SharedStages
from mizzen.mesh.mapping.stages import (
    Problem,
    Stages,
    apart,
    bisect,
    period_range,
    stage_of,
    usable_choices,
)


def plan_stages(problem: Problem) -> Stages | None:
    """Return the stages of least period; None where no period lets the network fit."""
    if not problem.may_fit:
        return None
    if problem.shares:
        table = SharedStages(problem)
        return bisect(table.stages, table.least(), table.most())
    return bisect(lambda period: apart(problem, period), *period_range(problem))


def settled(problem: Problem, stages: Stages, solver: Solver, seed: int) -> tuple[Stages, float]:
    """Return stages of least traffic within a period, as a solver takes them, and its gap.

    Layers that share elements stay as they are.
    """
    if problem.shares:
        return stages, 0.0
    options: Options = []
    for choices in problem.choices:
        usable = usable_choices(choices, problem.kinds[0], 0, stages.period_s)
        options.append((choices.tiles[usable], choices.traffic[usable], usable))
    choice = choice_of(options, problem.elements[0], solver, seed)
    picked = zip(problem.choices, choice.picks, strict=True)
    chosen = [stage_of(choices, layer, pick) for layer, (choices, pick) in enumerate(picked)]
    return Stages(tuple(chosen), stages.period_s), choice.gap
