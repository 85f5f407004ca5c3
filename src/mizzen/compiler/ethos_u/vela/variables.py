"""Keep what a network does with variables and subgraphs as the network says.

The compiler knows little of both. It orders operators by the tensors that they share, and by
nothing else: it reads a variable in front of or behind what is assigned to it as it comes, and
moves CALL_ONCE behind what depends on it. It makes NPU operators of all subgraphs at once, and says
nothing of those besides the main one. So operators on variables, and those that execute subgraphs,
are hidden from it, take a tensor more of each that must come first, and it sees one subgraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mizzen.compiler.ethos_u.variables import precedence
from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.memory_plan import ALLOCATION, NOT_IN_ARENA, plan_of, split_plan
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.subgraphs import CALLS
from mizzen.frontends.tflite.variables import VARIABLE_KINDS, handles

CALL_ONCE = int(BuiltinOperator.CALL_ONCE)

HIDDEN_KINDS = (VARIABLE_KINDS - {"VAR_HANDLE"}) | CALLS.keys()


def hidden_operators(model: Model) -> frozenset[int]:
    """Return the operators, by index, that the compiler must not see as what they are."""
    return frozenset(row.index for row in model.main.operators if row.kind in HIDDEN_KINDS)


@dataclass(frozen=True, slots=True)
class Bonds:
    """What the compiler is told besides, so that operators on variables keep their order.

    tensors  to add behind those of the main subgraph
    takes    operators by index to the tensors that they take besides their own; `gives` alike
    """

    tensors: list[Record] = field(default_factory=list[Record])
    takes: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    gives: dict[int, list[int]] = field(default_factory=dict[int, list[int]])


def bonds_of(model: Model) -> Bonds:
    """Return what binds operators on variables, as far as the tensors they share do not."""
    bonds, main = Bonds(), model.main
    makers = {tensor: row for row in main.operators for tensor in row.outputs}
    needed = _needed(model, makers)
    for index, earlier in precedence(model).items():
        if index not in needed:
            continue  # the compiler leaves it out, and what gives nothing else with it
        behind = _sources(main.operators[index].inputs, makers)
        for row in (main.operators[other] for other in earlier if other in needed - behind):
            if not row.outputs and row.index not in bonds.gives:
                bonds.gives[row.index] = [len(main.tensors) + len(bonds.tensors)]
                bonds.tensors.append(_token(row.index))
            shared = row.outputs or bonds.gives[row.index]
            bonds.takes.setdefault(index, []).extend(shared)
    return bonds


def _needed(model: Model, makers: Mapping[int, Operator]) -> set[int]:
    """Return the operators that the network's outputs depend on, or what is assigned."""
    main = model.main
    last = [row for row in main.operators if not row.outputs]
    tensors = [*main.outputs, *(index for row in last for index in row.inputs)]
    return {row.index for row in last} | _sources(tensors, makers)


def _sources(tensors: Iterable[int], makers: Mapping[int, Operator]) -> set[int]:
    """Return the operators that tensors depend on, by index."""
    found: set[int] = set()
    places = list(tensors)
    while places:
        row = makers.get(places.pop())
        if row is not None and row.index not in found:
            found.add(row.index)
            places += row.inputs
    return found


def _token(index: int) -> Record:
    """Return a tensor that says only that an operator has been executed."""
    return {
        "name": f"mizzen-done-{index}",
        "shape": [1],
        "type": int(TensorType.INT8),
        "buffer": 0,
        "quantization": {"scale": [1.0], "zero_point": [0]},
    }


def require_order(model: Model, places: Mapping[int, int]) -> None:
    """Check that a compiled network keeps the order of operators on variables. E306 if not.

    places  operators of the model by index to where they are in the compiled network
    """
    names = dict(handles(model.main))
    for index, earlier in precedence(model).items():
        row = model.main.operators[index]
        is_lost = index not in places and row.kind == "ASSIGN_VARIABLE"
        is_early = index in places and any(
            places.get(other, places[index]) > places[index] for other in earlier
        )
        if is_lost or is_early:
            raise fail(
                "E306",
                f"variable {names.get(row.inputs[0], ('', ''))[1]!r} must be read and assigned in "
                "the network's order, and the compiler changes it",
                origin=Origin(model.name),
                rule="Vela 5.2.0 orders operators by the tensors that they share",
                help="use the tensor that is assigned instead of reading the variable again",
            )


def with_called(compiled: bytes, model: Model) -> bytes:
    """Return a compiled network that fills variables first, and has the subgraphs of `model`."""
    if len(model.subgraphs) == 1:
        return compiled
    record = read(compiled, SCHEMA, model.name)
    main: Record = record["subgraphs"][0]
    operators: list[Record] = list(main["operators"])
    calls = [row for row in operators if _is_call(record, row)]
    main["operators"] = [*calls, *(row for row in operators if not _is_call(record, row))]
    for source in model.record["subgraphs"][1:]:
        record["subgraphs"].append(_copied(record, model.record, source))
    _leave_to_runtime(record)
    return write(record, SCHEMA)


def _leave_to_runtime(record: Record) -> None:
    """Let the runtime place the tensors of all subgraphs but the main one."""
    counts = [len(row["tensors"] or ()) for row in record["subgraphs"]]
    for row in record["metadata"] or ():
        if row["name"] == ALLOCATION:
            buffer: Record = record["buffers"][int(row["buffer"])]
            plan = split_plan(buffer["data"], counts[:1])
            assert plan is not None, "the compiler saw one subgraph"
            others = [[NOT_IN_ARENA] * count for count in counts[1:]]
            buffer["data"] = plan_of([*plan, *others])


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
