"""Pools over windows of [N,H,W,C], of the integers as they are.

Average pools of TFLite round the mean of the integers half away from zero: of the stored ones, not
of those less the zero point. AVG_POOL2D does the same with zero points of 0, because its
reciprocals are a little more than 1/n. Unsigned integers are positive, so that their zero points
are -128 here.
"""

from __future__ import annotations

from math import prod

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers, zero
from mizzen.frontends.tflite.lowering.requantization import activated
from mizzen.frontends.tflite.lowering.windows import Window, window_of
from mizzen.frontends.tflite.tflite_tensors import BYTE_OFFSET
from mizzen.graph import DType, Value

TYPES = (FileType.INT8, FileType.UINT8, FileType.INT16)

MOST_AVERAGED = {DType.INT8: 1 << 21, DType.INT16: 1 << 13}
"""Elements of a window up to which AVG_POOL2D's reciprocal is exact enough to round as division
does: its error, 2**-30 / n, times the sum must be less than the least distance 1 / 2n to a tie."""


@lowers("AVERAGE_POOL_2D")
def average(call: Call) -> Value:
    """Mean of each window, padding left out: [SLICE,] AVG_POOL2D [, CLAMP]."""
    window = _window(call)
    value, pad = window.lay(call.b, call.value())
    call.need(prod(window.kernel) < MOST_AVERAGED[value.dtype], "its window is too large")
    lowest = -BYTE_OFFSET if call.output().type is FileType.UINT8 else 0
    value = call.b(
        "AVG_POOL2D",
        value,
        zero(call.b, value.dtype, lowest),
        zero(call.b, value.dtype, lowest),
        kernel=window.kernel,
        stride=window.stride,
        pad=pad,
        acc_type=DType.INT32,
        quantization=kept(value),
    )
    return activated(call, value, call.quantization(call.output()))


@lowers("MAX_POOL_2D")
def maximum(call: Call) -> Value:
    """Greatest of each window: [SLICE,] MAX_POOL2D [, CLAMP]."""
    window = _window(call)
    value, pad = window.lay(call.b, call.value())
    value = call.b(
        "MAX_POOL2D",
        value,
        kernel=window.kernel,
        stride=window.stride,
        pad=pad,
        quantization=kept(value),
    )
    return activated(call, value, call.quantization(call.output()))


def _window(call: Call) -> Window:
    call.need_types(*TYPES)
    call.need(len(call.input(0).shape) == 4, "its input is no image")
    call.quantization(call.input(0))
    height, width = int(call.option("filter_height")), int(call.option("filter_width"))
    return window_of(call, (height, width))
