"""TFLite networks in the form that the quantiser reads right, and ended where the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mizzen.flatbuffer import Record
from mizzen.package.tflite.real_weights import with_real_weights


def normal(record: Record) -> Record:
    """Return a network in today's form: the quantiser takes the operators of old files for ADD.

    Codes of operators are in both fields, weights in floating point, and no two tensors have one
    name, by which the quantiser knows them.
    Ref: TFLite, schema.fbs, OperatorCode.
    """
    record = with_real_weights(record) or record
    codes = [
        {**code, "builtin_code": max(code["deprecated_builtin_code"], code["builtin_code"])}
        for code in record["operator_codes"]
    ]
    main = record["subgraphs"][0]
    subgraph = {**main, "tensors": _renamed(main["tensors"])}
    return _without_waste({**record, "operator_codes": codes, "subgraphs": [subgraph]})


def _without_waste(record: Record) -> Record:
    """Return a network without the contents that no tensor has, as weights of 8 bits were."""
    held = [*record["subgraphs"][0]["tensors"], *(record["metadata"] or ())]
    used = {int(each["buffer"]) for each in held}
    buffers: list[Record] = list(record["buffers"])
    buffers = [each if place in used else {} for place, each in enumerate(buffers)]
    return {**record, "buffers": buffers}


def _renamed(tensors: Sequence[Record]) -> list[Record]:
    taken = set[str]()
    renamed: list[Record] = []
    for index, tensor in enumerate(tensors):
        name = str(tensor["name"] or f"tensor_{index}")
        while name in taken:
            name = f"{name}_{index}"
        taken.add(name)
        renamed.append({**tensor, "name": name})
    return renamed


def ended(record: Record, operators: Sequence[int]) -> Record:
    """Return a network that gives what some operators do, and what does not need them.

    Signatures go, whose outputs are others.
    """
    main = record["subgraphs"][0]
    listed: list[Record] = list(main["operators"])
    given = [int(index) for each in operators for index in listed[each]["outputs"]]
    behind = set(given)
    for operator in listed:
        if behind & _indices(operator["inputs"]):
            behind |= _indices(operator["outputs"])
    outputs = given + [int(index) for index in main["outputs"] if int(index) not in behind]
    needed, kept = set(outputs), list[Record]()
    for operator in reversed(listed):
        if needed & _indices(operator["outputs"]):
            kept.append(operator)
            needed |= _indices(operator["inputs"])
    subgraph = {**main, "operators": kept[::-1], "outputs": outputs}
    return {**record, "subgraphs": [subgraph], "signature_defs": None}


def _indices(given: Any) -> set[int]:
    return set() if given is None else {int(index) for index in given}
