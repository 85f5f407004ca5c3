"""Put back how a network's variables are filled at first, and see that they are read in time.

It moves CALL_ONCE behind operators that read what the called subgraph assigns, and on Ethos-U85
makes NPU operators of that subgraph, whose results reach no variable. It also reads a variable
before what is assigned to it in the same inference, which nothing here can put right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mizzen.artifact.ethos_u import ALLOCATION, NOT_IN_ARENA
from mizzen.artifact.steps import is_npu, read_network
from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator
from mizzen.frontends.tflite import Model

HEAD_WORDS = 3
"""Of the plan in front of the offsets: version, subgraphs, tensors of all of them.
Ref: TFLite Micro, micro_allocation_info.cc."""

CALL_ONCE = int(BuiltinOperator.CALL_ONCE)


def initialised(compiled: bytes, model: Model) -> bytes:
    """Return a compiled network that fills variables first, and as `model` does.

    One without NPU operators that reads variables in another order becomes the model as it was;
    E306 if there are some.
    """
    before = _reads(model)
    if before:
        network = read_network(compiled, model.name)
        if before != _reads(network) and not any(is_npu(row) for row in network.main.operators):
            return write(model.record, SCHEMA)
        _require_order(before, network)
    if not any(row.kind == "CALL_ONCE" for row in model.main.operators):
        return compiled
    record = read(compiled, SCHEMA, model.name)
    main: Record = record["subgraphs"][0]
    operators: list[Record] = list(main["operators"])
    calls = [row for row in operators if _is_call(record, row)]
    main["operators"] = [*calls, *(row for row in operators if not _is_call(record, row))]
    plan = _Plan(record)
    theirs = [row for row in model.main.operators if row.kind == "CALL_ONCE"]
    for call, original in zip(calls, theirs, strict=True):
        place = int(call["builtin_options"].fields["init_subgraph_index"])
        source = model.record["subgraphs"][original.options["init_subgraph_index"]]
        record["subgraphs"][place] = _copied(record, model.record, source)
        plan.leave_to_runtime(place)
    plan.store()
    return write(record, SCHEMA)


class _Plan:
    """Where the tensors of each subgraph lie in the arena, as the metadata say in one row."""

    def __init__(self, record: Record) -> None:
        self._record = record
        rows = [row for row in record["metadata"] or () if row["name"] == ALLOCATION]
        self._buffers = [record["buffers"][int(row["buffer"])] for row in rows]
        words = [np.frombuffer(bytes(row["data"]), np.int32) for row in self._buffers]
        ends = np.cumsum([len(row["tensors"]) for row in record["subgraphs"]])[:-1]
        self._heads = [row[:HEAD_WORDS] for row in words]
        self._offsets = [np.split(row[HEAD_WORDS:], ends) for row in words]

    def leave_to_runtime(self, place: int) -> None:
        """Let the runtime place the tensors of a subgraph."""
        count = len(self._record["subgraphs"][place]["tensors"])
        for offsets in self._offsets:
            offsets[place] = np.full(count, NOT_IN_ARENA, np.int32)

    def store(self) -> None:
        """Write the plan to the network's metadata."""
        for buffer, head, offsets in zip(self._buffers, self._heads, self._offsets, strict=True):
            found = np.concatenate(offsets)
            count = np.array([len(found)], np.int32)
            buffer["data"] = np.concatenate([head[:2], count, found]).view(np.uint8)


def _require_order(before: Mapping[str, list[int]], network: Model) -> None:
    """Refuse a network that reads a variable before what the model assigns first. E306."""
    for name, assigned in _reads(network).items():
        if assigned != before.get(name, assigned):
            raise fail(
                "E306",
                f"variable {name!r} must be read behind what is assigned to it in the same "
                "inference, and the compiler reads it in front",
                origin=Origin(network.name),
                rule="Vela 5.2.0 orders operators by the tensors that they share",
                help="take the tensor that is assigned instead of reading the variable again",
            )


def _reads(model: Model) -> dict[str, list[int]]:
    """Return, for each variable, how often it has been assigned before each time it is read."""
    main = model.main
    names: dict[int, str] = {}
    assigned: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for row in main.operators:
        if row.kind == "VAR_HANDLE":
            names[row.outputs[0]] = row.options["shared_name"] or ""
        elif row.kind == "READ_VARIABLE":
            name = names.get(row.inputs[0], "")
            found.setdefault(name, []).append(assigned.get(name, 0))
        elif row.kind == "ASSIGN_VARIABLE":
            name = names.get(row.inputs[0], "")
            assigned[name] = assigned.get(name, 0) + 1
    return {name: sorted(rows) for name, rows in found.items()}


def _is_call(record: Record, operator: Record) -> bool:
    code = record["operator_codes"][int(operator["opcode_index"])]
    return max(code["deprecated_builtin_code"], code["builtin_code"]) == CALL_ONCE


def _copied(target: Record, source: Record, subgraph: Record) -> Record:
    """Return a subgraph of one network for another, which gets the codes and contents it has."""
    buffers, codes = target["buffers"], target["operator_codes"]

    def tensor(row: Record) -> Record:
        contents = source["buffers"][row["buffer"]]
        if contents["data"] is None:
            return {**row, "buffer": 0}
        buffers.append(contents)
        return {**row, "buffer": len(buffers) - 1}

    def operator(row: Record) -> dict[str, Any]:
        codes.append(source["operator_codes"][int(row["opcode_index"])])
        return {**row, "opcode_index": len(codes) - 1}

    return {
        **subgraph,
        "tensors": [tensor(row) for row in subgraph["tensors"] or ()],
        "operators": [operator(row) for row in subgraph["operators"] or ()],
    }
