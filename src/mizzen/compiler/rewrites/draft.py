"""A TFLite network while it is rewritten: operators that hold their tensors, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Member, Record, write
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.model import ABSENT
from mizzen.package.tflite.builder import OLD_CODE_LIMIT, TYPES

Array = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class Wire:
    """A tensor: a constant if it has `values`; `record` are the other fields of the file."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    values: Array | None
    record: Record = field(repr=False)

    @property
    def scales(self) -> Array:
        """Scales of its quantisation; none where it is not quantised."""
        return self._quantization("scale", np.float32)

    @property
    def zero_points(self) -> Array:
        """Zero points of its quantisation."""
        return self._quantization("zero_point", np.int64)

    def _quantization(self, name: str, dtype: npt.DTypeLike) -> Array:
        quantization = self.record["quantization"]
        numbers = None if quantization is None else quantization[name]
        return np.zeros(0, dtype) if numbers is None else np.asarray(numbers)

    @property
    def channels(self) -> int:
        """Its last extent; a number has one."""
        return self.shape[-1] if self.shape else 1


@dataclass(slots=True, eq=False)
class Step:
    """An operator.

    source  index in the user's network of the operator that it is a part of
    table   name of its options, `fields` what they hold
    """

    kind: str
    source: int
    inputs: list[Wire | None]
    outputs: list[Wire]
    table: str
    fields: Record
    record: Record = field(repr=False)

    @property
    def data(self) -> Wire:
        """Its first input."""
        wire = self.inputs[0]
        assert wire is not None, "the front-end checks that it is there"
        return wire

    @property
    def result(self) -> Wire:
        """Its first output."""
        return self.outputs[0]


class Draft:
    """A network under change.

    A rewrite changes `steps` and their wires; `inputs` and `outputs` stay as they are.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        main = model.main
        tensors: list[Record] = model.record["subgraphs"][0]["tensors"]
        self._wires = [
            Wire(tensor.name, tensor.shape, tensor.type, tensor.values, record)
            for tensor, record in zip(main.tensors, tensors, strict=True)
        ]
        self.inputs = [self._wires[index] for index in main.inputs]
        self.outputs = [self._wires[index] for index in main.outputs]
        records: list[Record] = model.record["subgraphs"][0]["operators"]
        self.steps = [self._step(index, record) for index, record in enumerate(records)]
        self._names = {tensor.name for tensor in main.tensors}

    def _step(self, index: int, record: Record) -> Step:
        operator = self._model.main.operators[index]
        options: Member | None = record["builtin_options"]
        inputs = [None if place == ABSENT else self._wires[place] for place in operator.inputs]
        outputs = [self._wires[place] for place in operator.outputs]
        table, fields = (options.table, dict(options.fields)) if options else ("", {})
        return Step(operator.kind, index, inputs, outputs, table, fields, record)

    @property
    def model(self) -> Model:
        """The network as it was."""
        return self._model

    def users(self, wire: Wire) -> list[Step]:
        """Return the operators that take a tensor."""
        return [step for step in self.steps if wire in step.inputs]

    def maker(self, wire: Wire) -> Step | None:
        """Return the operator that gives a tensor."""
        return next((step for step in self.steps if wire in step.outputs), None)

    def only_user(self, wire: Wire) -> Step | None:
        """Return the operator that takes a tensor, if there is one and nothing else takes it."""
        users = self.users(wire)
        return users[0] if len(users) == 1 and wire not in self.outputs else None

    def like(self, wire: Wire, name: str, shape: Sequence[int]) -> Wire:
        """Make a tensor of another shape, quantised like one."""
        return Wire(self._new(f"{wire.name}/{name}"), tuple(shape), wire.type, None, wire.record)

    def constant(
        self, wire: Wire, values: Array, scales: Array | None = None, axis: int = 0
    ) -> Wire:
        """Make a constant in the place of one, of other values, with its quantisation or another.

        axis  that several scales are for
        """
        record = wire.record
        quantization = record["quantization"]
        if quantization is not None and scales is not None:
            zeros = np.zeros(scales.size, np.int64)
            changes = {"scale": scales, "zero_point": zeros, "quantized_dimension": axis}
            record = {**record, "quantization": {**quantization, **changes}}
            record["quantization"] |= {"min": None, "max": None}
        return Wire(self._new(wire.name), values.shape, wire.type, values, record)

    def numbers(self, name: str, values: Sequence[int]) -> Wire:
        """Make a constant of 32-bit integers, as shapes and permutations are given."""
        array = np.asarray(values, np.int32)
        return Wire(self._new(name), array.shape, TYPES[array.dtype], array, dict(_PLAIN))

    def _new(self, name: str) -> str:
        """Return a name that no tensor has: compilers know them by their names."""
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}-{number}"
        self._names.add(unique)
        return unique

    def view(self, source: int, data: Wire, result: Wire) -> Step:
        """Make a RESHAPE of one tensor to another, for an operator of the user's."""
        shape = self.numbers(f"{result.name}/shape", result.shape)
        options = {"new_shape": np.asarray(result.shape, np.int32)}
        return Step("RESHAPE", source, [data, shape], [result], "ReshapeOptions", options, {})

    def transposed(self, source: int, data: Wire, result: Wire, order: Sequence[int]) -> Step:
        """Make a TRANSPOSE of one tensor to another, for an operator of the user's."""
        axes = self.numbers(f"{result.name}/order", order)
        return Step("TRANSPOSE", source, [data, axes], [result], "TransposeOptions", {}, {})

    def before(self, step: Step, *added: Step) -> None:
        """Put operators before one."""
        place = self.steps.index(step)
        self.steps[place:place] = added

    def after(self, step: Step, *added: Step) -> None:
        """Put operators after one."""
        place = self.steps.index(step) + 1
        self.steps[place:place] = added

    @property
    def sources(self) -> tuple[int, ...]:
        """For each operator, that of the user's network which it is a part of."""
        return tuple(step.source for step in self.steps)

    def file(self) -> bytes:
        """Return the network's file."""
        return write(self._record(), SCHEMA)

    def _record(self) -> Record:
        record = self._model.record
        wires = list(dict.fromkeys(self._used()))
        places = {wire: place for place, wire in enumerate(wires)}
        buffers: list[Record] = [{"data": None}]
        codes: list[Record] = list(record["operator_codes"])
        main = {
            **record["subgraphs"][0],
            "tensors": [_tensor(wire, buffers) for wire in wires],
            "operators": [_operator(step, places, codes) for step in self.steps],
            "inputs": _indices(self.inputs, places),
            "outputs": _indices(self.outputs, places),
        }
        metadata: list[Record] = record["metadata"] or []
        kept = [_moved(entry, record["buffers"], buffers) for entry in metadata]
        return {
            **record,
            "subgraphs": [main],
            "buffers": buffers,
            "operator_codes": codes,
            "metadata": kept or None,
            "metadata_buffer": None,
            "signature_defs": None,
        }

    def _used(self) -> Iterator[Wire]:
        yield from self.inputs
        for step in self.steps:
            yield from (wire for wire in step.inputs if wire is not None)
            yield from step.outputs
        yield from self.outputs


_PLAIN: Record = {"is_variable": False, "quantization": None}


def _tensor(wire: Wire, buffers: list[Record]) -> Record:
    buffer = 0
    if wire.values is not None:
        buffer = len(buffers)
        data = np.frombuffer(np.ascontiguousarray(wire.values).tobytes(), np.uint8)
        buffers.append({"data": data})
    shape = np.asarray(wire.shape, np.int32)
    known: Array | None = wire.record.get("shape_signature")
    if known is not None and (known.size != shape.size or np.any((known != shape) & (known != -1))):
        known = None
    return {
        **wire.record,
        "name": wire.name,
        "shape": shape,
        "type": int(wire.type),
        "buffer": buffer,
        "shape_signature": known,
    }


def _operator(step: Step, places: dict[Wire, int], codes: list[Record]) -> Record:
    return {
        **step.record,
        "opcode_index": _code(step, codes),
        "inputs": _indices(step.inputs, places),
        "outputs": _indices(step.outputs, places),
        "builtin_options": Member(step.table, step.fields) if step.table else None,
    }


def _code(step: Step, codes: list[Record]) -> int:
    """Return the operator's own code while it is of its type, else one that may be new."""
    number = int(BuiltinOperator[step.kind]) if step.kind in BuiltinOperator.__members__ else None
    own: int | None = step.record.get("opcode_index")
    if own is not None and (number is None or _number(codes[own]) == number):
        return int(own)
    assert number is not None, "custom operators stay as they are"
    for place, code in enumerate(codes):
        if _number(code) == number:
            return place
    old = min(number, OLD_CODE_LIMIT)
    codes.append({"deprecated_builtin_code": old, "builtin_code": number, "version": 1})
    return len(codes) - 1


def _number(code: Record) -> int:
    return max(int(code["deprecated_builtin_code"]), int(code["builtin_code"]))


def _indices(wires: Sequence[Wire | None], places: dict[Wire, int]) -> Array:
    return np.asarray([ABSENT if wire is None else places[wire] for wire in wires], np.int32)


def _moved(entry: Record, contents: Sequence[Record], buffers: list[Record]) -> Record:
    buffers.append({"data": contents[int(entry["buffer"])]["data"]})
    return {**entry, "buffer": len(buffers) - 1}
