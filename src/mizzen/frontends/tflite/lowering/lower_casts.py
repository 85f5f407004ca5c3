"""CAST between integers, which keeps the low bits, and BOOL.

Unsigned bytes are 128 less in the graph: as bits, the upper one is flipped.

Ref: TFLite Micro, kernels/cast.cc.
"""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import INTEGERS, Call, lowers
from mizzen.frontends.tflite.lowering.requantization import IDENTITY, reach, rescale
from mizzen.frontends.tflite.tflite_tensors import DTYPES
from mizzen.graph import DType, Value

WIDE = (FileType.INT16, FileType.INT32)


@lowers("CAST")
def cast(call: Call) -> Value:
    """The integers in another type: CAST; of unsigned bytes RESCALE (128 on), of and to them
    BITWISE_XOR."""
    before, after = call.input(0).type, call.output().type
    call.need(before in INTEGERS and after in INTEGERS, f"it casts {before.name} to {after.name}")
    value, to = call.value(), DTYPES[after]
    if before is FileType.UINT8 and after in WIDE:
        bound = reach(value.dtype, -128)
        return rescale(call.b, value, IDENTITY, to, bound=bound, zero_points=(-128, 0))
    if before is FileType.UINT8:
        value = _flipped(call, value)
    if value.dtype is not to:
        value = call.b("CAST", value, dtype=to)
    return _flipped(call, value) if after is FileType.UINT8 else value


def _flipped(call: Call, value: Value) -> Value:
    bit = call.b.constant(np.full((1,) * value.type.rank, -128), DType.INT8)
    return call.b("BITWISE_XOR", value, bit)
