"""Read a TFLite file into typed data, checking what the schema cannot say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType
from mizzen.frontends.foreign import not_read
from mizzen.frontends.tflite.least_inputs import LEAST_INPUTS
from mizzen.frontends.tflite.model import (
    ABSENT,
    Model,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
)
from mizzen.frontends.tflite.stored import WIDENED, Moving, dense, moved
from mizzen.frontends.tflite.subgraphs import CALLS, require_no_recursion

MAX_TENSOR_BYTES = 1 << 30
"""More than the memory of any system around an NPU; a larger tensor is a damaged one."""

MAX_RANK = 8
"""Most dimensions of a tensor that any operator takes."""

INLINE_OFFSETS = (0, 1)
"""Offsets of buffers that lie in the table itself, not after it in the file."""

MOST_DENSE_BYTES = 1 << 27
"""What the sparse and the packed constants of a file may take as operators take them: more than
any flash beside an NPU. A small file could ask for any amount."""

QUANTIZED = {TensorType.INT8, TensorType.UINT8, TensorType.INT16}
"""Types whose numbers stand for others, by a scale and a zero."""

LEAST_ZERO, MOST_ZERO = -(1 << 15), (1 << 15) - 1
"""Kernels subtract a zero in 32 bits, also one that no number of the type equals."""

Bytes = npt.NDArray[np.uint8]
EnumMember = TypeVar("EnumMember", bound=IntEnum)


MemoryInputs = Callable[[str], int]
"""How many of a custom operator's first inputs are memory that it works in, by its code."""


def no_memory(code: str) -> int:
    """Take every input of a custom operator for a tensor of the network."""
    return 0


def read(data: bytes, name: str, memory_inputs: MemoryInputs = no_memory) -> Model:
    """Read a file; `name` is what diagnostics call it.

    Contents stay views of `data`. E101 and E102 for another or a damaged file, E103 for an index
    out of range, E104 for a number the schema does not have, E105 for contents that do not fit
    their tensor, E106 for an impossible shape or quantisation, E140 for sparse contents that do not
    fit theirs, E108 for a tensor that is read before it is computed, E133 for state that is given
    as a result, E134 for subgraphs that execute themselves.
    """
    if data[4:8] != SCHEMA.identifier:
        came, wanted = data[4:8].decode("latin-1"), SCHEMA.identifier.decode()
        raise not_read(
            data, name, f"{name} must be a TFLite file: bytes 4..8 must be {wanted!r}, not {came!r}"
        )
    model = _Reading(data, name, memory_inputs).model()
    for subgraph in model.subgraphs:
        _require_state_apart(model, subgraph)
        _require_order(model, subgraph, memory_inputs)
    require_no_recursion(model)
    return model


class _Reading:
    def __init__(self, data: bytes, name: str, memory_inputs: MemoryInputs) -> None:
        self._file = data
        self._name = name
        self._record = read_file(data, SCHEMA, name)
        codes = (record["custom_code"] or "" for record in self._record["operator_codes"] or ())
        self._is_compiled = any(memory_inputs(code) for code in codes)
        self._buffers = [self._contents(index, record) for index, record in self._rows("buffers")]
        self._record["buffers"] = [{"data": contents} for contents in self._buffers]
        self._codes = [self._code(index, record) for index, record in self._rows("operator_codes")]
        self._replaced: set[int] = set()
        self._made_bytes = 0

    def model(self) -> Model:
        subgraphs = tuple(
            self._subgraph(index, record) for index, record in self._rows("subgraphs")
        )
        if not subgraphs:
            raise self._wrong("E103", "it must have a subgraph, and has none")
        self._require_called(subgraphs)
        metadata = self._metadata()
        self._drop_stored(subgraphs)
        return Model(
            name=self._name,
            description=self._record["description"] or "",
            subgraphs=subgraphs,
            metadata=metadata,
            record=self._record,
            is_as_stored=not self._replaced,
            signatures=tuple(
                self._signature(index, record, subgraphs)
                for index, record in self._rows("signature_defs")
            ),
        )

    def _drop_stored(self, subgraphs: Sequence[Subgraph]) -> None:
        """Empty the buffers of contents that are read in another form, unless others use them."""
        records = [*(self._record["metadata"] or ())]
        for subgraph in subgraphs:
            records += self._record["subgraphs"][subgraph.index]["tensors"] or ()
        used = {int(record["buffer"]) for record in records}
        for index in self._replaced - used:
            self._record["buffers"][index] = {"data": None}

    def _require_called(self, subgraphs: Sequence[Subgraph]) -> None:
        """Refuse operators that execute a subgraph which there is not."""
        for subgraph in subgraphs:
            for operator in subgraph.operators:
                path = f"subgraphs[{subgraph.index}].operators[{operator.index}]"
                for option in () if operator.custom else CALLS.get(operator.kind, ()):
                    if option not in operator.options:
                        raise self._wrong("E103", f"{path} must name a subgraph, and does not")
                    self._index(operator.options[option], len(subgraphs), f"{path}.{option}")

    def _signature(self, index: int, record: Record, subgraphs: Sequence[Subgraph]) -> Signature:
        path = f"signature_defs[{index}]"
        place = self._index(record["subgraph_index"], len(subgraphs), f"{path}.subgraph_index")

        def tensors(field: str, known: Sequence[int]) -> dict[str, int]:
            entries: list[Record] = record[field] or []
            for other in entries:
                if other["tensor_index"] not in known:
                    message = f"{path}.{field} must be {field} of subgraph {place}"
                    raise self._wrong("E103", f"{message}, not tensor {other['tensor_index']}")
            return {other["name"] or "": int(other["tensor_index"]) for other in entries}

        main = subgraphs[place]
        inputs, outputs = tensors("inputs", main.inputs), tensors("outputs", main.outputs)
        return Signature(record["signature_key"] or "", place, inputs, outputs)

    def _rows(self, field: str) -> list[tuple[int, Record]]:
        return list(enumerate(self._record[field] or ()))

    def _contents(self, index: int, buffer: Record) -> Bytes | None:
        """Return the contents of a buffer; those of large models lie after the tables."""
        offset, size = buffer["offset"], buffer["size"]
        if offset not in INLINE_OFFSETS:
            return self._behind(f"buffers[{index}]", offset, size)
        data: Bytes | None = buffer["data"]
        return data if data is not None and data.size else None

    def _behind(self, path: str, offset: int, size: int) -> Bytes:
        if offset + size > len(self._file):
            raise self._wrong(
                "E103",
                f"{path} must lie inside the {len(self._file)} bytes of the file, "
                f"not at {offset}..{offset + size}",
            )
        return np.frombuffer(self._file, np.uint8, size, offset)

    def _code(self, index: int, code: Record) -> tuple[str, bool, int]:
        """Return an operator code's name, whether it is a custom operator's, and the version.

        Codes up to 127 are in the older 8-bit field, and the larger of both holds.
        """
        number = max(code["deprecated_builtin_code"], code["builtin_code"])
        path = f"operator_codes[{index}]"
        if number == BuiltinOperator.CUSTOM:
            if not code["custom_code"]:
                raise self._wrong("E104", f"{path} must name its custom operator, and does not")
            return code["custom_code"], True, code["version"]
        kind = _member(BuiltinOperator, number)
        if kind is None:
            last = max(BuiltinOperator)
            raise self._wrong("E104", f"{path} must be a builtin operator 0..{last}, not {number}")
        return kind.name, False, code["version"]

    def _metadata(self) -> dict[str, Bytes]:
        metadata: dict[str, Bytes] = {}
        for index, record in self._rows("metadata"):
            buffer = self._index(record["buffer"], len(self._buffers), f"metadata[{index}].buffer")
            contents = self._buffers[buffer]
            metadata[record["name"] or ""] = _bytes(contents)
        return metadata

    def _subgraph(self, index: int, record: Record) -> Subgraph:
        path = f"subgraphs[{index}]"
        self._widen_moved(record)
        tensors = tuple(
            self._tensor(number, tensor, f"{path}.tensors[{number}]")
            for number, tensor in enumerate(record["tensors"] or ())
        )
        operators = tuple(
            self._operator(number, operator, len(tensors), f"{path}.operators[{number}]")
            for number, operator in enumerate(record["operators"] or ())
        )
        return Subgraph(
            index=index,
            name=record["name"] or "",
            tensors=tensors,
            operators=operators,
            inputs=self._indices(record["inputs"], len(tensors), f"{path}.inputs"),
            outputs=self._indices(record["outputs"], len(tensors), f"{path}.outputs"),
        )

    def _tensor(self, index: int, record: Record, path: str) -> Tensor:
        type_ = _member(TensorType, record["type"])
        if type_ is None:
            last = max(TensorType)
            raise self._wrong("E104", f"{path}.type must be in 0..{last}, not {record['type']}")
        buffer = self._index(record["buffer"], len(self._buffers), f"{path}.buffer")
        quantization = self._quantization(record["quantization"], type_, path)
        buffer = self._dense(record, buffer, path)
        tensor = Tensor(
            index=index,
            name=record["name"] or "",
            shape=_integers(record["shape"]),
            shape_signature=_integers(record["shape_signature"]) or None,
            type=TensorType(record["type"]),
            quantization=quantization,
            data=None,
            variable=record["is_variable"],
        )
        self._require_shape(tensor, path)
        tensor = replace(tensor, data=self._held(tensor, self._buffers[buffer]))
        self._require_contents(tensor, path)
        return tensor

    def _widen_moved(self, subgraph: Record) -> None:
        """Give what operators move of packed constants the type that these have once read."""
        tensors: list[Record] = subgraph["tensors"] or []
        packed = {at for at, record in enumerate(tensors) if record["type"] in WIDENED}
        if packed:
            held = range(len(self._buffers))
            constants = {
                at
                for at in packed
                if tensors[at]["buffer"] in held
                and self._buffers[tensors[at]["buffer"]] is not None
            }
            operators: list[Record] = subgraph["operators"] or []
            for at in moved(tensors, constants, map(self._moving, operators)):
                tensors[at]["type"] = int(WIDENED[tensors[at]["type"]])

    def _moving(self, record: Record) -> Moving:
        code: int = record["opcode_index"]
        kind = self._codes[code][0] if code < len(self._codes) else ""
        return kind, _integers(record["inputs"]), _integers(record["outputs"])

    def _dense(self, record: Record, buffer: int, path: str) -> int:
        """Bring a constant into the form that operators take; return its buffer then."""
        place = f'{self._name}: {path} "{record["name"] or ""}"'
        changed = dense(record, self._buffers[buffer], place, MOST_DENSE_BYTES - self._made_bytes)
        if changed is None:
            return buffer
        changes, contents = changed
        self._made_bytes += contents.nbytes
        self._replaced.add(buffer)
        record.update(changes, buffer=len(self._buffers))
        self._buffers.append(contents if contents.size else None)
        self._record["buffers"].append({"data": self._buffers[-1]})
        return len(self._buffers) - 1

    def _require_shape(self, tensor: Tensor, path: str) -> None:
        shape = list(tensor.shape)
        if len(shape) > MAX_RANK:
            message = f"{path}.shape must have at most {MAX_RANK} extents, not {len(shape)}"
            raise self._wrong("E106", message)
        size = tensor.size_bytes or math.prod(max(1, extent) for extent in shape)
        if min(shape, default=0) < 0 or size > MAX_TENSOR_BYTES:
            message = f"{path}.shape must be positive and take at most {MAX_TENSOR_BYTES} bytes"
            raise self._wrong("E106", f"{message}, not {shape} of {tensor.type.name}")

    def _held(
        self, tensor: Tensor, contents: npt.NDArray[np.uint8] | None
    ) -> npt.NDArray[np.uint8] | None:
        """Return a tensor's contents: of a compiled network the first, as its runtimes read them.

        Vela's first core writes shapes of 32 bits with 64.
        """
        size = tensor.size_bytes
        if contents is None or size is None or not self._is_compiled:
            return contents
        return contents[:size]

    def _require_contents(self, tensor: Tensor, path: str) -> None:
        size = tensor.size_bytes
        if tensor.data is None or size is None:
            return
        if tensor.data.nbytes != size:
            raise self._wrong(
                "E105",
                f'{path} "{tensor.name}" must have {size} bytes of contents for '
                f"{tensor.type.name} {list(tensor.shape)}, not {tensor.data.nbytes}",
            )

    def _quantization(
        self, record: Record | None, type_: TensorType, path: str
    ) -> Quantization | None:
        if record is None or record["scale"] is None or not record["scale"].size:
            return None
        scale = tuple(map(float, record["scale"].tolist()))
        zero_point = _integers(record["zero_point"]) or (0,) * len(scale)
        if len(zero_point) not in {1, len(scale)}:
            message = f"{path}.quantization must have one zero point or {len(scale)}"
            raise self._wrong("E106", f"{message}, not {len(zero_point)}")
        zero_point *= len(scale) // len(zero_point)
        self._require_zero_points(zero_point, type_, path)
        return Quantization(scale, zero_point, record["quantized_dimension"])

    def _require_zero_points(
        self, zero_points: tuple[int, ...], type_: TensorType, path: str
    ) -> None:
        for number in zero_points if type_ in QUANTIZED else ():
            if not LEAST_ZERO <= number <= MOST_ZERO:
                raise self._wrong(
                    "E106",
                    f"{path}.quantization must have zero points in {LEAST_ZERO}..{MOST_ZERO} for "
                    f"{type_.name}, not {number}",
                )

    def _operator(self, index: int, record: Record, tensors: int, path: str) -> Operator:
        code = self._index(record["opcode_index"], len(self._codes), f"{path}.opcode_index")
        record.update(self._custom_options(record, path))
        kind, custom, version = self._codes[code]
        least, inputs = LEAST_INPUTS.get(kind, 0), _integers(record["inputs"])
        if len(inputs) < least or ABSENT in inputs[:least]:
            message = f"{path}.inputs must be at least {least} for {kind}, not {list(inputs)}"
            raise self._wrong("E104", message)
        options: Member | None = record["builtin_options"] or record["builtin_options2"]
        return Operator(
            index=index,
            kind=kind,
            custom=custom,
            version=version,
            inputs=self._indices(record["inputs"], tensors, f"{path}.inputs", ABSENT),
            outputs=self._indices(record["outputs"], tensors, f"{path}.outputs"),
            options={} if options is None else options.fields,
            custom_options=_bytes(record["custom_options"]),
            intermediates=self._indices(
                record["intermediates"], tensors, f"{path}.intermediates", ABSENT
            ),
        )

    def _custom_options(self, record: Record, path: str) -> Record:
        """Return the fields of custom options that lie after the tables as if they lay in them."""
        offset, size = record["large_custom_options_offset"], record["large_custom_options_size"]
        if offset in INLINE_OFFSETS:
            return {}
        options = self._behind(f"{path}.custom_options", offset, size)
        return {
            "custom_options": options,
            "large_custom_options_offset": 0,
            "large_custom_options_size": 0,
        }

    def _indices(
        self, values: npt.NDArray[Any] | None, count: int, path: str, lowest: int = 0
    ) -> tuple[int, ...]:
        return tuple(
            self._index(index, count, f"{path}[{position}]", lowest)
            for position, index in enumerate(_integers(values))
        )

    def _index(self, value: int, count: int, path: str, lowest: int = 0) -> int:
        if not lowest <= value < count:
            message = f"{path} must be in {lowest}..{count - 1}, not {value}"
            raise self._wrong("E103", message if count else f"{path} is {value}, of none at all")
        return value

    def _wrong(self, code: str, message: str) -> MizzenError:
        return fail(
            code,
            f"{self._name} must be a valid TFLite network: {message}",
            help="get the file again, or convert the network again",
        )


def _bytes(values: Bytes | None) -> Bytes:
    return np.zeros(0, np.uint8) if values is None else values


def _integers(values: npt.NDArray[Any] | Sequence[int] | None) -> tuple[int, ...]:
    return () if values is None else tuple(map(int, values))


def _member(kind: type[EnumMember], number: int) -> EnumMember | None:
    try:
        return kind(number)
    except ValueError:
        return None


def _require_order(model: Model, subgraph: Subgraph, memory_inputs: MemoryInputs) -> None:
    """Refuse a subgraph that reads, or gives, a tensor that nothing has made, with E108.

    A tensor comes from outside, has contents, keeps state, has no elements, or is computed by an
    earlier operator. Memory that an operator works in is not a tensor in this sense.
    """
    known = set(subgraph.inputs)
    known.update(tensor.index for tensor in subgraph.tensors if _exists_from_the_start(tensor))
    for operator in subgraph.operators:
        memory = memory_inputs(operator.kind) if operator.custom else 0
        for tensor in subgraph.present(operator.inputs[memory:]):
            if tensor.index not in known:
                raise _unknown(tensor, model.origin(operator, subgraph))
        known.update(operator.outputs)
    for tensor in subgraph.present(subgraph.outputs):
        if tensor.index not in known:
            raise _unknown(tensor, Origin(model.name))


def _require_state_apart(model: Model, subgraph: Subgraph) -> None:
    """Refuse state that an operator gives as a result, or a subgraph, with E133.

    Operators keep state: they take it as an input, and change it there.
    """
    kept = {each.index for each in subgraph.tensors if each.variable}
    givers = [
        (model.origin(operator, subgraph), operator.outputs)
        for operator in subgraph.operators
        if not operator.custom
    ]
    for origin, outputs in (*givers, (Origin(model.name), subgraph.outputs)):
        for tensor in subgraph.present(outputs):
            if tensor.index in kept:
                raise fail(
                    "E133",
                    f'tensor {tensor.index} "{tensor.name}" must be state of an operator or a '
                    "result, and is both",
                    origin=origin,
                    help="give the result in a tensor of its own; convert the network again",
                )


def _exists_from_the_start(tensor: Tensor) -> bool:
    return tensor.data is not None or tensor.variable or not tensor.elements


def _unknown(tensor: Tensor, origin: Origin) -> MizzenError:
    return fail(
        "E108",
        f'tensor {tensor.index} "{tensor.name}" must be an input, a constant, state, or computed '
        "before it is read, and is none of these",
        origin=origin,
        help="get the file again, or convert the network again",
    )


INTEGERS = {
    TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
    TensorType.UINT16, TensorType.UINT32, TensorType.UINT64, TensorType.INT4,
}  # fmt: skip
FLOATS = {TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64}

CONVERSIONS = {"QUANTIZE", "DEQUANTIZE", "CAST"}
"""Operators between both kinds of numbers: no evidence that a network computes with one of them."""


def require_quantized(model: Model) -> None:
    """Refuse a network that computes with floats only, with E107 naming the first float tensor.

    Networks that compute with floats here and there pass: those operators run on the CPU. Weights
    do not count, so that a network with integer weights and float activations is refused.
    """
    first: tuple[Operator, Tensor] | None = None
    for operator, tensor in _activations(model):
        if tensor.type in INTEGERS:
            return
        if first is None and tensor.type in FLOATS:
            first = operator, tensor
    if first is None:
        return
    operator, tensor = first
    place = model.origin(operator)
    raise fail(
        "E107",
        f'the network must be quantised to integers, but tensor {tensor.index} "{tensor.name}" is '
        f"{tensor.type.name}, like everything that it computes",
        origin=Origin(place.model, place.operator, place.kind, place.name),
        help="quantise it with some dozens of real inputs: `mizzen quantize MODEL --data PATH`, "
        "or `mizzen compile MODEL --calibrate PATH`",
    )


def _activations(model: Model) -> Iterator[tuple[Operator, Tensor]]:
    """Return the inputs of operators, other than constants, in execution order."""
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if operator.kind not in CONVERSIONS:
                for tensor in subgraph.present((*operator.inputs, *operator.outputs)):
                    if tensor.data is None:
                        yield operator, tensor
