"""Operators that keep elements in their order and change the shape: one RESHAPE."""

from __future__ import annotations

from mizzen.frontends.tflite.context import Call, lowers
from mizzen.graph import Value


@lowers("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(call: Call) -> Value:
    """The same elements in the shape that the output has."""
    call.need(call.input(0).type is call.output().type, "its output is of another type")
    return call.b("RESHAPE", call.value(), call.b.shape(call.output().shape))
