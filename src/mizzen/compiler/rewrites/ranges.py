"""What the channels of maps can be, whatever the network's input is: intervals of integers.

A channel whose interval is one number is constant. Bounds are computed in real numbers, and are
taken for an integer only where they are not close to the middle between two: kernels round in
several ways, and no bound may depend on which. Ref: TFLite, quantization specification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.windows import CONVOLUTION, DEPTHWISE
from mizzen.flatbuffer.tflite import ActivationFunctionType, TensorType

LOWEST, HIGHEST = -128, 127

MARGIN = 0.05
"""Of a step of the output: what roundings of a kernel before the last differ by is far less."""

DENSE = "FULLY_CONNECTED"
POOLS = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D"})


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """The least and the greatest that each channel can be, [C] both."""

    low: Array
    high: Array


def ranges_of(draft: Draft) -> dict[Wire, Range]:
    """Return the ranges of int8 maps; of others it is that of the type."""
    ranges: dict[Wire, Range] = {}
    for step in draft.steps:
        data = ranges.get(step.inputs[0]) if step.inputs and step.inputs[0] else None
        if step.kind in (CONVOLUTION, DEPTHWISE, DENSE):
            made = _weighted(step, ranges)
        elif step.kind in POOLS and _is_plain(step):
            made = data
        else:
            made = data if step.kind == "RESHAPE" and _keeps_channels(step) else None
        if made is not None:
            ranges[step.result] = made
    return ranges


def _keeps_channels(step: Step) -> bool:
    """Whether a RESHAPE leaves the channels what they are: only extents of 1 come and go."""
    shapes = (step.data.shape, step.result.shape)
    one, other = ([extent for extent in shape[:-1] if extent != 1] for shape in shapes)
    return one == other and step.data.channels == step.result.channels


def _is_plain(step: Step) -> bool:
    """Whether a pool gives numbers between those that it takes."""
    return int(step.fields.get("fused_activation_function", 0)) == ActivationFunctionType.NONE


def rows_of(step: Step) -> Array | None:
    """Return constant int8 weights as [O, window, I]; those of a depthwise as [O, window, 1]."""
    weights = step.inputs[1] if len(step.inputs) > 1 else None
    if weights is None or weights.values is None or weights.type is not TensorType.INT8:
        return None
    values = weights.values
    if step.kind == DEPTHWISE:
        return values[0].reshape(-1, values.shape[3]).T[:, :, np.newaxis]
    channels = step.data.channels
    if step.kind == CONVOLUTION and values.shape[3] != channels:
        return None  # groups
    return values.reshape(values.shape[0], -1, channels) if not values[0].size % channels else None


def _weighted(step: Step, known: dict[Wire, Range]) -> Range | None:
    """Bound a sum of products by its terms: each between its two ends, or padding, which is 0."""
    weights = rows_of(step)
    if weights is None or not _is_quantized(step):
        return None
    zero = int(step.data.zero_points[0])
    outputs = weights.shape[0]
    given = known.get(step.data) or _anything(step.data.channels)
    low, high = (np.asarray(bound, np.int64) - zero for bound in (given.low, given.high))
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    if step.kind == DEPTHWISE:
        repeats = outputs // step.data.channels
        low, high = (np.repeat(bound, repeats)[:, np.newaxis, np.newaxis] for bound in (low, high))
    wide = weights.astype(np.int64)
    least = np.minimum(wide * low, wide * high).sum((1, 2))
    most = np.maximum(wide * low, wide * high).sum((1, 2))
    bias = step.inputs[2] if len(step.inputs) > 2 else None
    if bias is not None:
        if bias.values is None:
            return None
        least, most = least + bias.values, most + bias.values
    return _requantized(step, least, most)


def _is_quantized(step: Step) -> bool:
    weights = step.inputs[1]
    maps = (step.data, step.result)
    return (
        all(wire.type is TensorType.INT8 and wire.scales.size == 1 for wire in maps)
        and weights is not None
        and weights.scales.size > 0
        and not weights.zero_points.any()
    )


def _anything(channels: int) -> Range:
    return Range(np.full(channels, LOWEST), np.full(channels, HIGHEST))


def _requantized(step: Step, least: Array, most: Array) -> Range | None:
    weights, result = step.inputs[1], step.result
    assert weights is not None, "an operator with weights"
    zero, scale = int(result.zero_points[0]), float(result.scales[0])
    bounds = _activation(step, scale, zero)
    if bounds is None:
        return None
    factor = float(step.data.scales[0]) * weights.scales.astype(np.float64) / scale
    low = np.rint(least * factor - MARGIN).astype(np.int64) + zero
    high = np.rint(most * factor + MARGIN).astype(np.int64) + zero
    return Range(np.clip(low, *bounds), np.clip(high, *bounds))


def _activation(step: Step, scale: float, zero: int) -> tuple[int, int] | None:
    """Return the bounds of a fused activation, a step wider where one is not an integer."""
    match int(step.fields.get("fused_activation_function", 0)):
        case ActivationFunctionType.NONE:
            return LOWEST, HIGHEST
        case ActivationFunctionType.RELU:
            return max(LOWEST, zero), HIGHEST
        case ActivationFunctionType.RELU6:
            return max(LOWEST, zero), min(HIGHEST, int(np.rint(6 / scale)) + zero + 1)
        case _:
            return None
