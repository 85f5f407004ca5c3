"""A layer of a TFLite network alone, as it is or with another number of channels.

Weights of more channels repeat those that are there, so that they compress about as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from mizzen.flatbuffer import Member, Record
from mizzen.frontends.tflite import Model, Operator, Quantization, Tensor
from mizzen.package.tflite.builder import NetworkBuilder


class Axis(Enum):
    """Which channels are changed."""

    OUTPUT = "output channels"
    INPUT = "input channels"
    BOTH = "channels"
    """Of a depthwise convolution, which gives what it takes."""


@dataclass(frozen=True, slots=True)
class Form:
    """Where a type of operator has its channels: axes of its input, weights, bias and output."""

    axis: Axis
    input: int | None
    weights: int
    bias: int | None
    output: int | None


FORMS: dict[str, tuple[Form, ...]] = {
    "CONV_2D": (
        Form(Axis.OUTPUT, None, 0, 0, 3),
        Form(Axis.INPUT, 3, 3, None, None),
    ),
    "DEPTHWISE_CONV_2D": (Form(Axis.BOTH, 3, 3, 0, 3),),
    "FULLY_CONNECTED": (Form(Axis.OUTPUT, None, 0, 0, -1),),
}
"""Types of operators that have neighbours. Ref: TFLite's schema, shapes of weights."""


def forms_of(model: Model, operator: Operator) -> tuple[Form, ...]:
    """Return the channels of an operator that can be changed; those of constant weights."""
    forms = FORMS.get(operator.kind, ())
    if not forms or len(model.main.present(operator.inputs[:2])) < 2:
        return ()
    source, weights = model.main.present(operator.inputs[:2])
    if weights.values is None or source.data is not None:
        return ()
    if operator.kind == "DEPTHWISE_CONV_2D" and source.shape[3] != weights.shape[3]:
        return ()
    return forms


def channels_of(model: Model, operator: Operator, form: Form) -> int:
    """Return how many channels there are now."""
    return model.main.tensors[operator.inputs[1]].shape[form.weights]


def neighbour(model: Model, operator: Operator, form: Form, channels: int) -> bytes:
    """Return a network of the operator alone, with so many channels."""
    tensors = model.main.tensors
    weights = tensors[operator.inputs[1]]
    place = _quantized_axis(weights)
    net = NetworkBuilder(f"{operator.kind} {form.axis.value} {channels}")
    source = _sized(tensors[operator.inputs[0]], form.input, channels)
    target = _sized(tensors[operator.outputs[0]], form.output, channels)
    inputs = [_add(net, source), _constant(net, weights, form.weights, channels, place)]
    for index in operator.inputs[2:3]:
        if index >= 0:
            inputs.append(_constant(net, tensors[index], form.bias, channels, 0))
    output = _add(net, target)
    net.operator(operator.kind, inputs, [output], _options(model, operator),
                 version=operator.version)  # fmt: skip
    return net.finish([inputs[0]], [output])


def _options(model: Model, operator: Operator) -> tuple[str, Record] | None:
    record = model.record["subgraphs"][0]["operators"][operator.index]["builtin_options"]
    return (record.table, record.fields) if isinstance(record, Member) else None


def _sized(tensor: Tensor, axis: int | None, channels: int) -> Tensor:
    if axis is None:
        return tensor
    shape: list[int] = list(tensor.shape)
    shape[axis] = channels
    return replace(tensor, shape=tuple(shape))


def _add(net: NetworkBuilder, tensor: Tensor) -> int:
    assert tensor.dtype is not None, "a layer's maps are arrays"
    scales, zeros = _scales(tensor.quantization)
    return net.tensor(tensor.name, tensor.shape, tensor.dtype, scales, zeros)


def _constant(
    net: NetworkBuilder, tensor: Tensor, axis: int | None, channels: int, place: int
) -> int:
    values = tensor.values
    assert values is not None, "the form is one of constant weights"
    scales, zeros = _scales(tensor.quantization)
    if axis is not None:
        order = [index % tensor.shape[axis] for index in range(channels)]
        values = np.take(values, order, axis)
        if scales is not None and len(scales) > 1 and axis % values.ndim == place:
            scales = [scales[index] for index in order]
            zeros = [zeros[index] for index in order]
    return net.constant(tensor.name, values, scales, zeros, axis=place)


def _quantized_axis(tensor: Tensor) -> int:
    return 0 if tensor.quantization is None else tensor.quantization.axis


def _scales(quantization: Quantization | None) -> tuple[list[float] | None, list[int]]:
    if quantization is None or not quantization.scale:
        return None, [0]
    zeros = quantization.zero_point or (0,) * len(quantization.scale)
    return list(quantization.scale), list(zeros)


STEPS = (8, 16, 32)
"""Numbers of channels at multiples of which machines fill their arrays and their memory."""


def counts_around(channels: int) -> Sequence[int]:
    """Return the numbers of channels worth trying around one, in ascending order."""
    counts = {channels - 1, channels, channels + 1}
    for step in STEPS:
        counts |= {(channels - 1) // step * step, -(-channels // step) * step}
    return sorted(count for count in counts if count > 0)
