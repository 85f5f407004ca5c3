"""One split for each layer, within the elements that there are, for the least traffic."""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul

import numpy as np

from mizzen.mesh.mapping.options import Solver
from mizzen.mesh.mapping.splits import Ints

Options = list[tuple[Ints, Ints, Ints]]
"""Of each layer: the elements of each option, its traffic, and its index."""

CP_SECONDS = 10.0
"""Deterministic time that CP-SAT has for a choice."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The index of one option of each layer, and how far from the least traffic it may be."""

    picks: tuple[int, ...]
    gap: float


def choice_of(options: Options, elements: int, solver: Solver, seed: int) -> Choice:
    """Return one option of each layer so that their elements suffice and traffic is least.

    CP-SAT may end with a gap, or with nothing; then dynamic programming, which is exact, decides.
    """
    if solver is Solver.CP_SAT:
        choice = _by_cp_sat(options, elements, seed)
        if choice is not None:
            return choice
    return Choice(least_traffic(options, elements), 0.0)


def _by_cp_sat(options: Options, elements: int, seed: int) -> Choice | None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    taken = [
        [model.new_bool_var(f"{layer} {at}") for at in range(len(index))]
        for layer, (_, _, index) in enumerate(options)
    ]
    for variables in taken:
        model.add_exactly_one(variables)
    flat = [variable for each in taken for variable in each]
    needed = [count for counts, _, _ in options for count in counts.tolist()]
    traffic = [size for _, sizes, _ in options for size in sizes.tolist()]
    model.add(sum(map(mul, flat, needed)) <= elements)
    model.minimize(sum(map(mul, flat, traffic)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = CP_SECONDS
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    picks = tuple(
        int(index[next(at for at, variable in enumerate(each) if solver.value(variable))])
        for (_, _, index), each in zip(options, taken, strict=True)
    )
    gap = (solver.objective_value - solver.best_objective_bound) / max(1, solver.objective_value)
    return Choice(picks, gap)


def least_traffic(options: Options, elements: int) -> tuple[int, ...]:
    """Return one option of each layer so that their elements suffice and traffic is least.

    An option has elements, traffic, and the index that is returned. Dynamic programming over the
    layers and the elements used: exact.
    """
    cost = np.full(elements + 1, np.inf)
    cost[0] = 0
    taken: list[Ints] = []
    for needed, traffic, _ in options:
        reached = np.full((len(needed), elements + 1), np.inf)
        for option, (count, more) in enumerate(zip(needed.tolist(), traffic.tolist(), strict=True)):
            if count <= elements:
                reached[option, count:] = cost[: elements + 1 - count] + more
        taken.append(np.argmin(reached, axis=0))
        cost = reached.min(axis=0)
    return _traced(options, taken, int(np.argmin(cost)))


def _traced(options: Options, taken: list[Ints], used: int) -> tuple[int, ...]:
    picks: list[int] = []
    for (needed, _, index), best in zip(reversed(options), reversed(taken), strict=True):
        option = int(best[used])
        picks.append(int(index[option]))
        used -= int(needed[option])
    return tuple(reversed(picks))
