"""Resource variables of a network: their handles, and what they hold at first.

Ref: TFLite Micro, micro_resource_variable.cc (what a variable holds before it is assigned),
kernels/call_once.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.frontends.tflite.model import Model, Operator, Subgraph, Tensor

Array = npt.NDArray[Any]

VARIABLE_KINDS = frozenset(("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"))
"""Operators on variables, and the one that fills them."""

Name = tuple[str, str]
"""A variable's container, and its name there."""


def handles(subgraph: Subgraph) -> Iterator[tuple[int, Name]]:
    """Return the tensors of a subgraph that are handles, and whose."""
    for operator in subgraph.operators:
        if operator.kind == "VAR_HANDLE":
            yield (
                operator.outputs[0],
                (operator.options["container"] or "", operator.options["shared_name"] or ""),
            )


def assigned_last(subgraph: Subgraph) -> dict[int, int]:
    """Return, for handles of a subgraph, the tensor whose value the variable has at its end.

    Of a variable with several handles all of them have it.
    """
    names = dict(handles(subgraph))
    values = {
        names[operator.inputs[0]]: operator.inputs[1]
        for operator in subgraph.operators
        if operator.kind == "ASSIGN_VARIABLE" and operator.inputs[0] in names
    }
    return {handle: values[name] for handle, name in names.items() if name in values}


def held_unassigned(tensor: Tensor) -> Array:
    """Return the contents of a variable that was never assigned: bytes of the number for zero."""
    dtype = tensor.dtype or np.dtype(np.uint8)
    zero = tensor.quantization.zero_point[0] if tensor.quantization else 0
    values = np.zeros(tensor.shape, dtype)
    values.view(np.uint8)[...] = zero & 0xFF
    return values


def is_in_branches(model: Model) -> bool:
    """Whether a subgraph besides the main one, and those for CALL_ONCE, uses variables."""
    calls = (call for call in model.main.operators if call.kind == "CALL_ONCE")
    known = {0, *(int(call.options["init_subgraph_index"]) for call in calls)}
    return any(
        operator.kind in VARIABLE_KINDS
        for index, subgraph in enumerate(model.subgraphs)
        for operator in subgraph.operators
        if index not in known
    )


def assigned_once(model: Model, call: Operator) -> dict[Name, Array] | None:
    """Return the values that a CALL_ONCE assigns; None if it does anything but assign constants."""
    assigned: dict[Name, Array] = {}
    subgraph = model.subgraphs[int(call.options["init_subgraph_index"])]
    names = dict(handles(subgraph))
    for operator in subgraph.operators:
        if operator.kind == "VAR_HANDLE":
            continue
        values = None
        if operator.kind == "ASSIGN_VARIABLE" and operator.inputs[0] in names:
            values = subgraph.tensors[operator.inputs[1]].values
        if values is None:
            return None
        assigned[names[operator.inputs[0]]] = values
    return assigned
