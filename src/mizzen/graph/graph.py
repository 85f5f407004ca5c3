"""The tensor graph: values, operations on them, and edits.

A graph is in single static assignment form: every value is an input or the result of one
operation. Operations are TOSA's, with TOSA's operands in TOSA's order; constants are operations
too. What an operation means is not known here: `mizzen.ops` has a class for each kind, and
`Graph.add` makes operations of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph.types import DType, Quantization, TensorType

Array = npt.NDArray[Any]
Attributes = dict[str, Any]
"""Attribute name to value: int, bool, str, tuple of int, DType, an enum, an array, or a graph."""


class Value:
    """An input or a result: its name (unique or empty), type, producer and users."""

    __slots__ = ("name", "producer", "type", "uses")

    def __init__(self, type: TensorType, name: str = "", producer: Operation | None = None) -> None:
        self.type = type
        self.name = name
        self.producer = producer
        self.uses: dict[Operation, int] = {}
        """Operations that take the value, in the order they came, and how often each does."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The type of the value's elements."""
        return self.type.dtype

    @property
    def quantization(self) -> Quantization | None:
        """How the value's integers stand for real numbers, where that is known."""
        return self.type.quantization

    @property
    def constant(self) -> Array | None:
        """The elements if the value is a constant, as `DType.numpy` holds them; else None."""
        producer = self.producer
        if producer is not None and producer.kind in ("CONST", "CONST_SHAPE"):
            return producer.attributes.get("values")
        return None

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.type}"


class Operation:
    """One operation: TOSA's name, operands in TOSA's order, results, attributes.

    origin  where it comes from in the user's model
    group   which computation of the user's model it is part of; placement keeps a group together
    """

    __slots__ = ("_operands", "attributes", "group", "kind", "origin", "results")

    of_kind: ClassVar[dict[str, type[Operation]]] = {}
    """The classes by kind, with a field for each operand and attribute; `mizzen.ops` adds them."""

    def __init__(
        self,
        kind: str,
        operands: Sequence[Value],
        types: Sequence[TensorType],
        attributes: Attributes,
        origin: Origin | None,
        group: int | None,
    ) -> None:
        self.kind = kind
        self._operands = list(operands)
        self.results = tuple(Value(type, "", self) for type in types)
        self.attributes = attributes
        self.origin = origin
        self.group = group

    @property
    def operands(self) -> Sequence[Value]:
        """The operands; edited only through the graph."""
        return self._operands

    @property
    def operand(self) -> Value:
        """The first operand, of an operation of any kind that has one."""
        return self._operands[0]

    @property
    def result(self) -> Value:
        """The result of an operation that has exactly one."""
        (result,) = self.results
        return result

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes[attribute]

    def __repr__(self) -> str:
        return f"{self.kind} -> {', '.join(map(repr, self.results))}"


class Graph:
    """Inputs, operations and outputs. `version` changes with every edit."""

    def __init__(self, name: str = "main") -> None:
        assert Operation.of_kind, "mizzen.ops has the classes of operations: import it first"
        self.name = name
        self.version = 0
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []
        self._operations: dict[Operation, None] = {}

    @property
    def inputs(self) -> Sequence[Value]:
        """The values that come from outside."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[Value]:
        """The values that go outside."""
        return self._outputs

    def __iter__(self) -> Iterator[Operation]:
        """Return the operations in the order they were added, which may not be one of execution."""
        return iter(tuple(self._operations))

    def __len__(self) -> int:
        return len(self._operations)

    def __contains__(self, operation: Operation) -> bool:
        return operation in self._operations

    def add_input(self, type: TensorType, name: str = "") -> Value:
        """Add an input after the ones there are."""
        self.version += 1
        value = Value(type, name)
        self._inputs.append(value)
        return value

    def add(
        self,
        kind: str,
        operands: Sequence[Value],
        types: Sequence[TensorType],
        attributes: Attributes | None = None,
        *,
        origin: Origin | None = None,
        group: int | None = None,
    ) -> Operation:
        """Add an operation with results of the given types; nothing is checked here."""
        self.version += 1
        made = Operation.of_kind.get(kind, Operation)
        operation = made(kind, operands, types, attributes or {}, origin, group)
        for operand in operands:
            operand.uses[operation] = operand.uses.get(operation, 0) + 1
        self._operations[operation] = None
        return operation

    def add_beside(
        self,
        place: Operation | None,
        kind: str,
        operands: Sequence[Value],
        type: TensorType,
        attributes: Attributes | None = None,
    ) -> Value:
        """Add an operation with one result, with the origin and group of another; return it."""
        origin, group = (place.origin, place.group) if place is not None else (None, None)
        return self.add(kind, operands, (type,), attributes, origin=origin, group=group).result

    def constant_like(self, value: Value, values: Array) -> Value:
        """Add a constant with the element type, quantisation, origin and group of another."""
        assert value.producer is not None
        origin, group = value.producer.origin, value.producer.group
        return self.constant(
            values, value.dtype, quantization=value.quantization, origin=origin, group=group
        )

    def constant(
        self,
        values: npt.ArrayLike,
        dtype: DType,
        *,
        quantization: Quantization | None = None,
        origin: Origin | None = None,
        group: int | None = None,
        name: str = "",
    ) -> Value:
        """Add a constant; SHAPE makes a CONST_SHAPE. The array is kept, not copied, if it fits."""
        array = np.asarray(values, dtype.numpy)
        kind = "CONST_SHAPE" if dtype is DType.SHAPE else "CONST"
        type = TensorType(array.shape, dtype, quantization)
        value = self.add(kind, (), (type,), {"values": array}, origin=origin, group=group).result
        value.name = name
        return value

    def set_outputs(self, values: Iterable[Value]) -> None:
        """Say what goes outside."""
        self.version += 1
        self._outputs = list(values)

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Say what comes from outside, in which order; values that no operation gives."""
        self.version += 1
        self._inputs = list(values)

    def set_operand(self, operation: Operation, index: int, value: Value) -> None:
        """Make an operation take another value."""
        operands = operation._operands  # pyright: ignore[reportPrivateUsage] the graph is the one editor of its operations
        old = operands[index]
        if old is value:
            return
        self.version += 1
        operands[index] = value
        _forget(old, operation)
        value.uses[operation] = value.uses.get(operation, 0) + 1

    def replace(self, old: Value, new: Value) -> None:
        """Make every user of `old`, the graph's outputs too, take `new`."""
        if old is new:
            return
        for operation in tuple(old.uses):
            for index, operand in enumerate(operation.operands):
                if operand is old:
                    self.set_operand(operation, index, new)
        self.version += 1
        self._outputs = [new if output is old else output for output in self._outputs]

    def supersede(self, old: Value, new: Value) -> None:
        """Let a value take the place of another, and its name."""
        new.name, old.name = old.name, ""
        self.replace(old, new)

    def erase(self, operation: Operation) -> None:
        """Remove an operation whose results nothing uses."""
        assert not any(result.uses for result in operation.results)
        self.version += 1
        del self._operations[operation]
        for operand in operation.operands:
            _forget(operand, operation)

    def erase_dead(self) -> None:
        """Remove every operation that no output needs, but those with effects."""
        outputs = set(self._outputs)
        work = list(self._operations)
        while work:
            operation = work.pop()
            if operation not in self._operations or operation.kind in WITH_EFFECTS:
                continue
            if any(result.uses or result in outputs for result in operation.results):
                continue
            producers = [operand.producer for operand in operation.operands]
            self.erase(operation)
            work += [producer for producer in producers if producer is not None]

    def sorted(self) -> list[Operation]:
        """Return the operations so that each comes after those whose results it takes.

        Otherwise as early as its place among the added ones; raises ValueError on a cycle.
        """
        order: list[Operation] = []
        state: dict[Operation, bool] = {}
        for start in self._operations:
            _visit(start, state, order)
        return order


WITH_EFFECTS = frozenset({"VARIABLE", "VARIABLE_WRITE", "CUSTOM"})
"""Operations that stay though nothing uses their results."""


def _forget(value: Value, operation: Operation) -> None:
    count = value.uses[operation] - 1
    if count:
        value.uses[operation] = count
    else:
        del value.uses[operation]


def _visit(start: Operation, state: dict[Operation, bool], order: list[Operation]) -> None:
    """Append `start` after what it needs; `state` is False while an operation is underway."""
    stack = [start]
    while stack:
        operation = stack[-1]
        if state.get(operation):
            stack.pop()
            continue
        waiting = [
            operand.producer
            for operand in operation.operands
            if operand.producer is not None and not state.get(operand.producer, False)
        ]
        if not waiting:
            state[operation] = True
            order.append(operation)
            stack.pop()
            continue
        if operation in state and any(producer in state for producer in waiting):
            raise ValueError(f"{operation.kind} needs its own result")
        state[operation] = False
        stack += reversed(waiting)
