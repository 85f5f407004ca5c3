"""Hide operators of a network from the compiler, and put them back into what it made.

The compiler leaves custom operators to the CPU without looking into them. An operator that it
cannot deal with is given to it as one, and takes its own type again in the compiled network. Those
on variables, and those that execute subgraphs, always are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from mizzen.compiler.ethos_u.vela.variables import (
    Bonds,
    bonds_of,
    hidden_operators,
    require_order,
    with_called,
)
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.model import ABSENT

CODE_PREFIX = "mizzen-operator-"
"""Starts the custom code of a hidden operator; its index in the model follows."""

_OWN_FIELDS = ("builtin_options", "builtin_options2", "custom_options", "custom_options_format")
_OLD_CODE_CUSTOM = int(BuiltinOperator.CUSTOM)


def mask(model: Model, hidden: Collection[int]) -> bytes:
    """Return the network with some operators of its main subgraph, by index, as custom ones."""
    hidden = hidden_operators(model).union(hidden)
    bonds = bonds_of(model)
    record = dict(model.record)
    codes: list[Record] = list(record["operator_codes"])
    main = dict(record["subgraphs"][0])
    operators: list[Record] = list(main["operators"])
    for index in sorted(hidden):
        operators[index] = {
            **_bound(operators[index], index, bonds),
            **dict.fromkeys(_OWN_FIELDS[:3]),
            "custom_options_format": 0,
            "opcode_index": len(codes),
        }
        codes.append(
            {
                "deprecated_builtin_code": _OLD_CODE_CUSTOM,
                "builtin_code": _OLD_CODE_CUSTOM,
                "custom_code": f"{CODE_PREFIX}{index}",
            }
        )
    main["operators"] = operators
    main["tensors"] = [*_without_booleans(model, hidden), *bonds.tensors]
    record["subgraphs"] = [main]
    record["operator_codes"] = codes
    return write(record, SCHEMA)


def unmask(compiled: bytes, model: Model, hidden: Collection[int]) -> bytes:
    """Return a compiled network with the operators of `model` that `mask` hid as they were."""
    hidden = hidden_operators(model).union(hidden)
    bonds = bonds_of(model)
    record = read(compiled, SCHEMA, model.name)
    codes: list[Record] = record["operator_codes"]
    own_codes: list[Record] = model.record["operator_codes"]
    originals: list[Record] = model.record["subgraphs"][0]["operators"]
    by_code = {f"{CODE_PREFIX}{index}": index for index in hidden}
    main: Record = record["subgraphs"][0]
    _restore_types(main, model)
    places: dict[int, int] = {}
    for place, operator in enumerate(main["operators"]):
        index = by_code.get(codes[int(operator["opcode_index"])]["custom_code"])
        if index is not None:
            places[index] = place
            original = originals[index]
            operator.update(_unbound(operator, index, bonds))
            operator.update({name: original[name] for name in _OWN_FIELDS})
            operator["intermediates"] = _intermediates(model, index, main["tensors"])
            operator["opcode_index"] = len(codes)
            codes.append(own_codes[int(original["opcode_index"])])
    require_order(model, places)
    return with_called(write(_without_unused_codes(record), SCHEMA), model)


def _bound(operator: Record, index: int, bonds: Bonds) -> Record:
    """Return an operator that also takes and gives what makes it keep its order."""
    return {
        **operator,
        "inputs": [*_listed(operator["inputs"]), *bonds.takes.get(index, ())],
        "outputs": [*_listed(operator["outputs"]), *bonds.gives.get(index, ())],
    }


def _unbound(operator: Record, index: int, bonds: Bonds) -> Record:
    """Return what an operator itself takes and gives."""
    taken, given = _listed(operator["inputs"]), _listed(operator["outputs"])
    return {
        "inputs": taken[: len(taken) - len(bonds.takes.get(index, ()))],
        "outputs": given[: len(given) - len(bonds.gives.get(index, ()))],
    }


def _listed(field: Sequence[int] | None) -> list[int]:
    """Return indices of tensors, which a file may leave out."""
    return [] if field is None else [int(index) for index in field]


def _without_booleans(model: Model, hidden: Collection[int]) -> list[Record]:
    """Return the tensors, inputs and outputs of the network that only hidden operators use as INT8.

    The compiler converts boolean ones with operators of its own, which it then cannot place.
    """
    main = model.main
    shown = {
        index
        for operator in main.operators
        if not operator.custom and operator.index not in hidden
        for index in (*operator.inputs, *operator.outputs)
    }
    interface = {*main.inputs, *main.outputs} - shown
    tensors: list[Record] = list(model.record["subgraphs"][0]["tensors"])
    for index in interface:
        if main.tensors[index].type is TensorType.BOOL:
            tensors[index] = {**tensors[index], "type": int(TensorType.INT8)}
    return tensors


def _restore_types(main: Record, model: Model) -> None:
    """Set the types of the network's inputs and outputs as they were."""
    for name, indices in (("inputs", model.main.inputs), ("outputs", model.main.outputs)):
        for place, index in zip(main[name], indices, strict=True):
            main["tensors"][int(place)]["type"] = int(model.main.tensors[index].type)


def _intermediates(model: Model, index: int, tensors: Sequence[Record]) -> Any:
    """Find the tensors that carry only a quantisation again, by their names."""
    intermediates = model.main.operators[index].intermediates
    places = {str(tensor["name"]): place for place, tensor in enumerate(tensors)}
    names = [tensor.name for tensor in model.main.present(intermediates)]
    found = [places.get(name, ABSENT) for name in names]
    return np.array(found, np.int32) if found else None


def _without_unused_codes(record: Record) -> Record:
    """Drop operator codes that no operator has any more."""
    operators = [row for subgraph in record["subgraphs"] for row in subgraph["operators"] or ()]
    used = sorted({int(operator["opcode_index"]) for operator in operators})
    for operator in operators:
        operator["opcode_index"] = used.index(int(operator["opcode_index"]))
    record["operator_codes"] = [record["operator_codes"][index] for index in used]
    return record
