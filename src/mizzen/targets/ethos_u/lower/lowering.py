"""Lower a graph, or say for each operation that no rule takes why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.graph import Graph, Operation, Value
from mizzen.targets.ethos_u.lower import elementwise, reductions, resizing, softmax, windows
from mizzen.targets.ethos_u.lower.carrying import carried, carry, copy
from mizzen.targets.ethos_u.lower.context import Emitter, Node, type_of
from mizzen.targets.ethos_u.lower.finish import plain
from mizzen.targets.ethos_u.lower.movement import moved
from mizzen.targets.ethos_u.lower.planning import NOWHERE, RULES, node_of
from mizzen.targets.ethos_u.lower.refusing import NoFormError
from mizzen.targets.ethos_u.lower.views import View
from mizzen.targets.ethos_u.operations import (
    Copy,
    Elementwise,
    Map,
    Role,
    Sequence,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.operations import Operation as NpuOperation

assert RULES, (
    elementwise,
    reductions,
    resizing,
    softmax,
    windows,
)  # importing them registers rules

BYTE_OFFSET = 128
"""By how much an unsigned byte is more than the signed one that stands for it in the graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """An operation that no rule takes, and why."""

    operation: Operation
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """What became of a graph.

    sequence  None if an operation is refused
    refusals  the operations that no rule takes, in the graph's order
    """

    sequence: Sequence | None
    refusals: tuple[Refusal, ...]


def lower(graph: Graph, unsigned: Collection[Value] = ()) -> Lowered:
    """Lower a graph of integers to a sequence; inputs and outputs are the graph's, in its order.

    unsigned  inputs and outputs whose bytes the caller has as unsigned ones, 128 more than they
              are in the graph
    """
    order = {operation: place for place, operation in enumerate(graph.sorted())}
    nodes, refused = _nodes(graph.inputs, graph.outputs)
    if refused:
        rows = sorted(refused.items(), key=lambda row: order[row[0]])
        return Lowered(None, tuple(Refusal(*row) for row in rows))
    return Lowered(_emitted(graph.inputs, graph.outputs, nodes, order, unsigned), ())


def _nodes(
    inputs: Several[Value], outputs: Several[Value]
) -> tuple[dict[Value, Node], dict[Operation, str]]:
    """Return the nodes of all values that are needed, and what no rule takes."""
    given, wanted = set(inputs), frozenset(outputs)
    nodes: dict[Value, Node] = {}
    refused: dict[Operation, str] = {}
    seen: set[Value] = set()
    waiting = list(reversed(outputs))
    while waiting:
        value = waiting.pop()
        if value in seen or value in given or value.constant is not None:
            continue
        seen.add(value)
        producer = value.producer
        assert producer is not None, value
        try:
            node = moved(value) or node_of(value, wanted, carried)
        except NoFormError as error:
            refused[producer] = error.reason
            waiting += producer.operands
            continue
        nodes[value] = node
        waiting += node.reads
    return nodes, refused


def _emitted(
    inputs: Several[Value],
    outputs: Several[Value],
    nodes: dict[Value, Node],
    order: dict[Operation, int],
    unsigned: Collection[Value],
) -> Sequence:
    emitter = Emitter(copier=copy)
    for value in inputs:
        dtype = _outside(value, unsigned)
        emitter.views[value] = emitter.tensor(value.name, value.shape, dtype, Role.INPUT)
    ends = [
        emitter.tensor(value.name, value.shape, _outside(value, unsigned), Role.OUTPUT)
        for value in outputs
    ]
    for value, place in zip(outputs, ends, strict=True):
        if value in nodes and value not in unsigned:
            emitter.places.setdefault(value, place)
    for value in inputs:
        if value in unsigned and value.uses:
            _signed(emitter, value)
    ordered = sorted(nodes.values(), key=lambda node: order[_producer(node)])
    for node in reversed(ordered):
        _wish(emitter, node, nodes)
    for node in ordered:
        node.emit(emitter)
    for value, place in zip(outputs, ends, strict=True):
        _given(emitter, value, place, is_unsigned=value in unsigned)
    return _sequence(emitter, len(inputs), ends)


def _given(emitter: Emitter, value: Value, place: View, *, is_unsigned: bool) -> None:
    """Add what brings an output to its place, if it was not written there."""
    view, producer = emitter.read(value), value.producer
    origin = producer.origin if producer is not None and producer.origin else NOWHERE
    if is_unsigned:
        finish = replace(plain(value.dtype), zero_point=BYTE_OFFSET, low=0, high=255)
        carry(emitter, view, place, finish, 0, origin)
    elif view != place:
        emitter.copy(view, place, origin)


def _outside(value: Value, unsigned: Collection[Value]) -> np.dtype[Any]:
    """Return the type of a value as the caller has it."""
    return np.dtype(np.uint8) if value in unsigned else type_of(value.dtype)


def _signed(emitter: Emitter, value: Value) -> None:
    """Add what makes an input's unsigned bytes the graph's integers."""
    source = emitter.views[value]
    made = emitter.tensor(value.name, value.shape, type_of(value.dtype))
    carry(emitter, source, made, plain(value.dtype), BYTE_OFFSET, NOWHERE)
    emitter.views[value] = made


def _producer(node: Node) -> Operation:
    assert node.value.producer is not None
    return node.value.producer


def _wish(emitter: Emitter, node: Node, nodes: dict[Value, Node]) -> None:
    """Say where what a node reads could be written, if the node is a place of it.

    What is only seen in another way is not written, unless it is wished somewhere.
    """
    if node.wishes is None:
        return
    place = emitter.places.get(node.value)
    if place is None and node.view is not None:
        return
    if place is None:
        place = emitter.target(node.value)
        emitter.places[node.value] = place
    for value, wish in node.wishes(place):
        if wish is not None and value in nodes and value not in emitter.places:
            emitter.places[value] = wish


def _sequence(emitter: Emitter, inputs: int, ends: Several[View]) -> Sequence:
    """Return the sequence without tensors that nobody uses."""
    used = {place.tensor for place in ends} | set(range(inputs))
    for operation in emitter.operations:
        used.update((*tensors_read(operation), tensor_written(operation)))
    kept = {index: place for place, index in enumerate(sorted(used))}
    tensors = emitter.finished()
    return Sequence(
        tuple(tensors[index] for index in kept),
        tuple(renumbered(operation, kept) for operation in emitter.operations),
        tuple(range(inputs)),
        tuple(kept[place.tensor] for place in ends),
    )


def renumbered(operation: NpuOperation, places: Mapping[int, int]) -> NpuOperation:
    """Return an operation on tensors of other indices."""
    if isinstance(operation, Copy):
        source, destination = places[operation.source], places[operation.destination]
        return replace(operation, source=source, destination=destination)
    ifm, ofm = _elsewhere(operation.ifm, places), _elsewhere(operation.ofm, places)
    if isinstance(operation, Elementwise) and isinstance(operation.ifm2, Map):
        return replace(operation, ifm=ifm, ofm=ofm, ifm2=_elsewhere(operation.ifm2, places))
    return replace(operation, ifm=ifm, ofm=ofm)


def _elsewhere(row: Map, places: Mapping[int, int]) -> Map:
    return replace(row, view=replace(row.view, tensor=places[row.tensor]))
