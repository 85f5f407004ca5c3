"""Operators of a TFLite network as calls of a device's kernels; a network as a program of them.

What is here knows a network alone: operators on resource variables, and the steps of artifacts,
which have more to them, are `mizzen.artifact.device`'s.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.tflite import Model, Operator, Quantization, Tensor, zero_of
from mizzen.frontends.tflite.model import ABSENT
from mizzen.package.device import (
    Argument,
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    Number,
    State,
    TensorsArgument,
)

PREFIX = "tflite::"
BRANCHES = frozenset(("CALL", "IF", "WHILE"))

OWN_STATE: dict[str, np.dtype[Any]] = {
    "SignalFilterBankSpectralSubtraction": np.dtype(np.uint32),
}
"""Operators with state of their own that is no tensor, as long as their input, and its type.

Ref: TFLite Micro, signal/micro/kernels/filter_bank_spectral_subtraction.cc (noise estimate).
"""


class NumberedTensors(Protocol):
    """Tensors of a program, numbered as they are first named."""

    def number(self, index: int) -> int:
        """Return the number of a tensor of the network."""
        ...

    def row(self, number: int) -> DeviceTensor:
        """Return a tensor by its number."""
        ...

    def add(self, tensor: DeviceTensor) -> int:
        """Return the number of a tensor that only the device has."""
        ...


class OperatorCalls:
    """Makes the calls of a network's operators.

    kept  what the operators keep from one inference to the next, by its tensor
    """

    def __init__(self, model: Model, tensors: NumberedTensors) -> None:
        self.model = model
        self.tensors = tensors
        self.kept: dict[int, State] = {}

    @property
    def states(self) -> list[State]:
        """What is kept, in the order in which it was found."""
        return list(self.kept.values())

    def call(self, operator: Operator) -> KernelCall:
        """Return the call of an operator. E452 for one that is none."""
        if operator.kind in BRANCHES:
            raise no_calls(self.model, operator, "choose between calls")
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
            tuple(None if index == ABSENT else self.tensors.number(index)
                  for index in operator.outputs),
            self.model.origin(operator),
        )  # fmt: skip

    def _input(self, index: int) -> int | None:
        if index == ABSENT:
            return None
        number = self.tensors.number(index)
        tensor = self.model.main.tensors[index]
        if tensor.variable:
            zero = zero_of(tensor.quantization)
            initial = np.full(tensor.shape, zero, self.tensors.row(number).dtype)
            self.kept.setdefault(number, State(number, number, initial))
        return number

    def _own_state(self, operator: Operator, dtype: np.dtype[Any]) -> int:
        shape = self.model.main.tensors[operator.inputs[0]].shape
        name = f"{operator.kind}.{operator.index}"
        number = self.tensors.add(DeviceTensor(name, shape, dtype))
        self.kept[number] = State(number, number, np.zeros(shape, dtype))
        return number


def no_calls(model: Model, operator: Operator, what: str) -> MizzenError:
    """Return E452: an operator is no call."""
    return fail(
        "E452",
        f"a device executes calls one after the other, and {operator.kind} would {what}",
        origin=model.origin(operator),
        help="split the network there, and choose between the parts in the firmware",
    )


def device_tensor(tensor: Tensor, offset_bytes: int | None = None) -> DeviceTensor:
    """Return a tensor of a network. E452 for one that is no array of numbers."""
    if tensor.dtype is None or (tensor.data is not None and tensor.values is None):
        raise fail(
            "E452",
            f"tensor {tensor.name!r} must be a dense array of numbers, not {tensor.type.name}",
            help="keep what uses it out of the network: it stays on a host",
        )
    quantization = tensor.quantization
    return DeviceTensor(
        tensor.name,
        tensor.shape,
        np.dtype(tensor.dtype),
        () if quantization is None else tuple(quantization.scale),
        () if quantization is None else tuple(quantization.zero_point),
        0 if quantization is None else _axis_of(tensor.shape, quantization),
        tensor.values,
        offset_bytes if tensor.values is None else None,
    )


def _axis_of(shape: tuple[int, ...], quantization: Quantization) -> int:
    """Return the axis of scales: converters give biases the axis of the weights beside them."""
    return 0 if len(shape) == 1 else quantization.axis


class _NetworkTensors:
    """The tensors of a network alone."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._numbers: dict[int, int] = {}
        self.rows: list[DeviceTensor] = []

    def number(self, index: int) -> int:
        if index not in self._numbers:
            self._numbers[index] = self.add(device_tensor(self._model.main.tensors[index]))
        return self._numbers[index]

    def row(self, number: int) -> DeviceTensor:
        return self.rows[number]

    def add(self, tensor: DeviceTensor) -> int:
        self.rows.append(tensor)
        return len(self.rows) - 1


def network_program(model: Model) -> DeviceProgram:
    """Return a network without resource variables as a program. E452 if it is no such program."""
    tensors = _NetworkTensors(model)
    calls = OperatorCalls(model, tensors)
    made = tuple(calls.call(operator) for operator in model.main.operators)
    inputs = tuple(tensors.number(index) for index in model.main.inputs)
    outputs = tuple(tensors.number(index) for index in model.main.outputs)
    return DeviceProgram(
        name=model.name,
        accelerator=None,
        tensors=tuple(tensors.rows),
        inputs=inputs,
        outputs=outputs,
        calls=made,
        states=tuple(calls.states),
    )


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
