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
    users = [part for part in in_parts if any(row.kind in VARIABLE_KINDS for row in part)]
    if len(users) < 2 or is_in_branches(model):
        return None
    found = shared_variables(model, (0,))
    return None if found is None else found[0]


def shared_variables(model: Model, subgraphs: Sequence[int]) -> dict[int, Variables] | None:
    """Return the variables, as each of some subgraphs sees them; they have the same places in all.

    None where a CALL_ONCE does anything but assign constants.
    """
    rows = [model.subgraphs[index] for index in subgraphs]
    contents: dict[Name, Tensor] = {}
    for row in rows:
        contents = _contents(row) | contents
    start = max(len(row.tensors) for row in rows)
    places = {name: start + place for place, name in enumerate(contents)}
    calls = {
        int(row.options["init_subgraph_index"]): row
        for subgraph in rows
        for row in subgraph.operators
        if row.kind == "CALL_ONCE"
    }
    flags = {index: start + len(places) + place for place, index in enumerate(calls)}
    first: dict[int, dict[int, Array]] = {}
    for index, row in calls.items():
        assigned = assigned_once(model, row)
        if assigned is None:
            return None
        # Others than those that have a place, nobody reads.
        first[index] = {places[name]: held for name, held in assigned.items() if name in places}
    state = [Carried(places[name], places[name], held_unassigned(row))
             for name, row in contents.items()]  # fmt: skip
    state += [Carried(index, index, np.zeros((), np.bool_)) for index in flags.values()]
    return {row.index: _seen(row, places, flags, first, tuple(state)) for row in rows}


def _seen(
    subgraph: Subgraph,
    places: Mapping[Name, int],
    flags: Mapping[int, int],
    first: Mapping[int, Mapping[int, Array]],
    carried: tuple[Carried, ...],
) -> Variables:
    """Return the variables as a subgraph's operators and tensors name them."""
    calls = {
        row.index: int(row.options["init_subgraph_index"])
        for row in subgraph.operators
        if row.kind == "CALL_ONCE"
    }
    return Variables(
        places={tensor: places[name] for tensor, name in handles(subgraph) if name in places},
        filled={row: flags[index] for row, index in calls.items()},
        first={row: first[index] for row, index in calls.items()},
        carried=carried,
    )


def _contents(subgraph: Subgraph) -> dict[Name, Tensor]:
    """Return a tensor of what each variable holds: what is first assigned, else read."""
    names = dict(handles(subgraph))
    found: dict[Name, Tensor] = {}
    for kind in ("ASSIGN_VARIABLE", "READ_VARIABLE"):
        for row in subgraph.operators:
            if row.kind == kind and row.inputs[0] in names:
                index = (*row.inputs, *row.outputs)[1]
                found.setdefault(names[row.inputs[0]], subgraph.tensors[index])
    return found


class VariableStep:
    """Consecutive operators on variables; what they take and give are tensors."""

    on_npu = False

    def __init__(self, model: Model, operators: Sequence[Operator], variables: Variables) -> None:
        self.operators = tuple(operators)
        self.variables = variables
        self.origins = [model.origin(operator) for operator in operators]
        self.outputs = tuple(row.outputs[0] for row in operators if row.kind == "READ_VARIABLE")
        taken = (row.inputs[1] for row in operators if row.kind == "ASSIGN_VARIABLE")
        self.inputs = tuple(dict.fromkeys(index for index in taken if index not in self.outputs))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operators' types."""
        return tuple(row.kind for row in self.operators)

    def run(self, values: Values, batch: int) -> None:
        """Read, assign and fill the variables of a batch."""
        places = self.variables.places
        for row in self.operators:
            match row.kind:
                case "READ_VARIABLE":
                    values[row.outputs[0]] = np.array(values[places[row.inputs[0]]])
                case "ASSIGN_VARIABLE":
                    values[places[row.inputs[0]]] = np.array(values[row.inputs[1]])
                case "CALL_ONCE":
                    self._fill(values, row.index, batch)
                case _:
                    pass

    def _fill(self, values: Values, call: int, batch: int) -> None:
        flag = self.variables.filled[call]
        for place, contents in self.variables.first[call].items():
            filled = values[flag].reshape(batch, *(1 for _ in contents.shape))
            values[place] = np.where(filled, values[place], contents)
        values[flag] = np.ones(batch, np.bool_)
