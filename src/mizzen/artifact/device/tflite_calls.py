"""Operators of a TFLite network as calls; operators on variables as copies from and to state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mizzen.artifact.device.tensors import Tensors
from mizzen.artifact.interface import zero_of
from mizzen.artifact.resources import Variables, variables_of
from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.model import ABSENT
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.package.device import (
    Argument,
    DeviceTensor,
    KernelCall,
    Number,
    State,
    TensorArgument,
    TensorsArgument,
)

PREFIX = "tflite::"
COPY = "mizzen::copy"
"""From one tensor to another of the same size."""

BRANCHES = frozenset(("CALL", "IF", "WHILE"))

OWN_STATE: dict[str, np.dtype[Any]] = {
    "SignalFilterBankSpectralSubtraction": np.dtype(np.uint32),
}
"""Operators with state of their own that is no tensor, as long as their input, and its type.

Ref: TFLite Micro, signal/micro/kernels/filter_bank_spectral_subtraction.cc (noise estimate).
"""


class TfliteCalls:
    """Makes the calls of a network's operators.

    states  what the operators keep from one inference to the next
    """

    def __init__(self, model: Model, tensors: Tensors) -> None:
        self._model = model
        self._tensors = tensors
        self._kept: dict[int, State] = {}
        self._variables = _variables(model)
        self._places: dict[int, int] = {}
        if self._variables is not None:
            self._keep_variables(self._variables)

    @property
    def states(self) -> list[State]:
        """What is kept, in the order in which it was found."""
        return list(self._kept.values())

    def calls(self, operators: Sequence[Operator]) -> Iterator[KernelCall]:
        """Return the calls of some operators. E452 for those that are no calls."""
        for operator in operators:
            if operator.kind in VARIABLE_KINDS:
                yield from self._of_variable(operator)
            else:
                yield self._call(operator)

    def _call(self, operator: Operator) -> KernelCall:
        if operator.kind in BRANCHES:
            raise self._no_calls(operator, "choose between calls")
        indices = [self._input(index) for index in operator.inputs]
        own = OWN_STATE.get(operator.kind)
        if own is not None:
            indices.append(self._own_state(operator, own))
        options = tuple((name, _number(value)) for name, value in sorted(operator.options.items()))
        custom: tuple[tuple[str, Argument], ...] = ()
        if operator.custom:
            custom = (("custom_options", operator.custom_options.tobytes()),)
        return KernelCall(
            PREFIX + operator.kind,
            (("inputs", TensorsArgument(tuple(indices))), *options, *custom),
            tuple(None if index == ABSENT else self._tensors.number(index)
                  for index in operator.outputs),
            self._model.origin(operator),
        )  # fmt: skip

    def _input(self, index: int) -> int | None:
        if index == ABSENT:
            return None
        number = self._tensors.number(index)
        tensor = self._model.main.tensors[index]
        if tensor.variable:
            zero = zero_of(tensor.quantization)
            initial = np.full(tensor.shape, zero, self._tensors.row(number).dtype)
            self._kept.setdefault(number, State(number, number, initial))
        return number

    def _own_state(self, operator: Operator, dtype: np.dtype[Any]) -> int:
        shape = self._model.main.tensors[operator.inputs[0]].shape
        name = f"{operator.kind}.{operator.index}"
        number = self._tensors.add(DeviceTensor(name, shape, dtype))
        self._kept[number] = State(number, number, np.zeros(shape, dtype))
        return number

    def _keep_variables(self, variables: Variables) -> None:
        contents = {
            place: held for first in variables.first.values() for place, held in first.items()
        }
        for state in variables.carried:
            if state.read in variables.filled.values():
                continue
            initial = contents.get(state.read, state.initial)
            name = f"variable.{state.read}"
            number = self._tensors.add(DeviceTensor(name, initial.shape, initial.dtype))
            self._kept[number] = State(number, number, initial)
            self._places[state.read] = number

    def _of_variable(self, operator: Operator) -> Iterator[KernelCall]:
        if self._variables is None:
            raise self._no_calls(operator, "keep variables in branches")
        if operator.kind not in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            return
        held = self._places[self._variables.places[operator.inputs[0]]]
        if operator.kind == "READ_VARIABLE":
            source, output = held, self._tensors.number(operator.outputs[0])
        else:
            source, output = self._tensors.number(operator.inputs[1]), held
        yield KernelCall(
            COPY, (("input", TensorArgument(source)),), (output,), self._model.origin(operator)
        )

    def _no_calls(self, operator: Operator, what: str) -> MizzenError:
        return fail(
            "E452",
            f"a device executes calls one after the other, and {operator.kind} would {what}",
            origin=self._model.origin(operator),
            help="split the network there, and choose between the parts in the firmware",
        )


def _variables(model: Model) -> Variables | None:
    operators = [operator for operator in model.main.operators if operator.kind in VARIABLE_KINDS]
    return variables_of(model, [[operator] for operator in operators])


def _number(value: Any) -> Number | tuple[Number, ...]:
    match value:
        case np.ndarray():
            numbers: list[Number] = value.tolist()
            return tuple(numbers)
        case np.bool_() | np.integer() | np.floating():
            number: Number = value.item()
            return number
        case _:
            return value
