"""Operators that keep elements in their order and change the shape: one RESHAPE; and SHAPE."""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, lowers
from mizzen.graph import DType, Value


@lowers("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(call: Call) -> Value:
    """The same elements in the shape that the output has, also where that is computed."""
    call.need(call.input(0).type is call.output().type, "its output is of another type")
    return call.b("RESHAPE", call.value(), call.b.shape(call.output().shape))


@lowers("SHAPE")
def shape(call: Call) -> Value:
    """The extents of a tensor, which the file says: a constant."""
    call.need(call.output().type is FileType.INT32, "its extents are not INT32")
    return call.b.constant(np.array(call.input(0).shape), DType.INT32)
