"""What an artifact takes and gives, and the state that it keeps between inferences."""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.frontends.tflite import Quantization, Tensor, zero_of

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Values = MutableMapping[int, Array]
"""Tensor index to a batch of values, `[N, *shape]`."""
Origins = dict[int, Origin]
"""Byte offset of a command in its stream to the model's operator."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output: its name, shape for one inference, type and quantisation."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    quantization: Quantization | None

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, densely packed."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def quantisation(self) -> Quantization | None:
        """`quantization`, in the spelling of the command line."""
        return self.quantization


@dataclass(frozen=True, slots=True)
class Variable:
    """State of an NPU operator: its tensor, and what it is before the first inference."""

    index: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    initial: int

    def start(self, batch: int) -> Array:
        """Return the state before the first inference, `[batch, *shape]`."""
        return np.full((batch, *self.shape), self.initial, self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """State between steps: the tensors that it is read from and written to, and how it starts."""

    read: int
    write: int
    initial: Array


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Inputs of one inference, and what whoever wrote the file expects of it: `[*shape]` each."""

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]


def variable_of(tensor: Tensor) -> Variable:
    """Return the state that a tensor holds."""
    zero = zero_of(tensor.quantization)
    return Variable(tensor.index, tensor.shape, tensor.dtype or np.dtype(np.uint8), zero)
