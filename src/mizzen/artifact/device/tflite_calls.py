"""Operators of a TFLite network as calls; operators on variables as copies from and to state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.artifact.device.tensors import Tensors
from mizzen.artifact.resources import Variables, variables_of
from mizzen.cpu.operator_calls import OperatorCalls, no_calls
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.package.device import (
    DeviceTensor,
    KernelCall,
    State,
    TensorArgument,
)

COPY = "mizzen::copy"
"""From one tensor to another of the same size."""


class TfliteCalls(OperatorCalls):
    """Makes the calls of a network's operators, those on variables too."""

    def __init__(self, model: Model, tensors: Tensors) -> None:
        super().__init__(model, tensors)
        self._variables = _variables(model)
        self._places: dict[int, int] = {}
        if self._variables is not None:
            self._keep_variables(self._variables)

    def calls(self, operators: Sequence[Operator]) -> Iterator[KernelCall]:
        """Return the calls of some operators. E452 for those that are no calls."""
        for operator in operators:
            if operator.kind in VARIABLE_KINDS:
                yield from self._of_variable(operator)
            else:
                yield self.call(operator)

    def _keep_variables(self, variables: Variables) -> None:
        contents = {
            place: held for first in variables.first.values() for place, held in first.items()
        }
        for state in variables.carried:
            if state.read in variables.filled.values():
                continue
            initial = contents.get(state.read, state.initial)
            name = f"variable.{state.read}"
            number = self.tensors.add(DeviceTensor(name, initial.shape, initial.dtype))
            self.kept[number] = State(number, number, initial)
            self._places[state.read] = number

    def _of_variable(self, operator: Operator) -> Iterator[KernelCall]:
        if self._variables is None:
            raise no_calls(self.model, operator, "keep variables in branches")
        if operator.kind not in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            return
        held = self._places[self._variables.places[operator.inputs[0]]]
        if operator.kind == "READ_VARIABLE":
            source, output = held, self.tensors.number(operator.outputs[0])
        else:
            source, output = self.tensors.number(operator.inputs[1]), held
        yield KernelCall(
            COPY, (("input", TensorArgument(source)),), (output,), self.model.origin(operator)
        )


def _variables(model: Model) -> Variables | None:
    operators = [operator for operator in model.main.operators if operator.kind in VARIABLE_KINDS]
    return variables_of(model, [[operator] for operator in operators])
