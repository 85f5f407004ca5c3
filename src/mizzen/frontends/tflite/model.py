"""A TFLite network as typed data: tensors, operators, metadata of its first subgraph.

Every index, type and size is checked while reading; contents of constants are views of the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer import read as read_flatbuffer
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType

Array = npt.NDArray[Any]

DTYPES = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.UINT16: np.dtype(np.uint16),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.BOOL: np.dtype(np.bool_),
}
"""Element types that NumPy has; tensors of the others have no dtype."""

LARGEST_TENSOR_BYTES = 1 << 31


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantisation: one scale and zero point, or one per index of `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0

    @property
    def is_per_axis(self) -> bool:
        """Whether there are several scales."""
        return len(self.scale) > 1


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor; `data` are a constant's contents, `dtype` is None for types NumPy lacks."""

    index: int
    name: str
    shape: tuple[int, ...]
    type_name: str
    dtype: np.dtype[Any] | None
    quantization: Quantization | None
    data: Array | None
    is_variable: bool

    @property
    def size_bytes(self) -> int:
        """Bytes of the contents; 0 for types NumPy lacks."""
        return 0 if self.dtype is None else math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator; inputs and outputs are tensor indices, -1 where an input is absent.

    `kind` is the builtin operator's name or the custom operator's code.
    """

    index: int
    kind: str
    is_custom: bool
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Record


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The network of a file's first subgraph; `record` is the whole file, for rewriting."""

    name: str
    record: Record
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    metadata: dict[str, npt.NDArray[np.uint8]]
    subgraph_count: int

    def origin(self, operator: Operator) -> Origin:
        """Say where an operator is."""
        name = self.tensors[operator.outputs[0]].name if operator.outputs else None
        return Origin(self.name, operator.index, operator.kind, name)


def read(data: bytes, name: str) -> Model:
    """Read a network; `name` is the file's name in diagnostics.

    Raises E101 and E102 for files that are no TFLite files or damaged, E103 for inconsistent ones.
    """
    record = read_flatbuffer(data, SCHEMA, name)
    return _Reader(record, name).model()


class _Reader:
    def __init__(self, record: Record, name: str) -> None:
        self._name = name
        self._record = record
        self._buffers: list[Record] = record["buffers"] or []
        self._codes: list[Record] = record["operator_codes"] or []
        subgraphs: list[Record] = record["subgraphs"] or []
        if not subgraphs:
            raise self._wrong("the file must hold a network, and has no subgraph")
        self._subgraph_count = len(subgraphs)
        self._graph = subgraphs[0]

    def model(self) -> Model:
        graph = self._graph
        tensors = tuple(self._tensor(i, t) for i, t in enumerate(graph["tensors"] or []))
        count = len(tensors)
        operators = tuple(
            self._operator(i, operator, count)
            for i, operator in enumerate(graph["operators"] or [])
        )
        inputs = self._indices(graph["inputs"], count, "the network's inputs", 0)
        outputs = self._indices(graph["outputs"], count, "the network's outputs", 0)
        metadata = {
            entry["name"] or "": self._contents(entry["buffer"], "metadata")
            for entry in self._record["metadata"] or []
        }
        return Model(
            self._name,
            self._record,
            tensors,
            operators,
            inputs,
            outputs,
            metadata,
            self._subgraph_count,
        )

    def _tensor(self, index: int, record: Record) -> Tensor:
        name: str = record["name"] or f"tensor {index}"
        shape = tuple(_integers(record["shape"]))
        if any(extent < 0 for extent in shape):
            raise self._wrong(f"tensor {name!r} must have a fixed shape, not {list(shape)}")
        if record["type"] not in TensorType:
            raise self._wrong(f"tensor {name!r} has a type that does not exist: {record['type']}")
        type_ = TensorType(record["type"])
        dtype = DTYPES.get(type_)
        size = math.prod(shape) * (1 if dtype is None else dtype.itemsize)
        if size > LARGEST_TENSOR_BYTES:
            raise self._wrong(f"tensor {name!r} must be smaller than 2 GiB, not {size} bytes")
        return Tensor(
            index=index,
            name=name,
            shape=shape,
            type_name=type_.name,
            dtype=dtype,
            quantization=self._quantization(name, record["quantization"]),
            data=self._data(name, record["buffer"], shape, dtype),
            is_variable=record["is_variable"],
        )

    def _quantization(self, name: str, record: Record | None) -> Quantization | None:
        if record is None or record["scale"] is None or not len(record["scale"]):
            return None
        scale = tuple(float(value) for value in record["scale"])
        zero_point = tuple(_integers(record["zero_point"])) or (0,) * len(scale)
        if len(zero_point) not in (1, len(scale)):
            raise self._wrong(
                f"tensor {name!r} must have as many zero points as scales, {len(scale)}, "
                f"not {len(zero_point)}"
            )
        if len(zero_point) < len(scale):
            zero_point *= len(scale)
        return Quantization(scale, zero_point, record["quantized_dimension"])

    def _data(
        self, name: str, buffer: int, shape: tuple[int, ...], dtype: np.dtype[Any] | None
    ) -> Array | None:
        contents = self._contents(buffer, f"tensor {name!r}")
        if dtype is None or not len(contents):
            return None
        size = math.prod(shape) * dtype.itemsize
        if len(contents) != size:
            raise self._wrong(
                f"tensor {name!r} must have {size} bytes of contents, not {len(contents)}"
            )
        return np.frombuffer(contents, dtype).reshape(shape)

    def _contents(self, buffer: int, what: str) -> npt.NDArray[np.uint8]:
        if not 0 <= buffer < max(1, len(self._buffers)):
            raise self._wrong(f"{what} refers to buffer {buffer} of {len(self._buffers)}")
        data = self._buffers[buffer]["data"] if self._buffers else None
        return np.zeros(0, np.uint8) if data is None else data

    def _operator(self, index: int, record: Record, tensors: int) -> Operator:
        code_index = record["opcode_index"]
        if not 0 <= code_index < len(self._codes):
            raise self._wrong(f"operator {index} has code {code_index} of {len(self._codes)}")
        code = self._codes[code_index]
        number = max(code["deprecated_builtin_code"], code["builtin_code"])
        if number not in BuiltinOperator:
            raise self._wrong(f"operator {index} has a type that does not exist: {number}")
        builtin = BuiltinOperator(number)
        is_custom = builtin is BuiltinOperator.CUSTOM
        options: Member | None = record["builtin_options"] or record["builtin_options2"]
        what = f"operator {index}"
        return Operator(
            index=index,
            kind=(code["custom_code"] or "CUSTOM") if is_custom else builtin.name,
            is_custom=is_custom,
            version=code["version"],
            inputs=self._indices(record["inputs"], tensors, f"{what}'s inputs", -1),
            outputs=self._indices(record["outputs"], tensors, f"{what}'s outputs", 0),
            options={} if options is None else options.fields,
        )

    def _indices(self, values: Any, count: int, what: str, lowest: int) -> tuple[int, ...]:
        indices = tuple(_integers(values))
        for index in indices:
            if not lowest <= index < count:
                raise self._wrong(f"{what} must be tensors 0..{count - 1}, and name {index}")
        return indices

    def _wrong(self, message: str) -> MizzenError:
        return fail(
            "E103",
            f"{self._name}: {message}",
            help="get the file again; it is damaged or was written by a broken tool",
        )


def _integers(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in values]
