"""Convolutions of a draft as numbers: dense weights, and how a window lies on its input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.flatbuffer.tflite import Padding, TensorType

CONVOLUTION = "CONV_2D"
DEPTHWISE = "DEPTHWISE_CONV_2D"


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """A convolution of int8 data by constant weights, whatever its operator.

    weights  [O, kh, kw, I], those of a depthwise convolution with zeros between channels
    scales   of the weights, one or O of them
    bias     [O], or None
    """

    step: Step
    weights: Array
    scales: Array
    bias: Array | None
    stride_w: int

    @property
    def same(self) -> bool:
        """Whether its input is padded."""
        return int(self.step.fields["padding"]) == Padding.SAME

    @property
    def left(self) -> int:
        """Columns that are padded before the input."""
        columns, results = self.step.data.shape[2], self.step.result.shape[2]
        return left_of(self.same, columns, results, self.weights.shape[2], self.stride_w)


def left_of(same: bool, columns: int, results: int, window: int, stride: int) -> int:
    """Return how many columns TFLite pads before the input. Ref: TFLite, `padding.h`."""
    return max((results - 1) * stride + window - columns, 0) // 2 if same else 0


def convolution_of(step: Step) -> Convolution | None:
    """Return an operator as a convolution; None if it is not one of int8 without dilation."""
    if step.kind not in (CONVOLUTION, DEPTHWISE) or len(step.inputs) < 2:
        return None
    data, weights = step.data, step.inputs[1]
    bias = step.inputs[2] if len(step.inputs) > 2 else None
    if weights is None or weights.values is None or len(data.shape) != 4 or data.shape[0] != 1:
        return None
    if bias is not None and (bias.values is None or bias.type is not TensorType.INT32):
        return None
    if {data.type, weights.type, step.result.type} != {TensorType.INT8}:
        return None
    dilated = max(int(step.fields["dilation_w_factor"]), int(step.fields["dilation_h_factor"])) > 1
    if dilated or not weights.scales.size or weights.zero_points.any():
        return None
    values = weights.values
    if step.kind == CONVOLUTION and values.shape[3] != data.channels:
        return None  # groups
    dense = values if step.kind == CONVOLUTION else _dense(values, data.channels)
    numbers = None if bias is None else bias.values
    return Convolution(step, dense, weights.scales, numbers, int(step.fields["stride_w"]))


def _dense(weights: Array, channels: int) -> Array:
    """Return the weights of a depthwise convolution, [1, kh, kw, O], as those of a CONV_2D."""
    _, height, width, outputs = weights.shape
    dense = np.zeros((outputs, height, width, channels), weights.dtype)
    places: Array = np.arange(outputs, dtype=np.intp)
    dense[places, :, :, places // (outputs // channels)] = weights[0].transpose(2, 0, 1)
    return dense


def set_convolution(
    draft: Draft,
    convolution: Convolution,
    weights: Array,
    *,
    scales: Array,
    bias: Array | None,
    stride_w: int,
) -> None:
    """Make an operator a CONV_2D of other weights; its padding word stays."""
    step = convolution.step
    old = step.inputs[1]
    assert old is not None, "a convolution has weights"
    made = draft.constant(old, np.ascontiguousarray(weights), scales, 0)
    step.inputs[1] = made
    if bias is not None and (before := step.inputs[2]) is not None:
        step.inputs[2] = draft.constant(before, bias, _bias_scales(before, bias.size, scales), 0)
    step.fields = {
        "padding": step.fields["padding"],
        "stride_w": stride_w,
        "stride_h": step.fields["stride_h"],
        "fused_activation_function": step.fields["fused_activation_function"],
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
    }
    step.kind, step.table = CONVOLUTION, "Conv2DOptions"


def _bias_scales(bias: Wire, size: int, scales: Array) -> Array | None:
    """Return scales of a bias of another size: nothing reads them, they are input times weights."""
    before = bias.scales
    if before.size <= 1 or not before.size:
        return None
    return np.resize(before, size) if scales.size > 1 else before[:1]
