"""The state of lowering one network: the values of its tensors, and what stays with the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, Origin
from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.tflite.model import ABSENT, Model, Operator, Tensor
from mizzen.frontends.tflite.tflite_tensors import DTYPES, Array, quantization_of, to_graph, type_of
from mizzen.frontends.tflite.variables import held_unassigned
from mizzen.graph import DType, Graph, Quantization, Value, integer_range
from mizzen.ops import Builder
from mizzen.ops.control_flow import Custom

Result = Value | tuple[Value, ...]

INTEGERS = frozenset({FileType.BOOL, FileType.INT8, FileType.UINT8, FileType.INT16, FileType.INT32})
"""Types of tensors that are lowered; TOSA has 8 and 16 bits, 32 for sums and indices, and bool."""

SEVERAL_TYPES = frozenset({
    "ARG_MAX", "CAST", "EQUAL", "GATHER", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
    "NOT_EQUAL", "QUANTIZE", "SCATTER_ND", "SELECT", "SELECT_V2", "SHAPE",
})  # fmt: skip
"""Operators whose tensors may be of several types."""

SAID = {"RESHAPE": (1,), "TRANSPOSE_CONV": (0,)}
"""Places of inputs that only say what the file says of the output."""

DOMAIN = "tflite"
"""Domain of the CUSTOM operations that are operators of TFLite."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a CUSTOM operation says of itself: which operator it is, and why it has no other form.

    inputs, outputs  the tensors that its operands and results are, by index
    options          what its kernel computes with, for those that a target may have a form of
    """

    operator: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    reason: str
    help: str | None
    options: dict[str, Any]


def note_of(operation: Custom) -> Note:
    """Read what a CUSTOM operation of this front-end says of itself."""
    parts: dict[str, Any] = json.loads(operation.implementation_attrs)
    parts["inputs"], parts["outputs"] = tuple(parts["inputs"]), tuple(parts["outputs"])
    return Note(**parts)


def _written(note: Note) -> bytes:
    parts = {field: getattr(note, field) for field in Note.__slots__}
    return json.dumps(parts, sort_keys=True).encode()


class Context:
    """What is known while a network is lowered."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tensors = model.main.tensors
        self.graph = Graph(model.name)
        self.value_of: dict[int, Value] = {}
        self._given = frozenset(model.main.inputs)
        self._taken: set[Value] = set()
        """Values that are those of tensors already."""

    def add_inputs(self) -> None:
        """Add the network's inputs."""
        for index in self.model.main.inputs:
            tensor = self.tensors[index]
            type = type_of(tensor, Origin(self.model.name))
            self.value_of[index] = self.graph.add_input(type, tensor.name)

    def value(self, index: int, builder: Builder) -> Value:
        """Return the value of a tensor; constants are added where they are first needed."""
        value = self.value_of.get(index)
        if value is None:
            tensor = self.tensors[index]
            value = constant_value(builder, tensor, contents(tensor), quantization_of(tensor))
            self.value_of[index] = value
            self._taken.add(value)
        return value

    def define(self, index: int, value: Value) -> None:
        """Make a value that of a tensor that nothing else gives."""
        value.name = self.tensors[index].name
        self.value_of[index] = value
        self._taken.add(value)

    def lower(self, operator: Operator) -> None:
        """Add an operator's operations, or one that the CPU computes."""
        origin = self.model.origin(operator)
        builder = Builder(self.graph, origin, operator.index)
        before, known = len(self.graph), dict(self.value_of)
        try:
            self._define(operator, builder, self._lowered(operator, builder))
        except (RefusedError, MizzenError) as error:
            for operation in reversed(tuple(self.graph)[before:]):
                self.graph.erase(operation)
            self.value_of = known
            self._custom(operator, builder, error)

    def _lowered(self, operator: Operator, builder: Builder) -> tuple[Value, ...]:
        lowering = None if operator.custom else LOWERINGS.get(operator.kind)
        if lowering is None:
            raise RefusedError(f"TOSA has no form of {operator.kind} that is known to be exact")
        self._need_integers(operator)
        result = lowering(Call(self, operator, builder))
        return result if isinstance(result, tuple) else (result,)

    def _need_integers(self, operator: Operator) -> None:
        """Refuse an operator on other numbers, or on nothing: TOSA has no empty tensors."""
        types: set[FileType] = set()
        said = SAID.get(operator.kind, ())
        given = (index for place, index in enumerate(operator.inputs) if place not in said)
        taken = [index for index in given if index in self.value_of]
        for index in (*taken, *operator.outputs):
            tensor = self.tensors[index]
            if not tensor.elements:
                raise RefusedError(f'its tensor "{tensor.name}" has no elements')
            if tensor.type not in INTEGERS:
                raise RefusedError(f'its tensor "{tensor.name}" is {tensor.type.name}')
            types.add(tensor.type)
        if len(types) > 1 and operator.kind not in SEVERAL_TYPES:
            names = " and ".join(sorted(type.name for type in types))
            raise RefusedError(f"its tensors are {names}")

    def _define(self, operator: Operator, b: Builder, results: tuple[Value, ...]) -> None:
        """Make values those of the operator's outputs; each is an operation's of its own."""
        if len(results) != len(operator.outputs):
            count = len(operator.outputs)
            raise RefusedError(f"it must have {len(results)} outputs, and has {count}")
        for index, result in zip(operator.outputs, results, strict=True):
            tensor, value = self.tensors[index], result
            type = type_of(tensor, b.origin)
            if value.type.with_dtype(value.dtype) != type.with_dtype(type.dtype):
                raise RefusedError(f'its output "{tensor.name}" has not the shape that follows')
            producer = value.producer
            if producer is None or producer.group != operator.index or value in self._taken:
                value = b("IDENTITY", value)
            value.type, value.name = type, tensor.name
            self.value_of[index] = value
            self._taken.add(value)

    def _custom(self, operator: Operator, b: Builder, error: RefusedError | MizzenError) -> None:
        reason, help = str(error), None
        if isinstance(error, RefusedError):
            reason, help = error.reason, error.help
        else:
            reason = error.diagnostic.message
        outputs = [index for index in operator.outputs if not self.tensors[index].variable]
        inputs = [index for index in dict.fromkeys(operator.inputs) if self._is_operand(index)]
        options = self._described(operator, b)
        note = Note(operator.index, tuple(inputs), tuple(outputs), reason, help, options)
        results = b.custom(
            f"{DOMAIN}.{operator.kind}",
            [self.value(index, b) for index in inputs],
            [type_of(self.tensors[index], b.origin) for index in outputs],
            domain_name=DOMAIN,
            implementation_attrs=_written(note),
        )
        for index, value in zip(outputs, results, strict=True):
            value.name = self.tensors[index].name
            self.value_of[index] = value

    def _described(self, operator: Operator, b: Builder) -> dict[str, Any]:
        """Return the numbers that an operator's kernel computes with, if something says them."""
        description = None if operator.custom else DESCRIPTIONS.get(operator.kind)
        try:
            return {} if description is None else description(Call(self, operator, b))
        except RefusedError:
            return {}

    def _is_operand(self, index: int) -> bool:
        """Whether the CPU must be given a tensor: it has constants and state itself."""
        if index == ABSENT:
            return False
        tensor = self.tensors[index]
        kept = tensor.data is not None or not tensor.elements
        return not kept and (not tensor.variable or index in self._given)


def contents(tensor: Tensor) -> Array:
    """Return a constant's contents as TFLite has them; refuse packed ones and other tensors."""
    values = tensor.values
    if values is None:
        what = "packed" if tensor.data is not None else "no constant"
        raise RefusedError(f'its input "{tensor.name}" is {what}')
    return values


def constant_value(
    b: Builder, tensor: Tensor, values: Array, quantization: Quantization | None
) -> Value:
    """Add a constant of a tensor's type with some of its contents, or those in another shape."""
    value = b.graph.constant(
        to_graph(tensor, values),
        DTYPES[tensor.type],
        quantization=quantization,
        origin=b.origin,
        group=b.group,
    )
    value.name = tensor.name
    return value


class Call:
    """An operator that is being lowered."""

    def __init__(self, context: Context, operator: Operator, builder: Builder) -> None:
        self.operator = operator
        self.b = builder
        self._context = context

    def need(self, holds: bool, reason: str, help: str | None = None) -> None:
        """Refuse the operator unless a condition holds."""
        if not holds:
            raise RefusedError(reason, help)

    def option(self, name: str, default: Any = 0) -> Any:
        """Return an option; the schema's default where the file has none."""
        return self.operator.options.get(name, default)

    def has(self, index: int) -> bool:
        """Whether the operator has an input."""
        inputs = self.operator.inputs
        return index < len(inputs) and inputs[index] != ABSENT

    def input(self, index: int) -> Tensor:
        """Return the tensor that an input is."""
        self.need(self.has(index), f"it has no input {index}")
        return self._context.tensors[self.operator.inputs[index]]

    def output(self, index: int = 0) -> Tensor:
        """Return the tensor that an output is."""
        self.need(index < len(self.operator.outputs), f"it has no output {index}")
        return self._context.tensors[self.operator.outputs[index]]

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that the outputs are."""
        return tuple(self._context.tensors[index] for index in self.operator.outputs)

    def value(self, index: int = 0) -> Value:
        """Return the value of an input."""
        return self._context.value(self.input(index).index, self.b)

    def contents(self, index: int) -> Array:
        """Return the elements of an input that must be a constant, as TFLite has them."""
        return contents(self.input(index))

    def integers(self, index: int) -> tuple[int, ...]:
        """Return the elements of an input that must be a constant of integers."""
        values = self.contents(index)
        self.need(values.dtype.kind == "i", f"its input {index} has no integers")
        return tuple(values.reshape(-1).tolist())

    def integer(self, index: int) -> int:
        """Return the one element of an input that must be a constant integer."""
        values = self.integers(index)
        self.need(len(values) == 1, f"its input {index} is no single number")
        return values[0]

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front; refuse one that there is not."""
        self.need(-rank <= axis < rank, f"it works on axis {axis} of {rank}")
        return axis % rank

    def constant(
        self, index: int, shape: tuple[int, ...], quantization: Quantization | None
    ) -> Value:
        """Add a constant input in another shape, with the quantisation it has in that one."""
        tensor = self.input(index)
        return constant_value(self.b, tensor, self.contents(index).reshape(shape), quantization)

    def state(self, index: int) -> Value:
        """Return what an input that is a variable tensor holds: VARIABLE, VARIABLE_READ.

        It holds the number for zero at first. Ref: TFLite Micro, micro_interpreter_graph.cc,
        ResetVariableTensors.
        """
        tensor, b = self.input(index), self.b
        type, name = type_of(tensor, b.origin), _variable_name(tensor)
        initial = to_graph(tensor, held_unassigned(tensor))
        b.many("VARIABLE", name=name, type=type, initial=initial)
        return b("VARIABLE_READ", name=name, type=type)

    def keep(self, index: int, value: Value) -> None:
        """Let an input that is a variable tensor hold a value: RESHAPE, VARIABLE_WRITE."""
        tensor, b = self.input(index), self.b
        shaped = b("RESHAPE", value, b.shape(tensor.shape), quantization=quantization_of(tensor))
        b.many("VARIABLE_WRITE", shaped, name=_variable_name(tensor))

    def part(
        self, kind: str, value: Value, options: dict[str, Any], dtype: DType | None = None
    ) -> Value:
        """Add what another operator computes of one value, of the same type or `dtype`: CUSTOM."""
        note = Note(self.operator.index, (), (), "TOSA has no exact form of it", None, options)
        (result,) = self.b.custom(
            f"{DOMAIN}.{kind}",
            [value],
            [value.type.quantized(None).with_dtype(dtype or value.dtype)],
            domain_name=DOMAIN,
            implementation_attrs=_written(note),
        )
        return result

    def quantization(self, tensor: Tensor) -> Quantization:
        """Return the scale and zero point that a tensor must have, as one for all of it."""
        quantization = quantization_of(tensor)
        if quantization is None or quantization.axis is not None:
            raise RefusedError(f'tensor "{tensor.name}" must have one scale and one zero point')
        return quantization

    def need_types(self, *allowed: FileType, tensors: tuple[Tensor, ...] = ()) -> FileType:
        """Refuse the operator unless first input and output, and `tensors`, have one of types."""
        first = self.output().type
        for tensor in tensors or (self.input(0), self.output()):
            self.need(
                tensor.type is first and first in allowed,
                f'its tensor "{tensor.name}" is {tensor.type.name}, its output {first.name}',
            )
        return first


def _variable_name(tensor: Tensor) -> str:
    return f"{tensor.name}.{tensor.index}"


Lowering = Callable[[Call], Result]
LOWERINGS: dict[str, Lowering] = {}
"""Builtin operator to what lowers it."""


def lowers(*kinds: str) -> Callable[[Lowering], Lowering]:
    """Register what lowers operators."""

    def register(function: Lowering) -> Lowering:
        for kind in kinds:
            LOWERINGS[kind] = function
        return function

    return register


LOWERINGS_WITH_STATE: dict[str, Lowering] = {}
"""Builtin operator that keeps state to what lowers it where the graph may have variables."""


def lowers_with_state(*kinds: str) -> Callable[[Lowering], Lowering]:
    """Register what lowers operators whose state becomes variables of the graph."""

    def register(function: Lowering) -> Lowering:
        for kind in kinds:
            LOWERINGS_WITH_STATE[kind] = function
        return function

    return register


Description = Callable[[Call], dict[str, Any]]
DESCRIPTIONS: dict[str, Description] = {}
"""Builtin operator that TOSA has no form of to what says what its kernel computes with."""


def describes(kind: str) -> Callable[[Description], Description]:
    """Register what says what an operator's kernel computes with, as JSON has it."""

    def register(function: Description) -> Description:
        DESCRIPTIONS[kind] = function
        return function

    return register


def kept(value: Value) -> Quantization | None:
    """Return the quantisation that parts of a value have too, or the value in another shape."""
    quantization = value.quantization
    return None if quantization is None or quantization.axis is not None else quantization


def zero(b: Builder, dtype: DType, value: int = 0) -> Value:
    """Return a zero point as an operand; refuse one that TOSA does not allow the type."""
    low, high = integer_range(dtype) if dtype is DType.INT8 else (0, 0)
    if not low <= value <= high:
        raise RefusedError(f"a zero point of {value} is out of range for {dtype.value}")
    return b.constant(np.array([value]), dtype)


def no_shift(b: Builder) -> Value:
    """Return the shift of a MUL that does not shift."""
    return b.constant([0], DType.INT8)
