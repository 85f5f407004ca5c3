"""Find the operations of a graph that stop the compiler.

For a network in TOSA's form the core does not say which operation it stops at, at most of which
type. What it does with parts of the graph shows which: an operation alone, or the shortest
beginning of the graph that it does not compile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mizzen.graph import DType, Graph, Operation, Value
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.compiled import Cause, Stopped
from mizzen.targets.ethos_u.vela.generate import NetworkForm, generate

PROBE_SECONDS = 20.0
"""How long the compiler may take for a part of a graph: a part may make it run without end too."""

CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})

SMALL_ELEMENTS = 16
"""Constants of at most as many elements may be what the compiler minds: zero points, shifts."""

Unit = tuple[Operation, ...]
"""Operations that only make sense together: one, and those that rescale what it accumulates."""

CORE_NAMES = {
    "And": ("BITWISE_AND",),
    "Asr": ("ARITHMETIC_RIGHT_SHIFT",),
    "AvgPool": ("AVG_POOL2D",),
    "Div": ("INTDIV",),
    "LeakyRelu": (),
    "MaxPool": ("MAX_POOL2D",),
    "Not": ("BITWISE_NOT",),
    "NotEqual": ("SELECT", "CAST", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR", "LOGICAL_NOT"),
    "Or": ("BITWISE_OR",),
    "SHL": ("LOGICAL_LEFT_SHIFT",),
    "SHR": ("LOGICAL_RIGHT_SHIFT",),
    "Xor": ("BITWISE_XOR",),
}
"""Operations that the core calls otherwise than TOSA, or makes that type of operation of."""

_TYPE = re.compile(r"Non-passthrough operation \((\w+)\)|Validation error: (\w+):")

Write = Callable[[Graph], bytes]
"""Writes a graph as a TOSA file."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An operation that stops the compiler: its index in `Graph.sorted()`, and how it stops.

    said  what the compiler said of it, in its own words
    """

    index: int
    operation: Operation
    cause: Cause
    said: str


def find_refused(
    graph: Graph, write: Write, configuration: EthosUConfiguration, stopped: Stopped
) -> tuple[Refused, ...]:
    """Find operations because of which the compiler stopped at a graph.

    At least one is found unless the graph is compiled when it is tried again, or has only
    constants; others may be left, which show when those found are taken out.
    """
    probing = _Probing(graph, write, configuration)
    found = probing.alone(_suspects(probing.units, stopped.said))
    if not found:
        first = probing.first(stopped)
        if first is None:
            return ()
        found = probing.alone(
            unit for unit in probing.units if unit[0].kind == first.operation.kind
        )
        if all(one.operation is not first.operation for one in found):
            found = [first, *found]
    return tuple(sorted(found, key=lambda one: one.index))


class _Probing:
    def __init__(self, graph: Graph, write: Write, configuration: EthosUConfiguration) -> None:
        self._graph = graph
        self._write = write
        self._configuration = configuration
        order = graph.sorted()
        self._index = {operation: index for index, operation in enumerate(order)}
        self.units = _units(order)

    def alone(self, suspects: Iterable[Unit]) -> list[Refused]:
        """Return the first of each unit that is refused when nothing else is in the graph."""
        answers: dict[object, Stopped | None] = {}
        found: list[Refused] = []
        for unit in suspects:
            key = tuple(map(_signature, unit))
            if key not in answers:
                answers[key] = self._compile([unit])
            answer = answers[key]
            if answer is not None:
                found.append(self._refused(unit, answer))
        return found

    def first(self, stopped: Stopped) -> Refused | None:
        """Return the first of the unit with which a beginning of the graph no longer compiles."""
        compiled, refused = 0, len(self.units)
        answer = stopped
        while refused - compiled > 1:
            middle = (compiled + refused) // 2
            outcome = self._compile(self.units[:middle])
            if outcome is None:
                compiled = middle
            else:
                refused, answer = middle, outcome
        if refused == len(self.units) and self._compile(self.units) is None:
            return None
        return self._refused(self.units[refused - 1], answer)

    def _compile(self, units: Sequence[Unit]) -> Stopped | None:
        operations = [operation for unit in units for operation in unit]
        answer = generate(
            self._write(part(self._graph, operations)),
            self._configuration,
            NetworkForm.TOSA,
            time_limit_seconds=PROBE_SECONDS,
        )
        return answer if isinstance(answer, Stopped) else None

    def _refused(self, unit: Unit, answer: Stopped) -> Refused:
        return Refused(self._index[unit[0]], unit[0], answer.cause, answer.said)


def part(graph: Graph, operations: Sequence[Operation]) -> Graph:
    """Copy operations, in order of execution, and their constants into a graph of their own.

    It takes what they take from others, and gives what others or nobody take from them.
    """
    result = Graph(graph.name)
    copies: dict[Value, Value] = {}
    outputs: list[Value] = []
    inside, given = set(operations), set(graph.outputs)
    for operation in operations:
        for value in operation.operands:
            if value not in copies:
                copies[value] = _provide(result, value)
        types = [value.type for value in operation.results]
        operands = [copies[value] for value in operation.operands]
        made = result.add(operation.kind, operands, types, operation.attributes)
        copies.update(zip(operation.results, made.results, strict=True))
        outputs += [
            value
            for value in operation.results
            if value in given or not value.uses or not inside.issuperset(value.uses)
        ]
    result.set_outputs(copies[value] for value in outputs)
    return result


def _provide(result: Graph, value: Value) -> Value:
    producer = value.producer
    if producer is not None and producer.kind in CONSTANTS:
        return result.add(producer.kind, (), (value.type,), producer.attributes).result
    return result.add_input(value.type)


def _units(order: Iterable[Operation]) -> list[Unit]:
    """Split operations in order of execution into units, in order of their first ones.

    U55 and U65 give sums of 48 bits only rescaled, and some operations only with their rescale. An
    operation that rescales takes no other operation's result, so it can be moved up.
    """
    units: dict[Operation, list[Operation]] = {}
    for operation in order:
        if operation.kind in CONSTANTS:
            continue
        producer = operation.operands[0].producer if operation.operands else None
        if operation.kind == "RESCALE" and producer in units and _accumulates(operation):
            units[operation] = units[producer]
            units[producer].append(operation)
        else:
            units[operation] = [operation]
    return [tuple(unit) for first, unit in units.items() if unit[0] is first]


def _accumulates(rescale: Operation) -> bool:
    value = rescale.operands[0]
    return value.dtype is DType.INT48 or (value.dtype is DType.INT32 and len(value.uses) == 1)


def _suspects(units: Sequence[Unit], said: str) -> list[Unit]:
    """Return the units whose first operation is of the type that the compiler names, if it does."""
    named = _TYPE.search(said)
    if named is None:
        return []
    name = named[1] or named[2]
    plain = name.lower()
    kinds = CORE_NAMES.get(name, ())
    return [
        unit
        for unit in units
        if unit[0].kind in kinds or unit[0].kind.replace("_", "").lower() == plain
    ]


def _signature(operation: Operation) -> object:
    """Return what the compiler sees of an operation that is alone, but large constants."""
    attributes = tuple((name, _key(value)) for name, value in sorted(operation.attributes.items()))
    operands = tuple(map(_operand, operation.operands))
    return operation.kind, operands, attributes


def _operand(value: Value) -> tuple[object, ...]:
    values = value.constant
    small = values.tobytes() if values is not None and values.size <= SMALL_ELEMENTS else None
    return value.shape, value.dtype, values is not None, small


def _key(value: Any) -> object:
    return id(value) if isinstance(value, Graph) else repr(value)
