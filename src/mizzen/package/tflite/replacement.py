"""Put custom operators in the place of parts of a network."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.memory_plan import ALLOCATION, NOT_IN_ARENA, plan_of
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType

_ABSENT = -1
_FIELDS = ("inputs", "outputs", "intermediates")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A custom operator that stands for several operators of the main subgraph.

    operators  the indices of those that it stands for
    code       of the custom operator
    constants  bytes, each of which becomes an input; they come first
    inputs     tensors that it takes, outputs those that it gives
    memories   names and bytes of the memory that it works in, which come after the constants; what
               has one name is one tensor for all operators, of the most bytes
    states     variable tensors that are its own, which come after the inputs
    """

    operators: tuple[int, ...]
    code: str
    constants: tuple[bytes, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    memories: tuple[tuple[str, int], ...] = ()
    states: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Where tensors lie in a runtime's arena, in bytes.

    tensors  by their index in the network before parts of it were replaced
    states   of each replacement
    """

    tensors: Mapping[int, int]
    states: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class ReplacedNetwork:
    """The file of a network with parts replaced.

    tensors  of the file's main subgraph to those of the network before, by index
    """

    data: bytes
    tensors: Mapping[int, int]


def replace_operators(
    record: Record, replacements: Sequence[Replacement], plan: Plan | None = None
) -> ReplacedNetwork:
    """Replace parts of a network.

    `record` is a network whose indices the front-end has checked. Operators are brought into an
    order in which each takes what those before it gave, tensors, constants and subgraphs that
    nobody uses any more are left out, and so is metadata, which says what holds of the network as
    it was.

    plan  where tensors lie, which the file then says; memories lie at the arena's start
    """
    network = _Network(record, plan)
    order = execution_order(record, replacements)
    made = [network.custom(place, part) for place, part in enumerate(replacements)]
    network.operators = [
        made[step.replacement] if isinstance(step, Replaced) else network.operators[step]
        for step in order
    ]
    return network.written()


@dataclass(frozen=True, slots=True)
class Replaced:
    """A step that is a replacement, by its place among them."""

    replacement: int


def execution_order(record: Record, replacements: Sequence[Replacement]) -> list[int | Replaced]:
    """Return the operators that are left, by index, and the replacements, as they are executed."""
    operators: list[Record] = list(record["subgraphs"][0]["operators"])
    gone = {index for part in replacements for index in part.operators}
    steps: list[tuple[int, int | Replaced, Sequence[int], Sequence[int]]] = [
        (index, index, _indices(operator["inputs"]), _indices(operator["outputs"]))
        for index, operator in enumerate(operators)
        if index not in gone
    ]
    steps += [
        (min(part.operators), Replaced(place), part.inputs, part.outputs)
        for place, part in enumerate(replacements)
    ]
    return _ordered(steps)


def _ordered(
    steps: Sequence[tuple[int, int | Replaced, Sequence[int], Sequence[int]]],
) -> list[int | Replaced]:
    """Sort steps by what they take from one another, then by their positions."""
    giver = {tensor: place for place, (*_, gives) in enumerate(steps) for tensor in gives}
    needs = [
        {giver[tensor] for tensor in takes if giver.get(tensor, place) != place}
        for place, (_, _, takes, _) in enumerate(steps)
    ]
    users: dict[int, list[int]] = {}
    for place, sources in enumerate(needs):
        for source in sources:
            users.setdefault(source, []).append(place)
    waiting = [len(sources) for sources in needs]
    ready = [(steps[place][0], place) for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order: list[int | Replaced] = []
    while ready:
        _, place = heapq.heappop(ready)
        order.append(steps[place][1])
        for user in users.get(place, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (steps[user][0], user))
    assert len(order) == len(steps), "parts wait for each other in a circle"
    return order


class _Network:
    """A network under construction, with the tables of the one that it is made of."""

    def __init__(self, record: Record, plan: Plan | None) -> None:
        self._record = record
        self._plan = plan
        self._offsets: dict[int, int] = {} if plan is None else dict(plan.tensors)
        self._memories: dict[str, int] = {}
        self._codes: list[Record] = list(record["operator_codes"])
        self._buffers: list[Record] = list(record["buffers"])
        self._main: Record = dict(record["subgraphs"][0])
        self._tensors: list[Record] = list(self._main["tensors"])
        self.operators: list[Record] = list(self._main["operators"])

    def custom(self, place: int, part: Replacement) -> Record:
        """Make the custom operator of a replacement."""
        constants = [self._constant(f"{part.code}_{i}", d) for i, d in enumerate(part.constants)]
        memories = [self._memory(name, size) for name, size in part.memories]
        states = [self._state(place, index, state) for index, state in enumerate(part.states)]
        return {
            "opcode_index": self._code(part.code),
            "inputs": np.asarray([*constants, *memories, *part.inputs, *states], np.int32),
            "outputs": np.asarray(part.outputs, np.int32),
        }

    def _memory(self, name: str, size_bytes: int) -> int:
        """Return the tensor of a memory, which is as large as the most that is asked for."""
        if name not in self._memories:
            self._memories[name] = self._added(
                {"name": name, "type": int(TensorType.UINT8), "buffer": 0, "is_variable": False}
            )
            self._offsets[self._memories[name]] = 0
        index = self._memories[name]
        tensor = self._tensors[index]
        before = int(tensor["shape"][0]) if "shape" in tensor else 0
        tensor["shape"] = np.asarray([max(before, size_bytes)], np.int32)
        return index

    def _state(self, place: int, index: int, state: Record) -> int:
        tensor = self._added(state)
        if self._plan is not None:
            self._offsets[tensor] = self._plan.states[place][index]
        return tensor

    def _added(self, tensor: Record) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _constant(self, name: str, data: bytes) -> int:
        contents = np.frombuffer(data, np.uint8)
        self._buffers.append({"data": contents})
        tensor: Record = {
            "name": name,
            "shape": np.asarray([contents.size], np.int32),
            "type": int(TensorType.UINT8),
            "buffer": len(self._buffers) - 1,
            "is_variable": False,
        }
        return self._added(tensor)

    def _code(self, name: str) -> int:
        custom = int(BuiltinOperator.CUSTOM)
        code: Record = {
            "deprecated_builtin_code": custom,
            "builtin_code": custom,
            "custom_code": name,
            "version": 1,
        }
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def written(self) -> ReplacedNetwork:
        """Return the file, without what nobody uses."""
        main = self._main
        used = dict.fromkeys([*_indices(main["inputs"]), *_indices(main["outputs"])])
        for operator in self.operators:
            for field in _FIELDS:
                used.update(dict.fromkeys(_indices(operator.get(field))))
        places = {index: place for place, index in enumerate(used)} | {_ABSENT: _ABSENT}
        subgraph = {
            "name": main["name"],
            "tensors": [self._tensors[index] for index in used],
            "inputs": _moved(main["inputs"], places),
            "outputs": _moved(main["outputs"], places),
            "operators": [_with_moved(each, places) for each in self.operators],
        }
        subgraphs = [subgraph, *self._others()]
        network: Record = {
            "version": self._record["version"],
            "description": self._record["description"],
            **compacted(subgraphs, self._codes, self._buffers),
        }
        if self._plan is not None:
            offsets = [self._offsets.get(index, NOT_IN_ARENA) for index in used]
            elsewhere = [[NOT_IN_ARENA] * len(row["tensors"] or ()) for row in subgraphs[1:]]
            network["metadata"] = [{"name": ALLOCATION, "buffer": len(network["buffers"])}]
            network["buffers"] = [*network["buffers"], {"data": plan_of([offsets, *elsewhere])}]
        given = len(main["tensors"])
        tensors = {place: index for place, index in enumerate(used) if index < given}
        return ReplacedNetwork(write(network, SCHEMA), tensors)

    def _others(self) -> list[Record]:
        """Return the other subgraphs, unless no operator is left that could execute one."""
        codes = [self._codes[int(row["opcode_index"])] for row in self.operators]
        kinds = {max(code["deprecated_builtin_code"], code["builtin_code"]) for code in codes}
        return [] if kinds == {int(BuiltinOperator.CUSTOM)} else self._record["subgraphs"][1:]


def _with_moved(operator: Record, places: dict[int, int]) -> Record:
    moved = {
        field: _moved(operator[field], places)
        for field in _FIELDS
        if operator.get(field) is not None
    }
    return {**operator, **moved}


def compacted(
    subgraphs: Sequence[Record], codes: Sequence[Record], buffers: Sequence[Record]
) -> Record:
    """Return subgraphs, with no more operator codes and buffers than they refer to."""
    code_places: dict[int, int] = {}
    buffer_places = {0: 0}

    def place(places: dict[int, int], index: Any) -> int:
        return places.setdefault(int(index), len(places))

    made: list[Record] = []
    for subgraph in subgraphs:
        tensors: list[Record] = subgraph["tensors"] or []
        operators: list[Record] = subgraph["operators"] or []
        made.append(
            {
                **subgraph,
                "tensors": [
                    {**tensor, "buffer": place(buffer_places, tensor["buffer"])}
                    for tensor in tensors
                ],
                "operators": [
                    {**operator, "opcode_index": place(code_places, operator["opcode_index"])}
                    for operator in operators
                ],
            }
        )
    return {
        "operator_codes": [codes[index] for index in code_places],
        "subgraphs": made,
        "buffers": [buffers[index] for index in buffer_places],
    }


def _moved(indices: Iterable[Any], places: dict[int, int]) -> Any:
    return np.array([places[int(index)] for index in indices], np.int32)


def _indices(values: Any) -> list[int]:
    return [] if values is None else [int(index) for index in values if index != _ABSENT]
