"""Variables of the graph as tensors of state: what reads and what writes them, and when.

State lies in the program's memory from one run to the next. Who reads a variable sees its tensor;
what is written to it is written once everything has read it, at its place if what gives it comes
last. After a write the variable is the value that was written, and nothing is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Variable, VariableRead, VariableWrite
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, type_of
from mizzen.targets.ethos_u.generator.lower.first_values import (
    FLAG,
    First,
    State,
    started_at_zero,
)
from mizzen.targets.ethos_u.generator.lower.planning import NOWHERE
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.operations import Role


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """What a variable holds at last: a value, and the operation that says so."""

    state: State
    value: Value
    operation: Operation

    @property
    def origin(self) -> Origin:
        """Where the operation comes from."""
        return self.operation.origin or NOWHERE


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The variables of a graph.

    reads   values that are what a variable held before
    again   values that are read after a write: the value that was written
    writes  the last write of each variable
    firsts  variables that hold other numbers than zero before the first run: which
    flag    the variable that says whether there was a run; None if nothing asks
    """

    rows: tuple[State, ...]
    reads: Mapping[Value, State]
    again: Mapping[Value, Value]
    writes: tuple[Write, ...]
    firsts: Mapping[State, First]
    flag: State | None


NONE = States((), {}, {}, (), {}, None)


def states_of(operations: Iterable[Operation]) -> States:
    """Read the operations on variables, in their order."""
    rows: dict[str, State] = {}
    reads: dict[Value, State] = {}
    again: dict[Value, Value] = {}
    writes: dict[str, Write] = {}
    for row in operations:
        match row:
            case Variable():
                rows[row.name] = State(row.name, row.type, row.initial)
            case VariableRead() if row.name in writes:
                again[row.result] = writes[row.name].value
            case VariableRead():
                state = rows.setdefault(row.name, State(row.name, row.type, None))
                reads[row.result] = state
            case VariableWrite():
                value = row.input1
                state = rows.setdefault(row.name, State(row.name, value.type, None))
                writes[row.name] = Write(state, again.get(value, value), row)
            case _:
                continue
    kept = [row for row in writes.values() if reads.get(row.value) is not row.state]
    return _started(States(tuple(rows.values()), reads, again, tuple(kept), {}, None))


def _started(states: States) -> States:
    """Return the same with variables that a runtime can start: all hold the number for zero."""
    written = {row.state for row in states.writes}
    started = {row: started_at_zero(row) for row in states.rows}
    firsts = {
        started[row]: First(row.initial, row in written)
        for row in states.rows
        if row.initial is not None and started[row] is not row
    }
    read = {started[row] for row in states.reads.values()}
    flag = FLAG if any(row.is_written and state in read for state, row in firsts.items()) else None
    rows = (*started.values(), *(() if flag is None else (flag,)))
    reads = {value: started[row] for value, row in states.reads.items()}
    writes = tuple(replace(row, state=started[row.state]) for row in states.writes)
    return States(rows, reads, states.again, writes, firsts, flag)


def node_of_read(value: Value, states: States) -> Node | None:
    """Return the node of a value that a variable gives; None if none does."""
    if value in states.again:
        source = states.again[value]
        return Node(value, (source,), _own(value), _passed_on(value, source), _same)
    state = states.reads.get(value)
    if state is None:
        return None
    first = states.firsts.get(state)
    if first is None:
        return Node(value, (), _own(value), lambda emitter: None, _same)
    return first.node(value, state.type, _own(value))


def _own(value: Value) -> tuple[Operation, ...]:
    return () if value.producer is None else (value.producer,)


def _same(view: View) -> View | None:
    return view


def _passed_on(value: Value, source: Value) -> Callable[[Emitter], None]:
    def emit(emitter: Emitter) -> None:
        emitter.views[value] = emitter.read(source)

    return emit


def declared(emitter: Emitter, states: States) -> dict[State, View]:
    """Add the tensors of variables, and let what reads variables see them."""
    places = {
        row: emitter.tensor(row.name, row.type.shape, type_of(row.type.dtype), Role.STATE)
        for row in states.rows
    }
    for value, row in states.reads.items():
        emitter.views[value] = places[row]
    if states.flag is not None:
        emitter.has_run = places[states.flag]
    return places


def write_flag(emitter: Emitter) -> None:
    """Add what says that there was a run, if something asks."""
    if emitter.has_run is not None:
        emitter.copy(emitter.constant(np.ones(1, np.int8), "one"), emitter.has_run, NOWHERE)


def schedule_writes(
    emitter: Emitter,
    states: States,
    places: Mapping[State, View],
    ordered: list[Node],
    outputs: Collection[Value],
) -> dict[int, list[Write]]:
    """Return behind which node each variable is written; behind all of them for the rest.

    What is given last of all that has to do with the variable is written at its place at once.
    """
    due: dict[int, list[Write]] = {}
    aliases = _aliases(states, ordered)
    position = {node.value: index for index, node in enumerate(ordered)}
    for write in states.writes:
        seen = aliases[write.state]
        last = max((i for i, node in enumerate(ordered) if seen & set(node.reads)), default=-1)
        given = position.get(write.value, -1)
        others = any(row is not write and row.value in seen for row in states.writes)
        if seen & set(outputs) or others or write.value in _any(aliases):
            due.setdefault(len(ordered), []).append(write)
            continue
        node = ordered[given] if given >= 0 else None
        free = node is not None and node.view is None and write.value not in emitter.places
        if free and given > last and write.value not in outputs:
            emitter.places[write.value] = places[write.state]
            continue
        due.setdefault(max(last, given), []).append(write)
    return due


def _any(aliases: Mapping[State, set[Value]]) -> set[Value]:
    return set[Value]().union(*aliases.values()) if aliases else set()


def _aliases(states: States, ordered: list[Node]) -> dict[State, set[Value]]:
    """Return the values that may be views of each variable's tensor."""
    found: dict[State, set[Value]] = {row: set() for row in states.rows}
    for value, row in states.reads.items():
        found[row].add(value)
    for node in ordered:
        if node.view is None or not node.reads:
            continue
        for seen in found.values():
            if node.reads[0] in seen:
                seen.add(node.value)
    return found


def write_all(emitter: Emitter, writes: Iterable[Write], places: Mapping[State, View]) -> None:
    """Add what writes variables; what lies in a variable's tensor itself is put aside first."""
    tensors = {view.tensor for view in places.values()}
    rows = [(row, emitter.read(row.value)) for row in writes]
    several = len(rows) > 1
    for place, (row, view) in enumerate(rows):
        if view.tensor in tensors and (several or view.tensor == places[row.state].tensor):
            rows[place] = row, emitter.copied(view, row.origin)
    for row, view in rows:
        if view != places[row.state]:
            emitter.copy(view, places[row.state], row.origin)
