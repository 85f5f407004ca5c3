"""A TFLite network as typed data. Tensors are referred to by their index in the subgraph."""

from __future__ import annotations

import math
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


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of a subgraph.

    data             contents of a constant as bytes [size_bytes], a view of the file; or None
    shape_signature  the shape with -1 where an extent is open; None if all are known
    sparse           whether `data` holds only the elements that are not zero
    variable         whether it keeps its value from one inference to the next
    """

    index: int
    name: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...] | None
    type: TensorType
    quantization: Quantization | None
    data: npt.NDArray[np.uint8] | None
    sparse: bool
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
        """Contents of a dense constant as an array of `shape`; None if it is no such constant."""
        if self.data is None or self.dtype is None or self.sparse:
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


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A network; `name` is what diagnostics call it.

    metadata  contents by name
    record    the file as it was read, contents in its tables, from which parts can be written
    """

    name: str
    description: str
    subgraphs: tuple[Subgraph, ...]
    metadata: dict[str, npt.NDArray[np.uint8]]
    record: Record = field(repr=False)

    @property
    def main(self) -> Subgraph:
        """The subgraph that an inference executes."""
        return self.subgraphs[0]

    def origin(self, operator: Operator, subgraph: Subgraph | None = None) -> Origin:
        """Say where an operator of a subgraph (the main one if none is given) is."""
        outputs = (subgraph or self.main).present(operator.outputs)
        name = outputs[0].name if outputs else None
        return Origin(self.name, operator.index, operator.kind, name)
