"""Cut a run of operators out of a network, as a network of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.tflite import DTYPES, SCHEMA, BuiltinOperator, TensorType

CALLERS = {
    BuiltinOperator.CALL,
    BuiltinOperator.CALL_ONCE,
    BuiltinOperator.IF,
    BuiltinOperator.WHILE,
}
"""Operators that execute other subgraphs, which go where they go."""

RESOURCES = {
    BuiltinOperator.ASSIGN_VARIABLE,
    BuiltinOperator.CALL_ONCE,
    BuiltinOperator.HASHTABLE,
    BuiltinOperator.HASHTABLE_FIND,
    BuiltinOperator.HASHTABLE_IMPORT,
    BuiltinOperator.READ_VARIABLE,
    BuiltinOperator.VAR_HANDLE,
}
"""Operators on state that is not a tensor."""

_EMPTY: Record = {}
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class Extract:
    """A part of a network.

    network  the bytes of its file
    inputs   tensors of the whole network that are the part's inputs, in its order; outputs alike
    """

    network: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def extract(
    record: Record,
    operators: Sequence[int],
    state: Sequence[int] = (),
    shown: Sequence[int] = (),
) -> Extract:
    """Return the network of some operators of the main subgraph, in ascending order.

    `record` is a network whose indices the front-end has checked. Inputs are what the operators
    read and do not compute, outputs what others read of them and what the whole network gives.
    Constants, quantisation, state and called subgraphs are kept; metadata is left out, since it
    says where the tensors of the whole network lie. E130 for state that others share, E131 for
    inputs and outputs that are no arrays.

    state  tensors that the operators keep, which become the part's last inputs and outputs too
    shown  tensors that they compute, which become outputs after those that others read
    """
    main = record["subgraphs"][0]
    every: list[Record] = main["operators"] or []
    chosen = [every[index] for index in operators]
    inputs = [*_inputs(record, main, chosen), *state]
    read = _outputs(main, every, operators)
    outputs = [*read, *(index for index in shown if index not in read), *state]
    _require_own_state(record, main, every, operators)
    _require_arrays(main, (*inputs, *outputs))
    part = _Part(record)
    subgraphs = [part.subgraph(main, chosen, inputs, outputs)]
    if any(_code_number(record, operator) in CALLERS for operator in chosen):
        subgraphs += [part.whole(subgraph) for subgraph in record["subgraphs"][1:]]
    return Extract(part.network(subgraphs), tuple(inputs), tuple(outputs))


def _inputs(record: Record, main: Record, chosen: Sequence[Record]) -> list[int]:
    """Return the tensors that must come from outside, in the order in which it is first read."""
    given = set(_indices(main["inputs"]))
    made: set[int] = set()
    needed: dict[int, None] = {}
    for operator in chosen:
        for index in _indices(operator["inputs"]):
            tensor = main["tensors"][index]
            kept = _is_constant(record, tensor) or (tensor["is_variable"] and index not in given)
            if index not in made and not kept:
                needed[index] = None
        made.update(_indices(operator["outputs"]))
    return list(needed)


def _outputs(main: Record, every: Sequence[Record], chosen: Sequence[int]) -> list[int]:
    """Return the tensors that are computed here and read elsewhere, in the order of computation."""
    inside = set(chosen)
    read = set(_indices(main["outputs"]))
    for index, operator in enumerate(every):
        if index not in inside:
            read.update(_indices(operator["inputs"]))
    made = [index for place in chosen for index in _indices(every[place]["outputs"])]
    return [
        index
        for index in dict.fromkeys(made)
        if index in read and not main["tensors"][index]["is_variable"]
    ]


def _require_own_state(
    record: Record, main: Record, every: Sequence[Record], chosen: Sequence[int]
) -> None:
    """Refuse a part whose state other operators work on too: each would have a state of its own."""
    inside: dict[str, int] = {}
    outside: dict[str, int] = {}
    for index, operator in enumerate(every):
        users = inside if index in chosen else outside
        users.update((what, index) for what in _state(record, main, operator))
    for what, index in inside.items():
        if what in outside:
            raise fail(
                "E130",
                f"{what} must belong to operators that run together on the CPU, not to operators "
                f"{index} and {outside[what]} with operators for the NPU between them",
                help="keep the operators between them on the CPU too, with `--ignore-ops`",
            )


def _state(record: Record, main: Record, operator: Record) -> Iterator[str]:
    """Name the state that an operator works on. Resources are one: they know each other by name."""
    for index in _indices(operator["inputs"]):
        tensor = main["tensors"][index]
        if tensor["is_variable"]:
            yield f'state tensor {index} "{tensor["name"]}"'
    code = _code_number(record, operator)
    executes = code in CALLERS and code != BuiltinOperator.CALL_ONCE
    if code in RESOURCES or (executes and _is_in_branches(record)):
        yield "the network's resources"


def _is_in_branches(record: Record) -> bool:
    """Whether a subgraph that is executed again and again works on resources."""
    once = BuiltinOperator.CALL_ONCE
    main: list[Record] = record["subgraphs"][0]["operators"] or []
    first = {
        int(operator["builtin_options"].fields["init_subgraph_index"])
        for operator in main
        if _code_number(record, operator) == once
    }
    return any(
        _code_number(record, operator) in RESOURCES
        for index, subgraph in enumerate(record["subgraphs"])
        for operator in subgraph["operators"] or ()
        if index and index not in first
    )


def _require_arrays(main: Record, indices: Sequence[int]) -> None:
    for index in indices:
        tensor = main["tensors"][index]
        if TensorType(tensor["type"]) not in DTYPES:
            raise fail(
                "E131",
                f'tensor {index} "{tensor["name"]}" must be an array to go from one part of the '
                f"network to another, not {TensorType(tensor['type']).name}",
                help="keep the operators around it on the CPU too, with `--ignore-ops`",
            )


class _Part:
    """A network under construction: the buffers and operator codes that its subgraphs refer to."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._buffers: dict[int, int] = {}
        self._codes: dict[int, int] = {}

    def network(self, subgraphs: list[Record]) -> bytes:
        codes, buffers = self._record["operator_codes"], self._record["buffers"]
        network: Record = {
            "version": self._record["version"],
            "operator_codes": [codes[index] for index in self._codes],
            "subgraphs": subgraphs,
            "buffers": [_EMPTY, *(buffers[index] for index in self._buffers)],
        }
        return write(network, SCHEMA)

    def subgraph(
        self, main: Record, chosen: list[Record], inputs: list[int], outputs: list[int]
    ) -> Record:
        """Return the main subgraph with the chosen operators and what they refer to."""
        used = dict.fromkeys(inputs)
        for operator in chosen:
            for field in ("inputs", "outputs", "intermediates"):
                used.update(dict.fromkeys(_indices(operator[field])))
        places = {index: place for place, index in enumerate(used)} | {_ABSENT: _ABSENT}
        return {
            "name": main["name"],
            "tensors": [self._tensor(main["tensors"][index]) for index in used],
            "inputs": _moved(inputs, places),
            "outputs": _moved(outputs, places),
            "operators": [self._operator(operator, places) for operator in chosen],
        }

    def whole(self, subgraph: Record) -> Record:
        """Return another subgraph as it is."""
        tensors: list[Record] = subgraph["tensors"] or []
        operators: list[Record] = subgraph["operators"] or []
        same = {index: index for index in range(_ABSENT, len(tensors))}
        return {
            **subgraph,
            "tensors": [self._tensor(tensor) for tensor in tensors],
            "operators": [self._operator(operator, same) for operator in operators],
        }

    def _tensor(self, tensor: Record) -> Record:
        contents = self._record["buffers"][tensor["buffer"]]["data"]
        if contents is None:
            return {**tensor, "buffer": 0}
        buffer = self._buffers.setdefault(tensor["buffer"], len(self._buffers) + 1)
        return {**tensor, "buffer": buffer}

    def _operator(self, operator: Record, places: dict[int, int]) -> Record:
        code = self._codes.setdefault(operator["opcode_index"], len(self._codes))
        moved = {
            field: _moved(operator[field], places)
            for field in ("inputs", "outputs", "intermediates")
            if operator[field] is not None
        }
        return {**operator, "opcode_index": code, **moved}


def _moved(indices: Iterable[Any], places: dict[int, int]) -> Any:
    return np.array([places[int(index)] for index in indices], np.int32)


def _indices(values: Any) -> list[int]:
    return [] if values is None else [int(index) for index in values if index != _ABSENT]


def _is_constant(record: Record, tensor: Record) -> bool:
    """Whether it has contents; those of a tensor without elements are nowhere in the file."""
    is_empty = tensor["shape"] is not None and 0 in tensor["shape"]
    return is_empty or record["buffers"][tensor["buffer"]]["data"] is not None


def _code_number(record: Record, operator: Record) -> int:
    code = record["operator_codes"][operator["opcode_index"]]
    return max(code["deprecated_builtin_code"], code["builtin_code"])
