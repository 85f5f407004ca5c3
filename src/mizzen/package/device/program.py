"""What a device executes, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin

Array = npt.NDArray[Any]
Number = bool | int | float | str | bytes | None
"""An argument of a kernel that is no tensor. A list of numbers is a tuple, a type is its NumPy
name, and what a custom operator brings in a format of its own is bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTensor:
    """A tensor: densely packed, the last axis fastest.

    scales, zero_points  one each for a whole tensor, as many as the axis is long for one along
                         `axis`; none for a tensor of plain numbers
    data                 `[*shape]` of a constant; None of what is computed, given or kept
    offset_bytes         where in the arena a compiler's plan has it; None where nothing says so
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    data: Array | None = None
    offset_bytes: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Transfer:
    """A tensor of an NPU call, and its byte offset in the call's scratch memory."""

    tensor: int
    offset_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class NpuCall:
    """One invocation of the NPU's driver.

    payload              the driver's, which starts with ``COP1``
    read_only            region 0: encoded weights and tables
    scratch_bytes        size of region 1
    scratch_offset_bytes where region 1 starts in the arena, by the plan of a compiler: tensors of
                         the call lie there already. None: it may be anywhere, and the tensors are
                         copied in before the call and out after it
    fast_bytes           size of region 2; None where there is none, or it is the same as region 1
    states               tensors of region 1 that the call reads, and leaves for the next inference
    """

    payload: bytes
    read_only: bytes
    scratch_bytes: int
    scratch_offset_bytes: int | None
    fast_bytes: int | None
    inputs: tuple[Transfer, ...]
    outputs: tuple[Transfer, ...]
    states: tuple[Transfer, ...] = ()

    @property
    def reads(self) -> tuple[int, ...]:
        """The tensors that it reads, in order."""
        return tuple(transfer.tensor for transfer in (*self.inputs, *self.states))

    @property
    def writes(self) -> tuple[int, ...]:
        """The tensors that it writes, in order."""
        return tuple(transfer.tensor for transfer in (*self.outputs, *self.states))


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """An argument that is a tensor: its index in the program."""

    index: int


@dataclass(frozen=True, slots=True)
class TensorsArgument:
    """An argument that is a list of tensors; None is one that is left out."""

    indices: tuple[int | None, ...]


Argument = TensorArgument | TensorsArgument | Number | tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a kernel of the processor.

    operator   the framework's own name: ``aten::add.Tensor``, ``tflite::SOFTMAX``,
               ``quantized_decomposed::quantize_per_tensor``
    arguments  by their names in the operator's schema, in its order; defaults are filled in
    outputs    tensors that it writes; one that is None is not wanted
    origin     where it is in the user's model
    """

    operator: str
    arguments: tuple[tuple[str, Argument], ...]
    outputs: tuple[int | None, ...]
    origin: Origin | None = None

    @property
    def writes(self) -> tuple[int, ...]:
        """The tensors that it writes, in order."""
        return tuple(index for index in self.outputs if index is not None)

    @property
    def reads(self) -> tuple[int, ...]:
        """The tensors that it reads, in order."""
        tensors: list[int] = []
        for _, argument in self.arguments:
            match argument:
                case TensorArgument(index):
                    tensors.append(index)
                case TensorsArgument(indices):
                    tensors += [index for index in indices if index is not None]
                case _:
                    pass
        return tuple(tensors)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What outlives an inference: read from one tensor, taken over from another at the end.

    initial  `[*shape]`, before the first inference
    """

    read: int
    write: int
    initial: Array


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProgram:
    """All of a program.

    arena_bytes  what a compiler's plan takes of the arena, from its start; tensors without an
                 offset, and scratch memories without one, lie anywhere after it
    accelerator  the configuration that NPU calls are for; None without any
    """

    name: str
    accelerator: str | None
    tensors: tuple[DeviceTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    calls: tuple[NpuCall | KernelCall, ...]
    states: tuple[State, ...] = ()
    arena_bytes: int = 0
