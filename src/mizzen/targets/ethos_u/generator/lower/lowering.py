"""Lower a graph, or say for each operation that no rule takes why.

Where some are refused, the rest is lowered in runs: as many operations at once as need nothing of
what is refused in between. Operations of one group, a computation of the user's model, stay
together: all of them are taken, or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mizzen.graph import Graph, Operation, Value
from mizzen.ops.control_flow import (
    Constant,
    Custom,
    OfVariable,
    Variable,
    VariableRead,
    VariableWrite,
)
from mizzen.ops.definition import TosaOperation
from mizzen.targets.ethos_u.generator.lower import (
    argmax,
    convolutions,
    curves,
    elementwise,
    indexed_u85,
    matrices,
    matrices_u85,
    pointwise_u85,
    pools,
    quotients_u85,
    reductions,
    reductions_u85,
    repeating_u85,
    resizing,
    resizing_u85,
    shifts_u85,
    softmax,
    sums_u85,
    truths_u85,
    volumes,
    volumes_u85,
    widening,
    windows,
)
from mizzen.targets.ethos_u.generator.lower.carrying import carried
from mizzen.targets.ethos_u.generator.lower.carrying_u85 import carried_on_u85
from mizzen.targets.ethos_u.generator.lower.context import Node
from mizzen.targets.ethos_u.generator.lower.emission import Interface, emitted
from mizzen.targets.ethos_u.generator.lower.finish import FINISHING
from mizzen.targets.ethos_u.generator.lower.first_values import State
from mizzen.targets.ethos_u.generator.lower.movement import MOVES, moved
from mizzen.targets.ethos_u.generator.lower.planning import RULES, RULES_U85, node_of
from mizzen.targets.ethos_u.generator.lower.refusing import NoFormError
from mizzen.targets.ethos_u.generator.lower.states import (
    NONE,
    States,
    node_of_read,
    states_of,
)
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.machine.commands_values import Arch

RULED = (
    argmax,
    convolutions,
    curves,
    elementwise,
    indexed_u85,
    matrices,
    matrices_u85,
    pointwise_u85,
    pools,
    quotients_u85,
    reductions,
    reductions_u85,
    repeating_u85,
    resizing,
    resizing_u85,
    shifts_u85,
    softmax,
    sums_u85,
    truths_u85,
    volumes,
    volumes_u85,
    widening,
    windows,
)
"""Importing them registers their rules."""

assert RULES, RULED


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """An operation that no rule takes, and why."""

    operation: Operation
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """What became of a graph.

    sequence  its inputs are the graph's, then the states; None if an operation is refused
    states    the graph's variables, in the order of the sequence's inputs
    refusals  the operations that no rule takes, in the graph's order
    """

    sequence: Sequence | None
    states: tuple[State, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Operations of a graph that are one sequence, and what it takes and gives of the graph."""

    operations: tuple[Operation, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    states: tuple[State, ...]
    sequence: Sequence


@dataclass(frozen=True, slots=True, eq=False)
class InRuns:
    """A graph in runs, in an order in which each finds what it takes; and what no rule takes."""

    runs: tuple[Run, ...]
    refusals: tuple[Refusal, ...]


def lower(graph: Graph, unsigned: Collection[Value] = (), arch: Arch = Arch.U55) -> Lowered:
    """Lower a graph of integers to a sequence; inputs and outputs are the graph's, in its order.

    arch      whose operations there are: those of U55 every Ethos-U has
    unsigned  values whose bytes the caller has as unsigned ones, 128 more than they are in the
              graph: inputs and outputs among them are converted
    """
    order = {operation: place for place, operation in enumerate(graph.sorted())}
    interface = Interface(tuple(graph.inputs), tuple(graph.outputs), unsigned)
    states = states_of(order)
    nodes, refused = _nodes(interface, arch, states)
    if refused:
        return Lowered(None, states.rows, _ordered(refused, order))
    return Lowered(emitted(interface, nodes, order, states, arch), states.rows, ())


def lower_in_runs(graph: Graph, unsigned: Collection[Value] = (), arch: Arch = Arch.U55) -> InRuns:
    """Lower what rules take of a graph, in maximal runs, and name the rest.

    `arch` is as `lower` takes it.
    """
    order = {operation: place for place, operation in enumerate(graph.sorted())}
    interface = Interface(tuple(graph.inputs), tuple(graph.outputs), unsigned)
    _, refused = _nodes(interface, arch, states_of(order))
    while True:
        levels = _levels(order, _kept_out(order, refused))
        wrong = _torn(levels)
        runs: list[Run] = []
        for level in sorted(set(levels.values())):
            operations = tuple(row for row in order if levels.get(row) == level)
            if all(isinstance(row, Variable) for row in operations):
                continue
            part = _part(graph, operations)
            own, values = _copied(operations, part)
            lowered = lower(own, [values[row] for row in unsigned if row in values], arch)
            wrong |= {part.sources[row.operation]: row.reason for row in lowered.refusals}
            if lowered.sequence is not None:
                ends = part.inputs, part.outputs
                runs.append(Run(operations, *ends, lowered.states, lowered.sequence))
        if not wrong:
            return InRuns(tuple(runs), _ordered(refused, order))
        refused |= wrong


def kinds_of(arch: Arch) -> frozenset[str]:
    """Return the kinds of TOSA's operations that rules take on an NPU, in some form at least."""
    own = RULES_U85 if arch is Arch.U85 else {}
    classes = {*RULES, *own, *FINISHING, *MOVES, Variable, VariableRead, VariableWrite} - {Custom}
    return frozenset(kind.definition.kind for kind in classes if issubclass(kind, TosaOperation))


def _ordered(
    refused: Mapping[Operation, str], order: Mapping[Operation, int]
) -> tuple[Refusal, ...]:
    return tuple(Refusal(*row) for row in sorted(refused.items(), key=lambda row: order[row[0]]))


def _nodes(
    interface: Interface, arch: Arch, states: States = NONE
) -> tuple[dict[Value, Node], dict[Operation, str]]:
    """Return the nodes of all values that are needed, and what no rule takes."""
    carry = carried_on_u85 if arch is Arch.U85 else carried
    given = set(interface.inputs)
    ends = (*interface.outputs, *(row.value for row in states.writes))
    wanted = frozenset(ends)
    nodes: dict[Value, Node] = {}
    refused: dict[Operation, str] = {}
    seen: set[Value] = set()
    waiting = list(reversed(ends))
    while waiting:
        value = waiting.pop()
        if value in seen or value in given or value.constant is not None:
            continue
        seen.add(value)
        producer = value.producer
        assert producer is not None, value
        try:
            node = (
                node_of_read(value, states)
                or moved(value, arch)
                or node_of(value, wanted, carry, arch)
            )
        except NoFormError as error:
            refused[producer] = error.reason
            waiting += producer.operands
            continue
        nodes[value] = node
        waiting += node.reads
    return nodes, refused


def _kept_out(order: Iterable[Operation], refused: Collection[Operation]) -> set[Operation]:
    """Return what is refused with all of its group, and with all on the same variables."""
    groups = {row.group for row in refused if row.group is not None}
    found = {row for row in order if row in refused or row.group in groups}
    names = {row.name for row in found if isinstance(row, OfVariable)}
    found |= {row for row in order if isinstance(row, OfVariable) and row.name in names}
    return found


def _levels(order: Iterable[Operation], out: Collection[Operation]) -> dict[Operation, int]:
    """Return the run of each operation that is taken: none needs what needs a later one.

    Operations of a group are in one run, the last that one of them must be in.
    """
    rows = [row for row in order if not isinstance(row, Constant | Variable)]
    levels: dict[Operation, int] = {}
    of_group: dict[int | None, int] = {}
    for _ in rows:  # settled long before, unless groups need each other in a circle
        before = dict(levels)
        for row in rows:
            own = int(row in out)
            given = [levels[each.producer] for each in row.operands if each.producer in levels]
            least = [own, *(level + (level % 2 != own) for level in given)]
            if row.group is not None:
                least.append(of_group.get(row.group, 0))
                of_group[row.group] = max(least)
            levels[row] = max(least)
        if levels == before:
            break
    taken = {row: level for row, level in levels.items() if row not in out}
    for row in order:
        users = [each for each in taken if isinstance(each, OfVariable) and _is_on(row, each)]
        if isinstance(row, Variable) and users and row not in out:
            taken[row] = taken[users[0]]
    return taken


def _is_on(declared: Operation, other: OfVariable) -> bool:
    return isinstance(declared, Variable) and declared.name == other.name


def _torn(levels: Mapping[Operation, int]) -> dict[Operation, str]:
    """Return the operations on variables that are in several runs: each has memory of its own."""
    found: dict[str, set[int]] = {}
    for row, level in levels.items():
        if isinstance(row, OfVariable):
            found.setdefault(row.name, set()).add(level)
    return {
        row: "its variable is read and written on both sides of what no rule takes"
        for row in levels
        if isinstance(row, OfVariable) and len(found[row.name]) > 1
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What a run takes from outside, and what of it somebody else takes.

    sources  operations of a copy to those that they are copies of
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    sources: dict[Operation, Operation]


def _part(graph: Graph, operations: tuple[Operation, ...]) -> _Part:
    own = set(operations)
    inputs: dict[Value, None] = {}
    outputs: dict[Value, None] = {}
    for row in operations:
        for operand in row.operands:
            if operand.constant is None and operand.producer not in own:
                inputs[operand] = None
        for value in row.results:
            if value in graph.outputs or any(user not in own for user in value.uses):
                outputs[value] = None
    return _Part(tuple(inputs), tuple(outputs), {})


def _copied(operations: tuple[Operation, ...], part: _Part) -> tuple[Graph, dict[Value, Value]]:
    """Return a graph of a run alone: rules must not look beyond what it is given."""
    graph = Graph("run")
    values = {value: graph.add_input(value.type, value.name) for value in part.inputs}
    for row in operations:
        for operand in row.operands:
            if operand not in values:
                array = operand.constant
                assert array is not None
                values[operand] = graph.constant(array, operand.dtype, name=operand.name)
        copy = graph.add(
            row.kind,
            [values[operand] for operand in row.operands],
            [value.type for value in row.results],
            row.attributes,
            origin=row.origin,
            group=row.group,
        )
        part.sources[copy] = row
        for value, made in zip(row.results, copy.results, strict=True):
            made.name = value.name
            values[value] = made
    graph.set_outputs(values[value] for value in part.outputs)
    return graph, values
