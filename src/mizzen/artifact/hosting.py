"""Which subgraphs of a network have steps of their own, and which TFLite Micro executes whole.

The kernels of TFLite Micro execute IF and WHILE with all that is in them. Where something of it is
on the NPU, or works on variables that others work on too, the operator is a step, and so is what
the subgraphs hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import groupby

from mizzen.artifact.resources import Variables, shared_variables
from mizzen.artifact.steps import is_npu
from mizzen.frontends.tflite import Model, Operator, Subgraph
from mizzen.frontends.tflite.subgraphs import CALLERS, called, entries, reached_from
from mizzen.frontends.tflite.variables import VARIABLE_KINDS

OF_THE_KERNELS = frozenset(("IF", "WHILE"))
"""Operators that execute subgraphs and that TFLite Micro has kernels for."""

Place = tuple[int, int]
"""A subgraph, and an operator in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Hosted:
    """What has steps of its own.

    subgraphs  by index, in ascending order
    callers    operators that execute subgraphs, and are steps
    variables  as each subgraph sees them, where they belong to the artifact
    """

    subgraphs: tuple[int, ...]
    callers: frozenset[Place]
    variables: Mapping[int, Variables]


def hosted(model: Model) -> Hosted:
    """Return the subgraphs and callers of a network that have steps of their own."""
    on_npu = {
        subgraph.index for subgraph in model.subgraphs if any(map(is_npu, subgraph.operators))
    }
    subgraphs, callers = _spread(model, on_npu, on_npu)
    users = sum(_users(model, model.subgraphs[index], callers) for index in subgraphs)
    if users < 2:
        return Hosted(subgraphs, callers, {})
    marked = {subgraph.index for subgraph in model.subgraphs if _on_variables(subgraph.operators)}
    wider, more = _spread(model, on_npu, on_npu | marked)
    variables = shared_variables(model, wider)
    if variables is None:
        return Hosted(subgraphs, callers, {})
    return Hosted(wider, more, variables)


def _spread(
    model: Model, started: Set[int], marked: Set[int]
) -> tuple[tuple[int, ...], frozenset[Place]]:
    """Return the subgraphs and callers that need steps.

    started  subgraphs that have steps besides those that are executed from outside
    marked   subgraphs that the kernels cannot execute
    """
    waiting = sorted({*entries(model), *started})
    reached = set(waiting)
    callers = set[Place]()
    while waiting:
        subgraph = model.subgraphs[waiting.pop()]
        for operator in subgraph.operators:
            if is_caller(operator) and (
                operator.kind not in OF_THE_KERNELS or _below(model, operator) & marked
            ):
                callers.add((subgraph.index, operator.index))
                new = set(called(operator)) - reached
                reached |= new
                waiting += new
    return tuple(sorted(reached)), frozenset(callers)


def is_caller(operator: Operator) -> bool:
    """Whether an operator executes subgraphs at every inference."""
    return operator.kind in CALLERS and not operator.custom


def _below(model: Model, operator: Operator) -> set[int]:
    return {index for callee in called(operator) for index in reached_from(model, callee)}


def _users(model: Model, subgraph: Subgraph, callers: Set[Place]) -> int:
    """Count the runs of CPU operators that work on variables, or execute what does."""

    def apart(operator: Operator) -> bool:
        return is_npu(operator) or (subgraph.index, operator.index) in callers

    runs = [
        list(operators) for outside, operators in groupby(subgraph.operators, apart) if not outside
    ]
    return sum(_on_variables(run) or any(_calls_them(model, run)) for run in runs)


def _calls_them(model: Model, operators: list[Operator]) -> Iterator[bool]:
    for operator in filter(is_caller, operators):
        for index in _below(model, operator):
            yield _on_variables(model.subgraphs[index].operators)


def _on_variables(operators: list[Operator] | tuple[Operator, ...]) -> bool:
    return any(operator.kind in VARIABLE_KINDS for operator in operators)
