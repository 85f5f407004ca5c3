"""From nodes to a sequence: where values lie, then operations in the graph's order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.graph import Operation, Value
from mizzen.targets.ethos_u.generator.lower.bricks_u85 import in_bricks
from mizzen.targets.ethos_u.generator.lower.carrying import carry, copy
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, type_of
from mizzen.targets.ethos_u.generator.lower.finish import plain
from mizzen.targets.ethos_u.generator.lower.fused_u85 import fused
from mizzen.targets.ethos_u.generator.lower.movement import lies
from mizzen.targets.ethos_u.generator.lower.planning import NOWHERE
from mizzen.targets.ethos_u.generator.lower.states import (
    States,
    declared,
    schedule_writes,
    write_all,
    write_flag,
)
from mizzen.targets.ethos_u.generator.lower.unsigned_u85 import with_unsigned
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.operations import (
    Chain,
    Copy,
    Map,
    Role,
    Sequence,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.generator.operations import Operation as NpuOperation
from mizzen.targets.ethos_u.machine.commands_values import Arch

BYTE_OFFSET = 128
"""By how much an unsigned byte is more than the signed one that stands for it in the graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Interface:
    """What comes from outside and goes there, in order.

    unsigned  values whose bytes the caller has as unsigned ones, 128 more than in the graph
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    unsigned: Collection[Value]

    def dtype(self, value: Value) -> np.dtype[Any]:
        """Return the type of a value as the caller has it."""
        return np.dtype(np.uint8) if value in self.unsigned else type_of(value.dtype)


def emitted(
    interface: Interface,
    nodes: Mapping[Value, Node],
    order: Mapping[Operation, int],
    states: States,
    arch: Arch,
) -> Sequence:
    """Return the sequence of the nodes; states are its last inputs."""
    emitter = Emitter(copier=copy, arch=arch)
    for value in interface.inputs:
        row = emitter.tensor(value.name, value.shape, interface.dtype(value), Role.INPUT)
        emitter.views[value] = row
    held = declared(emitter, states)
    count = len(emitter.tensors)
    ends = [
        emitter.tensor(value.name, value.shape, interface.dtype(value), Role.OUTPUT)
        for value in interface.outputs
    ]
    for value, place in zip(interface.outputs, ends, strict=True):
        if value in nodes and value not in interface.unsigned:
            emitter.places.setdefault(value, place)
    for value in interface.inputs:
        if value in interface.unsigned and value.uses:
            _signed(emitter, value)
    ordered = sorted(nodes.values(), key=lambda node: order[_producer(node)])
    for node in reversed(ordered):
        _wish(emitter, node, nodes)
    due = schedule_writes(emitter, states, held, ordered, interface.outputs)
    write_all(emitter, due.get(-1, ()), held)
    for index, node in enumerate(ordered):
        node.emit(emitter)
        write_all(emitter, due.get(index, ()), held)
    for value, place in zip(interface.outputs, ends, strict=True):
        _given(emitter, value, place, is_unsigned=value in interface.unsigned)
    write_all(emitter, due.get(len(ordered), ()), held)
    write_flag(emitter)
    sequence = _sequence(emitter, count, ends)
    return in_bricks(with_unsigned(fused(sequence))) if arch is Arch.U85 else sequence


def _given(emitter: Emitter, value: Value, place: View, *, is_unsigned: bool) -> None:
    """Add what brings an output to its place, if it was not written there."""
    view, producer = emitter.read(value), value.producer
    origin = producer.origin if producer is not None and producer.origin else NOWHERE
    if is_unsigned:
        finish = replace(plain(value.dtype), zero_point=BYTE_OFFSET, low=0, high=255)
        carry(emitter, view, place, finish, 0, origin)
    elif not view.is_same(place):
        emitter.copy(view, place, origin)


def _signed(emitter: Emitter, value: Value) -> None:
    """Add what makes an input's unsigned bytes the graph's integers."""
    source = emitter.views[value]
    made = emitter.tensor(value.name, value.shape, type_of(value.dtype))
    carry(emitter, source, made, plain(value.dtype), BYTE_OFFSET, NOWHERE)
    emitter.views[value] = made


def _producer(node: Node) -> Operation:
    assert node.value.producer is not None
    return node.value.producer


def _wish(emitter: Emitter, node: Node, nodes: Mapping[Value, Node]) -> None:
    """Say where what a node reads could be written, if the node is a place of it.

    What is only seen in another way is not written, unless it is wished somewhere.
    """
    for value, axes in node.orders.items():
        if value in nodes and value not in emitter.places:
            emitter.places[value] = emitter.ordered(value, axes)
    if node.wishes is None:
        return
    place = emitter.places.get(node.value)
    if place is None and node.view is not None and not _is_written(emitter, node):
        return
    if place is None:
        place = emitter.target(node.value)
        emitter.places[node.value] = place
    for value, wish in node.wishes(place):
        if wish is not None and value in nodes and value not in emitter.places:
            emitter.places[value] = wish


def _is_written(emitter: Emitter, node: Node) -> bool:
    """Whether no view is what a node sees of what lies as it is computed; U85 writes it so."""
    apart = emitter.arch is Arch.U85 and lies(node.value) is None
    return apart and lies(node.reads[0]) is not None


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
        lines = operation.lines
        if lines is not None:
            lines = replace(lines, indices=places[lines.indices])
        return replace(operation, source=source, destination=destination, lines=lines)
    assert not isinstance(operation, Chain), "rules make no chains"
    return with_maps(operation, lambda map_: _elsewhere(map_, places))


def _elsewhere(row: Map, places: Mapping[int, int]) -> Map:
    return replace(row, view=replace(row.view, tensor=places[row.tensor]))
