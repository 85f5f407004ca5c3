"""Let biases fit in their integers where the weights of a channel are next to nothing.

Batch normalisation that is folded into a convolution leaves channels with weights of 1e-30 beside a
bias of 1. The scale of a bias is that of its weights times that of the input, so it saturates, and
the channel gives another number. TensorFlow's converter widens the scale of such weights, which
lose nothing: so does this.
Ref: TFLite, tools/optimize/quantization_utils.cc, AdjustWeightsForBiasScale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Record
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator, Tensor

Array = npt.NDArray[Any]

LARGEST = float(1 << 30)
"""Of a bias, so that sums have as much room."""

AXES = {"CONV_2D": 0, "FULLY_CONNECTED": 0, "DEPTHWISE_CONV_2D": 3}
"""Where the weights of operators have their channels."""

WIDE = (TensorType.INT32, TensorType.INT64)
MOST_WEIGHT = 127
WEIGHTS, BIAS = 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """An operator whose biases do not fit: its tensors, and what weights and biases stand for."""

    source: Tensor
    weights: Tensor
    bias: Tensor
    real_weights: Array
    real_bias: Array
    axis: int


def with_room(quantised: Model, floating: Model) -> Record | None:
    """Return a quantised network whose biases fit; None where they do."""
    layers = [layer for layer in _layers(quantised, floating) if (_needed(layer) > 1).any()]
    if not layers:
        return None
    main = quantised.record["subgraphs"][0]
    tensors: list[Record] = list(main["tensors"])
    buffers: list[Record] = list(quantised.record["buffers"])
    for layer in layers:
        scales = np.asarray(_scales(layer) * np.maximum(_needed(layer), 1), np.float32)
        along = [1] * layer.real_weights.ndim
        along[layer.axis] = -1
        weights = np.rint(layer.real_weights / scales.reshape(along))
        bias = np.rint(layer.real_bias / (_scale_of(layer.source) * scales.astype(np.float64)))
        for tensor, values, own in (
            (layer.weights, np.clip(weights, -MOST_WEIGHT, MOST_WEIGHT), scales),
            (layer.bias, np.clip(bias, -LARGEST, LARGEST), _scale_of(layer.source) * scales),
        ):
            record = tensors[tensor.index]
            quantization = {**record["quantization"], "scale": np.asarray(own, np.float32)}
            stored = np.ascontiguousarray(values.astype(tensor.dtype)).reshape(-1).view(np.uint8)
            place = _place(record["buffer"], tensors, buffers)
            buffers[place] = {**buffers[place], "data": stored}
            tensors[tensor.index] = {**record, "quantization": quantization, "buffer": place}
    changed = {**main, "tensors": tensors}
    return {**quantised.record, "buffers": buffers, "subgraphs": [changed]}


def _place(own: int, tensors: Sequence[Record], buffers: list[Record]) -> int:
    """Return the place for a tensor's contents: its own, or a new one where others have it too."""
    if sum(tensor["buffer"] == own for tensor in tensors) == 1:
        return own
    buffers.append({"data": None})
    return len(buffers) - 1


def _layers(quantised: Model, floating: Model) -> Iterator[_Layer]:
    known = {tensor.name: tensor.values for tensor in floating.main.tensors}
    used = [index for operator in quantised.main.operators for index in operator.inputs]
    for operator in quantised.main.operators:
        layer = _layer(quantised, operator, known)
        if layer is not None and used.count(layer.weights.index) == 1:
            yield layer


def _layer(model: Model, operator: Operator, known: dict[str, Array | None]) -> _Layer | None:
    if operator.kind not in AXES or len(operator.inputs) <= BIAS or min(operator.inputs) < 0:
        return None
    source, weights, bias = (model.main.tensors[index] for index in operator.inputs[: BIAS + 1])
    pair = known.get(weights.name), known.get(bias.name)
    if weights.type is not TensorType.INT8 or bias.type not in WIDE:
        return None
    if source.quantization is None or weights.quantization is None or bias.data is None:
        return None
    if pair[0] is None or pair[1] is None or pair[0].dtype != np.float32:
        return None
    return _Layer(source, weights, bias, pair[0], pair[1], AXES[operator.kind])


def _scale_of(tensor: Tensor) -> float:
    assert tensor.quantization is not None, "a layer's tensors are quantised"
    return tensor.quantization.scale[0]


def _scales(layer: _Layer) -> Array:
    """Return the scale of the weights of each channel."""
    assert layer.weights.quantization is not None, "a layer's tensors are quantised"
    scales = np.asarray(layer.weights.quantization.scale, np.float64)
    return np.broadcast_to(scales, layer.real_bias.shape)


def _needed(layer: _Layer) -> Array:
    """Return how many times larger the scale of each channel's weights must be."""
    steps = np.abs(layer.real_bias.astype(np.float64)) / (_scale_of(layer.source) * _scales(layer))
    return steps / LARGEST
