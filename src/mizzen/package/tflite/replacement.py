"""Put custom operators in the place of parts of a network."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.flatbuffer import Record, write
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
    """

    operators: tuple[int, ...]
    code: str
    constants: tuple[bytes, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def replace_operators(record: Record, replacements: Sequence[Replacement]) -> bytes:
    """Return the file of a network with parts replaced.

    `record` is a network whose indices the front-end has checked. Operators are brought into an
    order in which each takes what those before it gave, tensors and constants that nothing uses any
    more are left out, and so is metadata, which says what holds of the network as it was.
    """
    network = _Network(record)
    gone = {index for part in replacements for index in part.operators}
    kept = [operator for index, operator in enumerate(network.operators) if index not in gone]
    positions = [index for index in range(len(network.operators)) if index not in gone]
    made = [network.custom(part) for part in replacements]
    placed = [*zip(positions, kept, strict=True)]
    placed += [
        (min(part.operators), operator) for part, operator in zip(replacements, made, strict=True)
    ]
    network.operators = _ordered(placed)
    return network.written()


def _ordered(placed: Sequence[tuple[int, Record]]) -> list[Record]:
    """Sort operators by what they take from one another, then by their positions."""
    giver = {
        t: place
        for place, (_, operator) in enumerate(placed)
        for t in _indices(operator["outputs"])
    }
    needs = [
        {giver[t] for t in _indices(operator["inputs"]) if giver.get(t, place) != place}
        for place, (_, operator) in enumerate(placed)
    ]
    users: dict[int, list[int]] = {}
    for place, sources in enumerate(needs):
        for source in sources:
            users.setdefault(source, []).append(place)
    waiting = [len(sources) for sources in needs]
    ready = [(placed[place][0], place) for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    ordered: list[Record] = []
    while ready:
        _, place = heapq.heappop(ready)
        ordered.append(placed[place][1])
        for user in users.get(place, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (placed[user][0], user))
    assert len(ordered) == len(placed), "parts wait for each other in a circle"
    return ordered


class _Network:
    """A network under construction, with the tables of the one that it is made of."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._codes: list[Record] = list(record["operator_codes"])
        self._buffers: list[Record] = list(record["buffers"])
        self._main: Record = dict(record["subgraphs"][0])
        self._tensors: list[Record] = list(self._main["tensors"])
        self.operators: list[Record] = list(self._main["operators"])

    def custom(self, part: Replacement) -> Record:
        """Make a custom operator."""
        constants = [self._constant(f"{part.code}_{i}", d) for i, d in enumerate(part.constants)]
        return {
            "opcode_index": self._code(part.code),
            "inputs": np.asarray([*constants, *part.inputs], np.int32),
            "outputs": np.asarray(part.outputs, np.int32),
        }

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
        self._tensors.append(tensor)
        return len(self._tensors) - 1

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

    def written(self) -> bytes:
        """Return the file, without what nothing uses."""
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
        subgraphs = [subgraph, *self._record["subgraphs"][1:]]
        network: Record = {
            "version": self._record["version"],
            "description": self._record["description"],
            **compacted(subgraphs, self._codes, self._buffers),
        }
        return write(network, SCHEMA)


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
