"""How far a TFLite network's tensors may be off in Vela's code; our own code is exact."""

from __future__ import annotations

from mizzen.frontends.tflite import Model, Operator
from mizzen.targets.bounds import Bound
from mizzen.targets.ethos_u.legal.tflite_bounds import bound_of, scaled_apart


def bounds_of(model: Model) -> dict[int, Bound]:
    """Return how far tensors, by index, may be from TFLite Micro's; the others are exact."""
    main = model.main
    return {
        row.outputs[0]: bound
        for row in main.operators
        if row.outputs
        and (bound := bound_of(row.kind, main.tensors[row.outputs[0]].type.name)) is not None
        and (row.kind != "FULLY_CONNECTED" or _scaled_apart(model, row))
    }


def _scaled_apart(model: Model, operator: Operator) -> bool:
    tensors = model.main.tensors
    rows = [tensors[index].quantization for index in (*operator.inputs[:2], operator.outputs[0])]
    if any(row is None or not row.scale for row in rows):
        return False
    data, weights, result = (row.scale for row in rows if row is not None)
    return scaled_apart(data[0], weights, result[0])
