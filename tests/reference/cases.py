"""Graphs of one operation with random numbers, for every combination of element types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mizzen.graph import (
    INTEGER_BITS,
    Array,
    DType,
    Graph,
    TensorType,
    Value,
    integer_range,
    print_graph,
)
from mizzen.ops import DEFINITIONS, Builder, Definition, Operand, Row
from mizzen.ops.definition import element_type

from .plans import PLANS, Draw, Plan, elementwise

NUMBERS = (np.inf, -np.inf, 0.0, -0.0, 2.0**-140, 0.5, -2.5)
SPECIAL = (*NUMBERS, np.nan)
SHIFT_KINDS = ("ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT")
ZERO_POINTS = ("input_zp", "output_zp", "input1_zp", "weight_zp", "A_zp", "B_zp")
WITHOUT_SPECIAL = ("POW", "FFT2D", "RFFT2D")
"""Operations that have no meaning, or only NaN, for infinities and NaN."""

ROWS = [
    (definition, row)
    for definition in DEFINITIONS.values()
    for row in definition.rows
    if definition.kind not in ("CONST", "CONST_SHAPE")
]


@dataclass(frozen=True, repr=False)
class Case:
    """A graph of one operation, what is put in, how many numbers it adds up at most."""

    graph: Graph
    inputs: list[Array]
    terms: int

    @property
    def kind(self) -> str:
        return next(op.kind for op in self.graph if not op.kind.startswith("CONST"))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        return f"\n{print_graph(self.graph)}\n{self.inputs}"


@st.composite
def cases(draw: Draw, definition: Definition, row: Row) -> Case:
    kind = definition.kind
    plan = PLANS.get(kind, elementwise)(draw, row, kind)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = Numbers(draw, random, definition, row, plan)
    graph = Graph()
    operands = list(numbers.operands(Builder(graph)))
    attributes = {**row.attributes, **plan.attributes}
    dtype = row.types[definition.results[0][1]]
    graph.set_outputs(Builder(graph).many(kind, *operands, dtype=dtype, **attributes))
    return Case(graph, numbers.inputs, plan.terms)


class Numbers:
    """Makes an operation's operands: inputs with elements to put in, and constants."""

    def __init__(
        self,
        draw: Draw,
        random: np.random.Generator,
        definition: Definition,
        row: Row,
        plan: Plan,
    ) -> None:
        self._draw, self._random = draw, random
        self._definition, self._row, self._plan = definition, row, plan
        self.inputs: list[Array] = []
        # Numbers of few bits overflow seldom, those of all bits nearly always.
        self._part = draw(st.integers(1, 4))
        self._special = definition.kind not in WITHOUT_SPECIAL and draw(st.booleans())

    def operands(self, builder: Builder) -> Iterator[Value]:
        shapes = iter(self._plan.shapes)
        for operand in self._definition.operands:
            dtype = element_type(operand, self._row)
            if operand.name in self._plan.values:
                yield builder.shape(self._plan.values[operand.name])
            elif operand.constant:
                yield builder.constant(self._constant(operand, dtype), dtype)
            else:
                for shape in [*shapes] if operand.variadic else [next(shapes)]:
                    self.inputs.append(self._tensor(operand, dtype, shape))
                    yield builder.graph.add_input(TensorType(shape, dtype))

    def _tensor(self, operand: Operand[Any], dtype: DType, shape: tuple[int, ...]) -> Array:
        kind = self._definition.kind
        if operand.name == "indices":
            return self._indices(shape)
        if dtype is DType.BOOL:
            return self._random.integers(0, 2, shape).astype(np.bool_)
        if dtype.is_float:
            return self._floats(operand, dtype, shape)
        if kind in SHIFT_KINDS and operand.name == "input2":
            beyond = self._draw(st.sampled_from([0, 0, 0, 1]))
            shifts = self._random.integers(-beyond, INTEGER_BITS[dtype] + beyond, shape)
            return shifts.astype(dtype.numpy)
        values = self._integers(dtype, shape)
        # The model does not see that adding the bias overflows. Half of its range is safe: sums of
        # at most 3*3*3*6 products are less than 2**24, or 2**31 of i16.
        return values // 2 if operand.name == "bias" else values

    def _integers(self, dtype: DType, shape: tuple[int, ...]) -> Array:
        low, high = integer_range(dtype)
        part = (4 - self._part) * INTEGER_BITS[dtype] // 4
        values = self._random.integers(low >> part, (high >> part) + 1, shape)
        if self._special:
            edges = np.array([low, high, 0, -1, 1], np.int64)
            chosen = self._random.random(shape) < 0.1
            values = np.where(chosen, self._random.choice(edges, shape), values)
        return values.astype(dtype.numpy)

    def _floats(self, operand: Operand[Any], dtype: DType, shape: tuple[int, ...]) -> Array:
        spread = 2.0 ** self._draw(st.integers(-3, 5))
        values = self._random.normal(0, spread, shape)
        if self._definition.kind == "POW":
            values = np.abs(values) if not self.inputs else np.clip(values, -4, 4)
        # Whether padding times an infinite weight is 0 or NaN is open.
        if self._special and operand.name != "weight":
            chosen = self._random.random(shape) < 0.2
            values = np.where(chosen, self._random.choice(self._specials(), shape), values)
        single = np.asarray(values.astype(dtype.numpy))
        if dtype is DType.BF16:
            upper = single.reshape(-1).view(np.uint32) & np.uint32(0xFFFF0000)
            return upper.view(np.float32).reshape(shape)
        return single

    def _specials(self) -> Sequence[float]:
        """Return special numbers; of an integer that is cast from NaN, TOSA says nothing."""
        to_integer = self._definition.kind == "CAST" and not self._row.types["out_t"].is_float
        return NUMBERS if to_integer else SPECIAL

    def _indices(self, shape: tuple[int, ...]) -> Array:
        k = self._plan.shapes[0][1]
        if self._definition.kind == "SCATTER" and self._draw(st.integers(0, 4)):
            rows = [self._random.permutation(k)[: shape[1]] for _ in range(shape[0])]
            return np.array(rows, np.int32)
        wrong = self._draw(st.sampled_from([0, 0, 0, 0, 1]))
        return self._random.integers(-wrong, k + wrong, shape).astype(np.int32)

    def _constant(self, operand: Operand[Any], dtype: DType) -> Array:
        kind, random = self._definition.kind, self._random
        match operand.name:
            case "table":
                size = 256 if dtype is DType.INT8 else 513
                return self._integers(dtype, (size,))
            case "pad_const":
                return self._tensor(operand, dtype, (1,))
            case "shift" if kind == "MUL":
                some = self._row.types["in_t"] is DType.INT32 and self._draw(st.booleans())
                # The model overflows for the square of the least number and a shift of 63.
                most = 62 if self._special else 63
                return np.array([self._draw(st.integers(0, most)) if some else 0])
            case "multiplier":
                return random.integers(0, integer_range(dtype)[1] + 1, self._channels())
            case "shift":
                # Most often such that the scale is around 1 or less, as networks have it.
                bits = 31 if self._row.types["mul_t"] is DType.INT32 else 15
                low = self._draw(st.sampled_from([2, bits - 2, bits + 4, 40]))
                return random.integers(low, min(62, low + 20) + 1, self._channels())
            case name if name in ZERO_POINTS:
                return np.array([self._zero_point(name, dtype)])
            case name:
                raise AssertionError(f"{kind} has a constant {name}")

    def _channels(self) -> int:
        return self._plan.shapes[0][-1] if self._plan.attributes["per_channel"] else 1

    def _zero_point(self, name: str, dtype: DType) -> int:
        unsigned = self._plan.attributes.get(name.replace("_zp", "_unsigned"), False)
        if dtype is DType.INT16 and unsigned:
            return self._draw(st.sampled_from([0, -(1 << 15)]))  # the bits of 32768
        return self._draw(st.integers(-128, 127)) if dtype is DType.INT8 else 0
