"""Build TFLite networks operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Member, Record, write
from mizzen.flatbuffer.tflite import DTYPES, SCHEMA, BuiltinOperator, TensorType

TYPES = {dtype: type_ for type_, dtype in DTYPES.items()}
"""The file's type for each NumPy type."""

OLD_CODE_LIMIT = 127
"""Operator codes above this do not fit the schema's first, 8-bit field, which then holds this."""


class NetworkBuilder:
    """Collects tensors and operators of one subgraph, and returns the file.

    Tensors are referred to by the index that `tensor` and `constant` give.
    """

    def __init__(self, description: str = "") -> None:
        self._description = description
        self._tensors: list[Record] = []
        self._operators: list[Record] = []
        self._codes: list[Record] = []
        self._buffers: list[Record] = [{}]  # buffer 0 is empty by convention
        self._metadata: list[Record] = []
        self._initial: list[tuple[str, Record]] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] = 0,
        *,
        axis: int = 0,
        variable: bool = False,
    ) -> int:
        """Add a tensor of `shape`; quantised if it has a `scale`, per `axis` if it has several."""
        record: Record = {
            "name": name,
            "shape": np.asarray(shape, np.int32),
            "type": int(TYPES[np.dtype(dtype)]),
            "buffer": 0,
            "is_variable": variable,
        }
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            zero_points = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape)
            record["quantization"] = {
                "scale": scales,
                "zero_point": zero_points,
                "quantized_dimension": axis,
            }
        self._tensors.append(record)
        return len(self._tensors) - 1

    def constant(
        self,
        name: str,
        data: npt.NDArray[Any],
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] = 0,
        *,
        axis: int = 0,
    ) -> int:
        """Add a tensor with contents."""
        index = self.tensor(name, data.shape, data.dtype, scale, zero_point, axis=axis)
        self._tensors[index]["buffer"] = self._buffer(np.ascontiguousarray(data).tobytes())
        return index

    def resource(self, name: str) -> int:
        """Add a tensor that is the handle of a resource variable."""
        index = self.tensor(name, (1,), np.int32)
        self._tensors[index]["type"] = int(TensorType.RESOURCE)
        return index

    def initial(
        self, variable: str, data: npt.NDArray[Any], scale: float, zero_point: int = 0
    ) -> None:
        """Let CALL_ONCE fill a resource variable, by its shared name, before all else."""
        place = self.constant(f"{variable}_initial", data, scale, zero_point)
        self._initial.append((variable, self._tensors.pop(place)))

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: tuple[str, Record] | None = None,
        *,
        custom_options: bytes | None = None,
        intermediates: Sequence[int] | None = None,
        version: int = 1,
    ) -> None:
        """Add an operator; `kind` is a builtin operator's name, else a custom operator's code.

        `options` is the options table's name and its fields, an input of -1 an absent one.
        """
        record: Record = {
            "opcode_index": self._code(kind, version),
            "inputs": np.asarray(inputs, np.int32),
            "outputs": np.asarray(outputs, np.int32),
        }
        if options is not None:
            second = options[0] in SCHEMA.unions["BuiltinOptions2"]
            record["builtin_options2" if second else "builtin_options"] = Member(*options)
        if custom_options is not None:
            record["custom_options"] = np.frombuffer(custom_options, np.uint8)
        if intermediates is not None:
            record["intermediates"] = np.asarray(intermediates, np.int32)
        self._operators.append(record)

    def metadata(self, name: str, contents: bytes) -> None:
        """Add an entry of the file's metadata."""
        self._metadata.append({"name": name, "buffer": self._buffer(contents)})

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the file of the network with these inputs and outputs."""
        filling = self._filling() if self._initial else []
        subgraph: Record = {
            "tensors": self._tensors,
            "inputs": np.asarray(inputs, np.int32),
            "outputs": np.asarray(outputs, np.int32),
            "operators": self._operators,
            "name": "main",
        }
        model: Record = {
            "version": 3,
            "operator_codes": self._codes,
            "subgraphs": [subgraph, *filling],
            "description": self._description,
            "buffers": self._buffers,
            "metadata": self._metadata or None,
        }
        return write(model, SCHEMA)

    def _filling(self) -> list[Record]:
        """Add the CALL_ONCE, and return the subgraph that it executes."""
        main, self._tensors, self._operators = (self._tensors, self._operators), [], []
        for variable, contents in self._initial:
            handle = self.resource(variable)
            self._tensors.append(contents)
            options = {"shared_name": variable}
            self.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", options))
            self.operator("ASSIGN_VARIABLE", [handle, handle + 1], [],
                          ("AssignVariableOptions", {}))  # fmt: skip
        empty = np.zeros(0, np.int32)
        filling: Record = {
            "tensors": self._tensors,
            "inputs": empty,
            "outputs": empty,
            "operators": self._operators,
            "name": "filling",
        }
        self._tensors, self._operators = [], []
        self.operator("CALL_ONCE", [], [], ("CallOnceOptions", {"init_subgraph_index": 1}))
        (call,), self._tensors = self._operators, main[0]
        self._operators = [call, *main[1]]
        return [filling]

    def _buffer(self, contents: bytes) -> int:
        self._buffers.append({"data": np.frombuffer(contents, np.uint8)})
        return len(self._buffers) - 1

    def _code(self, kind: str, version: int) -> int:
        builtin = BuiltinOperator.__members__.get(kind, BuiltinOperator.CUSTOM)
        code: Record = {
            "deprecated_builtin_code": min(int(builtin), OLD_CODE_LIMIT),
            "builtin_code": int(builtin),
            "version": version,
        }
        if builtin is BuiltinOperator.CUSTOM:
            code["custom_code"] = kind
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)
