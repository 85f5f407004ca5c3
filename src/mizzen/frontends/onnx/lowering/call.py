"""A node on its way to operations of TOSA: its inputs by position, what they stand for, refusals.

`term` says what an input stands for, whatever that is; `real` wants integers with a scale;
`constant` and `array` want a constant. An operator that moves elements says how one tensor of the
graph is moved (`moved`), and the call does so to whatever the input stands for. One that puts
tensors together says how those of one scale are (`alike`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from mizzen.frontends.onnx.lowering.context import DEQUANTIZE_LINEAR, Context, Function
from mizzen.frontends.onnx.lowering.types import DTYPES, NUMBERS, offset_of, signed
from mizzen.frontends.onnx.lowering.types import SIGNED as SIGNED_TYPES
from mizzen.frontends.onnx.model import Array, Node
from mizzen.frontends.quantized.scales import as_target, clamped, typed
from mizzen.frontends.quantized.terms import (
    Constant,
    Integers,
    Pending,
    Plain,
    Quantized,
    Real,
    Target,
    Term,
    Wide,
)
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value

Move = Callable[[Value], Value]
"""Adds the operations that bring a tensor's elements elsewhere, or choose among them."""

QUANTIZE_BEFORE = "quantise the network's part before it (QuantizeLinear, DequantizeLinear)"

MOVED = (DType.BOOL, DType.INT8, DType.INT16, DType.INT32)
"""Types of which elements are moved and chosen: what NPUs have."""


class OnnxCall:
    """A node that is being lowered to integers."""

    def __init__(self, context: Context, node: Node) -> None:
        self.context = context
        self.node = node
        self.b = context.builder(node)

    @property
    def kind(self) -> str:
        """The type of the operator."""
        return self.node.kind

    @property
    def count(self) -> int:
        """How many inputs there are, those left out included."""
        return len(self.node.inputs)

    def given(self, index: int) -> bool:
        """Whether an input is there."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.shapes[0]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the results; of one that is left out, empty."""
        types = self.context.model.types
        return [types[name].shape if name else () for name in self.node.outputs]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type of the first result's elements, as ONNX has it."""
        return self.context.model.types[self.node.outputs[0]].dtype

    def is_used(self, index: int) -> bool:
        """Whether a result is given to the caller, or to another node."""
        name, model = self.node.outputs[index], self.context.model
        return name != "" and (
            name in model.outputs or any(name in node.inputs for node in model.nodes)
        )

    def shape_of(self, index: int) -> tuple[int, ...]:
        """The shape of an input."""
        return self.context.model.types[self.node.inputs[index]].shape

    def dtype_of(self, index: int) -> np.dtype[np.generic]:
        """The type of an input's elements, as ONNX has it."""
        return self.context.model.types[self.node.inputs[index]].dtype

    def need(self, holds: bool, reason: str, help: str | None = None) -> None:
        """Refuse the node unless a condition holds."""
        if not holds:
            raise RefusedError(reason, help)

    def number(self, name: str, default: float) -> float:
        """Return an attribute that is a number."""
        return float(self.node.attributes.get(name, default))

    def whole(self, name: str, default: int) -> int:
        """Return an attribute that is a whole number."""
        return int(self.node.attributes.get(name, default))

    def wholes(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """Return an attribute that is whole numbers."""
        return tuple(map(int, self.node.attributes.get(name, default)))

    def text(self, name: str, default: str) -> str:
        """Return an attribute that is text."""
        value = self.node.attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def axis(self, default: int, index: int = 0) -> int:
        """Return the attribute that is a dimension of an input, counted from the front."""
        rank = len(self.shape_of(index))
        axis = self.whole("axis", default)
        self.need(-rank <= axis < max(rank, 1), f"its input has no dimension {axis}")
        return axis % max(rank, 1)

    def term(self, index: int) -> Term:
        """What an input stands for; a computation that has no integers yet becomes part."""
        self.need(self.given(index), f"its input {index} is left out")
        name = self.node.inputs[index]
        term = self.context.term(name)
        producer = self.context.producer.get(name)
        if (
            isinstance(term, (Pending, Real))
            and producer is not None
            and producer.kind != DEQUANTIZE_LINEAR
        ):
            self.context.unite(self.node, producer)
        return term

    def constant(self, index: int) -> Constant:
        """An input that must be a constant real tensor."""
        term = self.term(index)
        if isinstance(term, Constant):
            return term
        raise RefusedError(f"its {self._called(index)} is no constant")

    def array(self, index: int) -> Array:
        """An input that must be a constant, as ONNX has it."""
        match self.term(index):
            case Constant(array) | Integers(array):
                return array
            case _:
                raise RefusedError(
                    f"its {self._called(index)} is computed at run time",
                    "export the network with a constant there",
                )

    def scalar(self, index: int) -> float:
        """An input that must be one constant number."""
        array = self.array(index)
        self.need(array.size == 1, f"its {self._called(index)} is more than one number")
        return float(array.reshape(()))

    def _called(self, index: int) -> str:
        """What messages call an input."""
        return "input" if index == 0 else f"input {index}"

    def real(self, index: int) -> Real:
        """An input that must be a quantised real tensor; constants that are quantised too."""
        name = self._called(index)
        match self.term(index):
            case Real(value) as real if value.dtype in NUMBERS:
                return real
            case Real(value):
                raise RefusedError(f"its {name} is of {value.dtype.value}")
            case Constant(_, integers, quantization) as real if (
                integers is not None
                and quantization is not None
                and quantization.axis is None
                and integers.dtype.itemsize <= 2  # 8 or 16 bits
            ):
                dtype = DType(f"i{integers.dtype.itemsize * 8}")
                return Real(self.context.constant(real, integers, dtype))
            case Plain(value) | Quantized(value) if not value.dtype.is_float:
                raise RefusedError(
                    f"its {name} is of {self.dtype_of(index).name}, and it takes quantised numbers "
                    "only",
                    "put a DequantizeLinear before it",
                )
            case _:
                raise RefusedError(f"its {name} is not quantised", QUANTIZE_BEFORE)

    def moved(self, move: Move, index: int = 0) -> Term:
        """Return an input with its elements moved, whatever it stands for."""
        return self._moved(self._movable(index), move, self.shape, index)

    def parted(self, moves: Sequence[Move], index: int = 0) -> tuple[Term, ...]:
        """Return several tensors that an input's elements are moved to."""
        term = self._movable(index)
        return tuple(
            self._moved(term, move, shape, index)
            for move, shape in zip(moves, self.shapes, strict=True)
        )

    def _movable(self, index: int) -> Term:
        term = self.term(index)
        match term:
            case Constant():
                return self.real(index)
            case Integers():
                return integers_term(self.integers(index), self.dtype_of(index))
            case _:
                return term

    def _moved(self, term: Term, move: Move, shape: tuple[int, ...], index: int) -> Term:
        match term:
            case Real(value):
                return Real(move(value))
            case Quantized(value) if value.dtype in NUMBERS:
                return Quantized(move(value))
            case Pending(emit, _, low, high):
                return Pending(lambda target: move(emit(target)), shape, low, high)
            case Plain(value) if value.dtype in MOVED:
                return Plain(move(value))
            case Wide(value):
                return Wide(move(value))
            case Plain(value) if value.dtype is DType.FP32:
                given = self._given(index)
                return Pending(lambda target: move(given(target)), shape)
            case _:
                raise RefusedError("its input is not quantised", QUANTIZE_BEFORE)

    def _given(self, index: int) -> Callable[[Target], Value]:
        """Return a function that gives a float input quantised: the same, as it is only moved."""
        name = self.node.inputs[index]

        def emit(target: Target) -> Value:
            return clamped(self.b, self.context.quantized(name, target), target)

        return emit

    def itself(self) -> Term:
        """Return the input, which must be of the result's shape and type."""
        self.need(self.shape_of(0) == self.shape, "it changes the shape")
        self.need(self.dtype_of(0) == self.dtype, "it changes the type of the elements")
        return self.moved(lambda value: value)

    def alike(self, indices: Sequence[int], build: Callable[..., Value]) -> Term:
        """Return the result that `build` makes of inputs in the type and scale of the result."""
        if self.dtype.kind != "f":
            values = [self.integers(index) for index in indices]
            self.need(len({value.dtype for value in values}) == 1, "its inputs differ in type")
            return self.whole_result(build(*values))
        terms = [self.term(index) for index in indices]
        reals = [term for term in terms if isinstance(term, Real)]
        scales = {(real.value.dtype, real.quantization) for real in reals}
        if len(reals) == len(terms) and len(scales) == 1:
            return Real(self._of_scale(build(*(real.value for real in reals)), reals[0]))
        emitters = [self.emitter(index) for index in indices]

        def emit(target: Target) -> Value:
            return typed(build(*(each(target) for each in emitters)), target)

        return Pending(emit, self.shape)

    def _of_scale(self, value: Value, real: Real) -> Value:
        value.type = value.type.quantized(real.quantization)
        return value

    def emitter(self, index: int) -> Callable[[Target], Value]:
        """Return a function that gives a real input on a target's scale."""
        term = self.term(index)
        if isinstance(term, Pending):
            return lambda target: term.emit(within(target, term.low, term.high))
        if isinstance(term, Constant):
            return lambda target: self._constant_on(term.real, target)
        if isinstance(term, Plain) and term.value.dtype is DType.FP32:
            return self._given(index)
        real = self.real(index)
        return lambda target: as_target(self.b, real, target)

    def _constant_on(self, reals: Array, target: Target) -> Value:
        """Return a constant on a target's scale, quantised as QuantizeLinear does."""
        low, high = target.bounds
        steps = np.rint(reals.astype(np.float32) / np.float32(target.scale)) + target.zero_point
        return self.b.constant(np.clip(steps, low, high), target.dtype, target.quantization)

    def integers(self, index: int) -> Value:
        """Return an input of integers as the graph has them: no quantised ones, or with no scale.

        Integers without a sign are less by what their type says (`lowering.types.OFFSETS`).
        """
        match self.term(index):
            case Quantized(value):
                return value
            case Plain(value) if value.dtype in MOVED:
                return value
            case Wide(value):
                return value
            case Plain(value) if value.dtype is DType.INT64:
                return self.context.narrowed(self.node.inputs[index])
            case Integers(array):
                return self._constant_integers(array, index)
            case _:
                raise RefusedError(
                    f"its {self._called(index)} is of {self.dtype_of(index).name}, and it takes "
                    "integers"
                )

    def _constant_integers(self, array: Array, index: int) -> Value:
        dtype = DTYPES.get(array.dtype.name)
        if dtype is DType.INT64:
            limit = np.iinfo(np.int32)
            fits = not array.size or (array.min() >= limit.min and array.max() <= limit.max)
            self.need(fits, f"its {self._called(index)} is beyond 32 bits")
            return self.context.graph.constant(array.astype(np.int32), DType.INT32)
        dtype = SIGNED_TYPES.get(dtype, dtype) if dtype is not None else None
        if dtype not in MOVED:
            raise RefusedError(f"its {self._called(index)} is of {array.dtype.name}")
        return self.context.graph.constant(signed(array), dtype)

    def whole_result(self, value: Value) -> Term:
        """Return integers, or truths, as the first result."""
        return integers_term(value, self.dtype)

    def offset(self, index: int) -> int:
        """Return how far an input's integers are above the graph's; 0 for those with a sign."""
        return offset_of(self.dtype_of(index))

    def truth(self, index: int) -> Value:
        """Return an input that must be truth values."""
        match self.term(index):
            case Plain(value) if value.dtype is DType.BOOL:
                return value
            case Integers(array) if array.dtype == np.bool_:
                return self.context.graph.constant(array, DType.BOOL)
            case _:
                raise RefusedError(f"its {self._called(index)} is no truth value")

    def function(self, index: int) -> Function | None:
        """Return an input as a function of each number of one tensor, if it is one."""
        name = self.node.inputs[index]
        term = self.term(index)
        if name in self.context.functions:
            return self.context.functions[name]
        if isinstance(term, Pending) or (isinstance(term, Real) and term.value.dtype in NUMBERS):
            return Function(term, lambda reals: reals)
        return None


def integers_term(value: Value, dtype: np.dtype[np.generic]) -> Term:
    """Return what a tensor of integers stands for, or of truths; `dtype` is ONNX's."""
    if value.dtype in NUMBERS:
        return Quantized(value)
    return Wide(value) if dtype.name == "int64" else Plain(value)


def within(target: Target, low: float, high: float) -> Target:
    """Return a target whose numbers are clamped first to some bounds, then to its own."""
    if low == -inf and high == inf:
        return target
    return replace(
        target,
        low=min(max(low, target.low), target.high),
        high=max(min(high, target.high), target.low),
    )
