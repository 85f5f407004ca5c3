"""Resource variables of a network as state that goes from step to step.

Kernels of the CPU keep variables inside one network of theirs. Where NPU operators lie between
those that read and assign a variable, they are several networks; each variable is then an array
that belongs to the artifact, and CALL_ONCE fills it at the first inference.

Ref: TFLite Micro, micro_resource_variable.cc (what a variable holds before it is assigned),
kernels/call_once.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.artifact.interface import Array, Carried, Values
from mizzen.frontends.tflite import Model, Operator, Subgraph, Tensor
from mizzen.frontends.tflite.variables import (
    VARIABLE_KINDS,
    Name,
    assigned_once,
    handles,
    held_unassigned,
    is_in_branches,
)


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """The variables of a network.

    places   handles, as tensors, to the index among the values that the variable has
    filled   operators CALL_ONCE to the index of whether it has filled variables already
    first    operators CALL_ONCE to what they fill
    carried  what goes on from one inference to the next
    """

    places: Mapping[int, int]
    filled: Mapping[int, int]
    first: Mapping[int, Mapping[int, Array]]
    carried: tuple[Carried, ...]


def variables_of(model: Model, in_parts: Sequence[Sequence[Operator]]) -> Variables | None:
    """Return the variables, if operators of several parts are on them; None if steps keep them.

    in_parts  runs of operators that are left to the CPU
    """
    users = [part for part in in_parts if any(operator.kind in VARIABLE_KINDS for operator in part)]
    if len(users) < 2 or is_in_branches(model):
        return None
    seen = shared_variables(model, (0,))
    return None if seen is None else seen[0]


def shared_variables(model: Model, subgraphs: Sequence[int]) -> dict[int, Variables] | None:
    """Return the variables, as each of some subgraphs sees them; they have the same places in all.

    None where a CALL_ONCE does anything but assign constants.
    """
    seen = [model.subgraphs[index] for index in subgraphs]
    contents: dict[Name, Tensor] = {}
    for part in seen:
        contents = _contents(part) | contents
    start = max(len(each.tensors) for each in seen)
    places = {name: start + place for place, name in enumerate(contents)}
    calls = {
        int(operator.options["init_subgraph_index"]): operator
        for subgraph in seen
        for operator in subgraph.operators
        if operator.kind == "CALL_ONCE"
    }
    flags = {index: start + len(places) + place for place, index in enumerate(calls)}
    first: dict[int, dict[int, Array]] = {}
    for index, call in calls.items():
        assigned = assigned_once(model, call)
        if assigned is None:
            return None
        # Others than those that have a place, nothing reads.
        first[index] = {places[name]: held for name, held in assigned.items() if name in places}
    state = [Carried(places[name], places[name], held_unassigned(tensor))
             for name, tensor in contents.items()]  # fmt: skip
    state += [Carried(index, index, np.zeros((), np.bool_)) for index in flags.values()]
    return {each.index: _seen(each, places, flags, first, tuple(state)) for each in seen}


def _seen(
    subgraph: Subgraph,
    places: Mapping[Name, int],
    flags: Mapping[int, int],
    first: Mapping[int, Mapping[int, Array]],
    carried: tuple[Carried, ...],
) -> Variables:
    """Return the variables as a subgraph's operators and tensors name them."""
    calls = {
        operator.index: int(operator.options["init_subgraph_index"])
        for operator in subgraph.operators
        if operator.kind == "CALL_ONCE"
    }
    return Variables(
        places={tensor: places[name] for tensor, name in handles(subgraph) if name in places},
        filled={operator: flags[index] for operator, index in calls.items()},
        first={operator: first[index] for operator, index in calls.items()},
        carried=carried,
    )


def _contents(subgraph: Subgraph) -> dict[Name, Tensor]:
    """Return a tensor of what each variable holds: what is first assigned, else read."""
    names = dict(handles(subgraph))
    held: dict[Name, Tensor] = {}
    for kind in ("ASSIGN_VARIABLE", "READ_VARIABLE"):
        for operator in subgraph.operators:
            if operator.kind == kind and operator.inputs[0] in names:
                index = (*operator.inputs, *operator.outputs)[1]
                held.setdefault(names[operator.inputs[0]], subgraph.tensors[index])
    return held


class VariableStep:
    """Consecutive operators on variables; what they take and give are tensors."""

    on_npu = False

    def __init__(self, model: Model, operators: Sequence[Operator], variables: Variables) -> None:
        self.operators = tuple(operators)
        self.variables = variables
        self.origins = [model.origin(operator) for operator in operators]
        self.outputs = tuple(
            operator.outputs[0] for operator in operators if operator.kind == "READ_VARIABLE"
        )
        taken = (operator.inputs[1] for operator in operators if operator.kind == "ASSIGN_VARIABLE")
        self.inputs = tuple(dict.fromkeys(index for index in taken if index not in self.outputs))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operators' types."""
        return tuple(operator.kind for operator in self.operators)

    def run(self, values: Values, batch: int) -> None:
        """Read, assign and fill the variables of a batch."""
        places = self.variables.places
        for operator in self.operators:
            match operator.kind:
                case "READ_VARIABLE":
                    values[operator.outputs[0]] = np.array(values[places[operator.inputs[0]]])
                case "ASSIGN_VARIABLE":
                    values[places[operator.inputs[0]]] = np.array(values[operator.inputs[1]])
                case "CALL_ONCE":
                    self._fill(values, operator.index, batch)
                case _:
                    pass

    def _fill(self, values: Values, call: int, batch: int) -> None:
        flag = self.variables.filled[call]
        for place, contents in self.variables.first[call].items():
            filled = values[flag].reshape(batch, *(1 for _ in contents.shape))
            values[place] = np.where(filled, values[place], contents)
        values[flag] = np.ones(batch, np.bool_)
