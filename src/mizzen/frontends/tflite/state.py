"""Resource variables of a network as variables of the graph: VARIABLE, read and written.

Operators on them keep the network's order: a graph's order is that in which operations are added.
What a variable holds before it is assigned is what CALL_ONCE assigns to it, else the number that
stands for zero.

Ref: TFLite Micro, micro_resource_variable.cc, kernels/call_once.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.frontends.tflite.context import (
    INTEGERS,
    LOWERINGS_WITH_STATE,
    Call,
    Context,
)
from mizzen.frontends.tflite.model import Model, Operator, Tensor
from mizzen.frontends.tflite.tflite_tensors import Array, to_graph, type_of
from mizzen.frontends.tflite.variables import (
    VARIABLE_KINDS,
    Name,
    assigned_once,
    handles,
    held_unassigned,
    is_in_branches,
)
from mizzen.graph import Value
from mizzen.ops import Builder


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """A variable: a tensor of what it holds, and what it holds at first."""

    name: str
    tensor: Tensor
    initial: Array


def variables_of(model: Model) -> Mapping[int, Resource] | None:
    """Return the variables by the main subgraph's handles; None where the graph has none of them.

    It has none in branches, none that other subgraphs use too, of other numbers than integers, of
    two types, or filled by more than constants.
    """
    main = model.main
    names = dict(handles(main))
    first = _first(model)
    if not names or first is None or is_in_branches(model) or model.shared & {*names.values()}:
        return None
    held: dict[Name, Tensor] = {}
    for operator in main.operators:
        if operator.kind not in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            continue
        tensor = main.tensors[(*operator.inputs, *operator.outputs)[1]]
        name = names.get(operator.inputs[0])
        if name is None or tensor.type not in INTEGERS:
            return None
        before = held.setdefault(name, tensor)
        if (before.shape, before.type) != (tensor.shape, tensor.type):
            return None
    resources: dict[int, Resource] = {}
    for index, name in names.items():
        if name in held:
            tensor = held[name]
            initial = first.get(name, held_unassigned(tensor))
            if initial.shape != tensor.shape:
                return None
            resources[index] = Resource("/".join(filter(None, name)), tensor, initial)
    return resources


def _first(model: Model) -> dict[Name, Array] | None:
    """Return the values that CALL_ONCE assigns; None if it does anything but assign constants."""
    initial: dict[Name, Array] = {}
    for operator in model.main.operators:
        assigned = assigned_once(model, operator) if operator.kind == "CALL_ONCE" else {}
        if assigned is None:
            return None
        initial |= assigned
    return initial


class StateContext(Context):
    """Lowers operators on variables to operations on the graph's."""

    def __init__(self, model: Model, variables: Mapping[int, Resource]) -> None:
        super().__init__(model)
        self._variables = variables
        outside = Builder(self.graph, Origin(model.name))
        for resource in {each.name: each for each in variables.values()}.values():
            type = type_of(resource.tensor, outside.origin)
            initial = to_graph(resource.tensor, resource.initial)
            outside.many("VARIABLE", name=resource.name, type=type, initial=initial)

    def _lowered(self, operator: Operator, builder: Builder) -> tuple[Value, ...]:
        lowering = LOWERINGS_WITH_STATE.get(operator.kind)
        if lowering is None or operator.custom:
            return super()._lowered(operator, builder)
        result = lowering(Call(self, operator, builder))
        return result if isinstance(result, tuple) else (result,)

    def lower(self, operator: Operator) -> None:
        """Add an operator's operations, or one that the CPU computes."""
        if operator.kind not in VARIABLE_KINDS:
            super().lower(operator)
            return
        b = Builder(self.graph, self.model.origin(operator), operator.index)
        resource = self._variables.get(operator.inputs[0]) if operator.inputs else None
        if resource is None:
            return
        if operator.kind == "READ_VARIABLE":
            index = operator.outputs[0]
            type = type_of(self.tensors[index], b.origin)
            self.define(index, b("VARIABLE_READ", name=resource.name, type=type))
        else:
            b.many("VARIABLE_WRITE", self.value(operator.inputs[1], b), name=resource.name)
