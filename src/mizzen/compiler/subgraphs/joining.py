"""Join the subgraphs of a network again, each of which was compiled as a network of its own.

The joined network has the subgraphs, the
signatures and the metadata of the whole one. The arena is shared: what an executed subgraph needs
lies after what those that execute it have there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.memory_plan import ALLOCATION, NOT_IN_ARENA, plan_of, split_plan
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Subgraph
from mizzen.frontends.tflite.subgraphs import above, reached_from, renumbered

ALIGNMENT_BYTES = 16
"""Of what lies in an arena. Ref: TFLite Micro, MicroArenaBufferAlignment."""


@dataclass(frozen=True, slots=True)
class Part:
    """A subgraph that was compiled as the main one of a network.

    network      the compiled network
    arena_bytes  what it needs of the arena
    """

    network: Model
    arena_bytes: int


def arena_starts(model: Model, sizes: Mapping[int, int]) -> dict[int, int]:
    """Return where in the arena each subgraph begins.

    sizes  bytes of the arena that subgraphs need; of others none
    """
    over = above(model)
    starts: dict[int, int] = {}
    for index in sorted(over, key=lambda each: len(over[each])):
        ends = [starts[other] + sizes.get(other, 0) for other in over[index]]
        starts[index] = -(-max(ends, default=0) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return starts


def joined(model: Model, parts: Mapping[int, Part]) -> bytes:
    """Return the file of a network whose subgraphs are `parts` where there are any."""
    return _Joining(model, parts).file()


class _Joining:
    """Tables under construction that the subgraphs of several files refer to."""

    def __init__(self, model: Model, parts: Mapping[int, Part]) -> None:
        self._model = model
        self._parts = parts
        self._codes: list[Record] = []
        self._buffers: list[Record] = [{}]
        self._contents: dict[bytes, int] = {}

    def file(self) -> bytes:
        """Return the whole file."""
        record = self._model.record
        subgraphs = [self._subgraph(subgraph) for subgraph in self._model.subgraphs]
        network: Record = {
            "version": record["version"],
            "description": record["description"],
            "operator_codes": self._codes,
            "subgraphs": subgraphs,
            "metadata": self._metadata() or None,
            "signature_defs": signatures(self._model, self._parts),
        }
        return write({**network, "buffers": self._buffers}, SCHEMA)

    def _subgraph(self, subgraph: Subgraph) -> Record:
        part = self._parts.get(subgraph.index)
        if part is None:
            own: Record = self._model.record["subgraphs"][subgraph.index]
            return self._moved(own, self._model.record)
        places = dict(enumerate(reached_from(self._model, subgraph.index)))
        file = part.network.record
        main = renumbered(file["subgraphs"][0], places, file)
        return {**self._moved(main, file), "name": subgraph.name}

    def _moved(self, subgraph: Record, file: Record) -> Record:
        """Return a subgraph of another file with its buffers and operator codes as here."""
        tensors: list[Record] = subgraph["tensors"] or []
        operators: list[Record] = subgraph["operators"] or []
        return {
            **subgraph,
            "tensors": [
                {**tensor, "buffer": self._buffer(file["buffers"][int(tensor["buffer"])]["data"])}
                for tensor in tensors
            ],
            "operators": [
                {
                    **operator,
                    "opcode_index": self._code(file["operator_codes"][operator["opcode_index"]]),
                }
                for operator in operators
            ],
        }

    def _buffer(self, data: Any) -> int:
        """Return the place of contents; those that several subgraphs have are there once."""
        if data is None:
            return 0
        place = self._contents.setdefault(bytes(data), len(self._buffers))
        if place == len(self._buffers):
            self._buffers.append({"data": data})
        return place

    def _code(self, code: Record) -> int:
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def _metadata(self) -> list[Record]:
        metadata: dict[str, Any] = dict(self._model.metadata)
        for part in self._parts.values():
            metadata = part.network.metadata | metadata
        plan = self._plan()
        metadata = {name: data for name, data in metadata.items() if name != ALLOCATION}
        if plan is not None:
            metadata[ALLOCATION] = plan
        return [{"name": name, "buffer": self._buffer(data)} for name, data in metadata.items()]

    def _plan(self) -> Any:
        """Return the plan of the arena; None where the runtime plans all of it."""
        sizes = {index: part.arena_bytes for index, part in self._parts.items()}
        starts = arena_starts(self._model, sizes)
        offsets = [
            self._offsets(subgraph.index, starts[subgraph.index])
            for subgraph in self._model.subgraphs
        ]
        placed = any(offset != NOT_IN_ARENA for of_subgraph in offsets for offset in of_subgraph)
        return plan_of(offsets) if placed else None

    def _offsets(self, index: int, start: int) -> Sequence[int]:
        part = self._parts.get(index)
        if part is None:
            return [NOT_IN_ARENA] * len(self._model.subgraphs[index].tensors)
        main, contents = part.network.main, part.network.metadata.get(ALLOCATION)
        counts = [len(subgraph.tensors) for subgraph in part.network.subgraphs]
        plan = None if contents is None else split_plan(contents, counts)
        if plan is None or not any(operator.custom for operator in main.operators):
            return [NOT_IN_ARENA] * len(main.tensors)
        return [offset if offset == NOT_IN_ARENA else offset + start for offset in plan[0]]


def signatures(model: Model, parts: Mapping[int, Part]) -> list[Record] | None:
    """Return a network's signatures as they are where its subgraphs are `parts`; None for none."""
    records = [_signature(model, record, parts) for record in model.record["signature_defs"] or ()]
    return records or None


def _signature(model: Model, record: Record, parts: Mapping[int, Part]) -> Record:
    index = int(record["subgraph_index"])
    part = parts.get(index)
    if part is None:
        return record
    before, after = model.subgraphs[index], part.network.main
    inputs = dict(zip(before.inputs, after.inputs, strict=True))
    outputs = dict(zip(before.outputs, after.outputs, strict=True))
    return {
        **record,
        "inputs": _named(record["inputs"], inputs),
        "outputs": _named(record["outputs"], outputs),
    }


def _named(records: Sequence[Record] | None, places: Mapping[int, int]) -> list[Record]:
    return [
        {**record, "tensor_index": places[int(record["tensor_index"])]} for record in records or ()
    ]
