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

from mizzen.compiler.refusals import RefusalSearch
from mizzen.graph import DType, Graph, Operation, Value
from mizzen.ops.control_flow import Constant
from mizzen.ops.type_conversion import Rescale
from mizzen.partition import extract_operations
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import Cause, NetworkForm, Stopped, generate

PROBE_SECONDS = 20.0
"""How long the compiler may take for a part of a graph: a part may make it run without end too."""


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
class RefusedOperation:
    """An operation that stops the compiler: its index in `Graph.sorted()`, and how it stops.

    said  what the compiler said of it, in its own words
    """

    index: int
    operation: Operation
    cause: Cause
    said: str


def find_refused(
    graph: Graph, write: Write, configuration: EthosUConfiguration, stopped: Stopped
) -> tuple[RefusedOperation, ...]:
    """Find operations because of which the compiler stopped at a graph.

    At least one is found unless the graph is compiled when it is tried again, or has only
    constants; others may be left, which show when those found are taken out.
    """
    order = graph.sorted()

    def compile(units: Sequence[Unit]) -> Stopped | None:
        data = write(extract_operations(graph, [row for unit in units for row in unit]).graph)
        limit = PROBE_SECONDS
        answer = generate(data, configuration, NetworkForm.TOSA, time_limit_seconds=limit)
        return answer if isinstance(answer, Stopped) else None

    units = _units(order)
    search = RefusalSearch(units, compile, lambda unit: tuple(map(_signature, unit)))
    found = search.alone(_suspects(units, stopped.said))
    if not found:
        first = search.first(stopped)
        if first is None:
            return ()
        unit, answer = first
        found = search.alone(other for other in units if other[0].kind == unit[0].kind)
        found.setdefault(unit, answer)
    index = {operation: index for index, operation in enumerate(order)}
    rows = [
        RefusedOperation(index[unit[0]], unit[0], answer.cause, answer.said)
        for unit, answer in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.index))


def _units(order: Iterable[Operation]) -> list[Unit]:
    """Split operations in order of execution into units, in order of their first ones.

    U55 and U65 give sums of 48 bits only rescaled, and some operations only with their rescale. An
    operation that rescales takes no other operation's result, so it can be moved up.
    """
    units: dict[Operation, list[Operation]] = {}
    for operation in order:
        if isinstance(operation, Constant):
            continue
        producer = operation.operand.producer if operation.operands else None
        if isinstance(operation, Rescale) and producer in units and _accumulates(operation):
            units[operation] = units[producer]
            units[producer].append(operation)
        else:
            units[operation] = [operation]
    return [tuple(unit) for first, unit in units.items() if unit[0] is first]


def _accumulates(rescale: Rescale) -> bool:
    value = rescale.input
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
