"""A TFLite network as typed data. Tensors are referred to by their index in the subgraph."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.flatbuffer import Record
from mizzen.flatbuffer.tflite import DTYPES, PACKED_BITS, TensorType

ABSENT = -1
"""Index of an optional tensor that an operator does not have."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """``real = scale * (quantised - zero_point)``; several of each are for each index of `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0


def zero_of(quantization: Quantization | None) -> int:
    """Return the number that state starts at: the one that stands for zero."""
    return quantization.zero_point[0] if quantization else 0


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of a subgraph.

    data             contents of a constant as bytes [size_bytes], a view of the file; or None
    shape_signature  the shape with -1 where an extent is open; None if all are known
    variable         whether it keeps its value from one inference to the next
    """

    index: int
    name: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...] | None
    type: TensorType
    quantization: Quantization | None
    data: npt.NDArray[np.uint8] | None
    variable: bool

    @property
    def dtype(self) -> np.dtype[np.generic] | None:
        """The NumPy type of its elements, if there is one."""
        return DTYPES.get(self.type)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the tensor, densely packed; None for types without a fixed size."""
        bits = 8 * self.dtype.itemsize if self.dtype else PACKED_BITS.get(self.type)
        return None if bits is None else -(-self.elements * bits // 8)

    @property
    def values(self) -> npt.NDArray[Any] | None:
        """Contents of a constant as an array of `shape`; None if it is not one of NumPy's types.

        A tensor without elements has them, whether or not something computes it.
        """
        if self.dtype is None:
            return None
        if not self.elements:
            return np.zeros(self.shape, self.dtype)
        if self.data is None:
            return None
        return self.data.view(self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator, by its index in execution order.

    kind            the builtin operator's name (``CONV_2D``) or the custom operator's code
    inputs          tensor indices, `ABSENT` for optional inputs that it does not have
    options         fields of its options table; empty if it has none
    custom_options  bytes of a custom operator's own format
    intermediates   tensors that carry only a quantisation
    """

    index: int
    kind: str
    custom: bool
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Record
    custom_options: npt.NDArray[np.uint8]
    intermediates: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """Tensors, and operators in execution order."""

    index: int
    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def present(self, indices: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Return the tensors of those indices that are not absent."""
        return tuple(self.tensors[index] for index in indices if index != ABSENT)


@dataclass(frozen=True, slots=True)
class Signature:
    """A function of a network by name: the subgraph that it executes, its tensors by their names.

    inputs, outputs  names to tensors, in the file's order
    """

    name: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A network; `name` is what diagnostics call it.

    metadata      contents by name
    record        the file as it was read, contents in its tables, from which parts can be written
    is_as_stored  whether the contents of all constants are those of the file: sparse ones are dense
                  once they are read, and elements that share a byte have one each
    signatures    what may be executed besides the main subgraph, which may have names too
    shared        variables (container and name) that the file's other subgraphs use too, where this
                  is a part of a file
    """

    name: str
    description: str
    subgraphs: tuple[Subgraph, ...]
    metadata: dict[str, npt.NDArray[np.uint8]]
    record: Record = field(repr=False)
    is_as_stored: bool = True
    signatures: tuple[Signature, ...] = ()
    shared: frozenset[tuple[str, str]] = frozenset()

    @property
    def main(self) -> Subgraph:
        """The subgraph that an inference executes."""
        return self.subgraphs[0]

    def origin(self, operator: Operator, subgraph: Subgraph | None = None) -> Origin:
        """Say where an operator of a subgraph (the main one if none is given) is."""
        outputs = (subgraph or self.main).present(operator.outputs)
        name = outputs[0].name if outputs else None
        return Origin(self.name, operator.index, operator.kind, name)


class _Shapes:
    """An operator's shapes, looked up so that an operator with too few of them has no MACs."""

    def __init__(self, subgraph: Subgraph, operator: Operator) -> None:
        self._subgraph = subgraph
        self._operator = operator

    def _tensor(self, index: int) -> Tensor | None:
        inputs = self._operator.inputs
        if index >= len(inputs) or inputs[index] == ABSENT:
            return None
        return self._subgraph.tensors[inputs[index]]

    def elements(self, *inputs: int) -> int:
        """Elements of those inputs together; an absent one has none."""
        tensors = [self._tensor(index) for index in inputs]
        return sum(tensor.elements for tensor in tensors if tensor is not None)

    def extents(self, index: int, axes: slice) -> int:
        """Product of some extents of an input."""
        tensor = self._tensor(index)
        return 0 if tensor is None else math.prod(tensor.shape[axes])

    @property
    def output(self) -> int:
        """Elements of the first output."""
        outputs = self._operator.outputs
        return self._subgraph.tensors[outputs[0]].elements if outputs else 0

    @property
    def options(self) -> Record:
        return self._operator.options


def _batch_matmul(shapes: _Shapes) -> int:
    """[..., M, K] by [..., K, N]: each element of the output is a sum of K products."""
    axis = slice(-2, -1) if shapes.options.get("adj_x") else slice(-1, None)
    return shapes.output * shapes.extents(0, axis)


def _steps(shapes: _Shapes) -> int:
    """Time steps over the whole batch of x [N, T, IC], or [T, N, IC]."""
    return shapes.extents(0, slice(None, -1))


_MACS: dict[str, Callable[[_Shapes], int]] = {
    # Filter [OC, KH, KW, IC]; with groups, IC is that of a group.
    "CONV_2D": lambda s: s.output * s.extents(1, slice(1, None)),
    # Filter [KD, KH, KW, IC, OC].
    "CONV_3D": lambda s: s.output * s.extents(1, slice(None, -1)),
    # Filter [1, KH, KW, OC].
    "DEPTHWISE_CONV_2D": lambda s: s.output * s.extents(1, slice(1, -1)),
    # Inputs: shape of the output, filter [OC, KH, KW, IC], x [N, H, W, IC].
    "TRANSPOSE_CONV": lambda s: s.elements(2) * s.extents(1, slice(None, -1)),
    # Filter [OC, IC].
    "FULLY_CONNECTED": lambda s: s.output * s.extents(1, slice(-1, None)),
    "BATCH_MATMUL": _batch_matmul,
    # Input, recurrent and peephole weights, and the projection.
    "LSTM": lambda s: _steps(s) * s.elements(*range(1, 12), 16),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda s: _steps(s) * s.elements(*range(1, 12), 16),
    "BIDIRECTIONAL_SEQUENCE_LSTM": lambda s: (
        _steps(s) * s.elements(*range(1, 12), 16, *range(18, 29), 33)
    ),
    # Input and recurrent weights.
    "RNN": lambda s: _steps(s) * s.elements(1, 2),
    "UNIDIRECTIONAL_SEQUENCE_RNN": lambda s: _steps(s) * s.elements(1, 2),
    # x [N, IC], features [F, IC], time weights [F, T].
    "SVDF": lambda s: s.extents(0, slice(0, 1)) * s.elements(1, 2),
}


def macs(subgraph: Subgraph, operator: Operator) -> int:
    """Count the multiply-accumulates of one execution of an operator.

    Only operators that multiply by weights or matrices have any: pooling and elementwise operators
    count as none. Padding counts like data.
    """
    count = _MACS.get(operator.kind)
    return 0 if count is None or operator.custom else count(_Shapes(subgraph, operator))
