"""What rules of lowering work with: the call that is lowered, and the program that comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.package.device import (
    Argument,
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    Number,
    TensorArgument,
    TensorsArgument,
)

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

WAY_ON = (
    "export for a runtime that has it, or replace the operator in the model; "
    "`mizzen run` executes it on the host"
)


Tabulate = Callable[[KernelCall, DeviceTensor, DeviceTensor], Array]
"""What a call of one input gives for every number that its elements can be, the least first:
`[256]` or `[65536]`, computed by the host's kernel. Takes the call, its input, and its output."""


class Lowering:
    """The program so far: tensors of the original, tensors added, calls of kernels."""

    def __init__(self, program: DeviceProgram, tabulate: Tabulate) -> None:
        self.tabulate = tabulate
        self.tensors: list[DeviceTensor] = list(program.tensors)
        self.calls: list[NpuCall | KernelCall] = []
        self.kept = {state.read for state in program.states}
        self._constants: dict[tuple[bytes, Shape, str], int] = {}

    def constant(self, data: npt.ArrayLike, dtype: npt.DTypeLike) -> int:
        """Return the tensor of some numbers; equal ones are there once."""
        array = np.ascontiguousarray(np.asarray(data, dtype))
        key = (array.tobytes(), array.shape, array.dtype.name)
        if key not in self._constants:
            self._constants[key] = len(self.tensors)
            tensor = DeviceTensor("constant", array.shape, array.dtype, data=array)
            self.tensors.append(tensor)
        return self._constants[key]

    def temporary(self, shape: Sequence[int], dtype: npt.DTypeLike) -> int:
        """Return a tensor for what one call leaves for the next."""
        self.tensors.append(DeviceTensor("temporary", tuple(shape), np.dtype(dtype)))
        return len(self.tensors) - 1

    def call(
        self,
        kernel: str,
        arguments: Sequence[Argument],
        outputs: Sequence[int],
        origin: Origin | None,
    ) -> None:
        """Add a call of one of the runtime's kernels, its arguments by place."""
        named = tuple((str(place), argument) for place, argument in enumerate(arguments))
        self.calls.append(KernelCall(kernel, named, tuple(outputs), origin))


class Given:
    """The call of a framework's operator that a rule lowers."""

    def __init__(self, lowering: Lowering, call: KernelCall) -> None:
        self.lowering = lowering
        self.call = call
        self.arguments: dict[str, Argument] = dict(call.arguments)

    @property
    def operator(self) -> str:
        """The framework's own name of the operator."""
        return self.call.operator

    def row(self, index: int) -> DeviceTensor:
        """Return the description of a tensor."""
        return self.lowering.tensors[index]

    def tensor(self, name: str) -> int:
        """Return the tensor that an argument is."""
        argument = self.arguments.get(name)
        if isinstance(argument, TensorArgument):
            return argument.index
        raise self.refused(f"{name} must be a tensor, and is {argument!r}")

    def tensors(self, name: str = "inputs") -> tuple[int | None, ...]:
        """Return the tensors that an argument lists."""
        argument = self.arguments.get(name)
        if isinstance(argument, TensorsArgument):
            return argument.indices
        raise self.refused(f"{name} must be a list of tensors, and is {argument!r}")

    def present(self, name: str = "inputs") -> tuple[int, ...]:
        """Return the tensors that an argument lists, all of which must be there."""
        indices = self.tensors(name)
        if any(index is None for index in indices):
            raise self.refused(f"{name} must all be given")
        return tuple(index for index in indices if index is not None)

    def get(self, name: str, default: Number = None) -> Number:
        """Return a number, or `default` where nothing is said."""
        argument = self.arguments.get(name)
        match argument:
            case None:
                return default
            case TensorArgument() | TensorsArgument() | tuple():
                raise self.refused(f"{name} must be a number, and is {argument!r}")
            case _:
                return argument

    def whole(self, name: str, default: int | None = None) -> int:
        """Return an integer."""
        value = self.get(name, default)
        if isinstance(value, int):
            return int(value)
        raise self.refused(f"{name} must be an integer, and is {value!r}")

    def real(self, name: str, default: float | None = None) -> float:
        """Return a real number."""
        value = self.get(name, default)
        if isinstance(value, int | float):
            return float(value)
        raise self.refused(f"{name} must be a number, and is {value!r}")

    def wholes(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return a list of integers; one alone is a list too."""
        argument = self.arguments.get(name)
        if argument is None and default is not None:
            return tuple(default)
        if isinstance(argument, int):
            return (int(argument),)
        if isinstance(argument, tuple):
            return tuple(int(number) for number in argument if isinstance(number, int))
        raise self.refused(f"{name} must be integers, and is {argument!r}")

    def output(self, place: int = 0) -> int:
        """Return an output that must be wanted."""
        index = self.wanted(place)
        if index is None:
            raise self.refused(f"output {place} must be wanted")
        return index

    def wanted(self, place: int) -> int | None:
        """Return an output, or None if nothing takes it."""
        return self.call.outputs[place] if place < len(self.call.outputs) else None

    def is_kept(self, index: int) -> bool:
        """Whether a tensor is state, which is written again and again."""
        return index in self.lowering.kept

    def held(self, index: int) -> Array:
        """Return the numbers of a tensor that must be constant."""
        data = self.row(index).data
        if data is None:
            raise self.refused(f"{self.row(index).name!r} must be constant")
        return data

    def emit(self, kernel: str, arguments: Sequence[Argument], outputs: Sequence[int]) -> None:
        """Add a call of one of the runtime's kernels in the place of this one."""
        self.lowering.call(kernel, arguments, outputs, self.call.origin)

    def must(self, holds: bool, rule: str) -> None:
        """Refuse the call with E465 unless something holds."""
        if not holds:
            raise self.refused(rule)

    def refused(self, rule: str) -> MizzenError:
        """Return E465: the runtime has the operator, but not like this."""
        return fail(
            "E465",
            f"the C runtime takes {self.operator} with limits: {rule}",
            origin=self.call.origin,
            help=WAY_ON,
        )


Rule = Callable[[Given], None]


def elements(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)


def ref(index: int) -> TensorArgument:
    """Return a tensor as an argument."""
    return TensorArgument(index)
