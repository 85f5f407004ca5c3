"""Multiply-accumulates of an operator, from shapes alone."""

from __future__ import annotations

import math

from mizzen.frontends.tflite.model import Model, Operator, Tensor

LSTM_GATES = 4


def macs(model: Model, operator: Operator) -> int:
    """Count the multiply-accumulates of one inference; 0 for operators that do not sum products."""
    inputs = [None if index < 0 else model.tensors[index] for index in operator.inputs]
    outputs = [model.tensors[index] for index in operator.outputs]
    if not outputs or len(inputs) < 2 or inputs[1] is None:
        return 0
    return _count(operator, inputs, inputs[1], outputs[0])


def _count(operator: Operator, inputs: list[Tensor | None], weights: Tensor, output: Tensor) -> int:
    elements = math.prod(output.shape)
    match operator.kind:
        case "CONV_2D" | "FULLY_CONNECTED":
            return elements * math.prod(weights.shape[1:])
        case "DEPTHWISE_CONV_2D":
            return elements * math.prod(weights.shape[1:3])
        case "TRANSPOSE_CONV":
            x = inputs[2] if len(inputs) > 2 else None
            return 0 if x is None else math.prod(x.shape) * math.prod(weights.shape[:3])
        case "BATCH_MATMUL":
            inner = -2 if operator.options.get("adj_y") is not True else -1
            return elements * (weights.shape[inner] if len(weights.shape) > 1 else 1)
        case "UNIDIRECTIONAL_SEQUENCE_LSTM":
            return _lstm(inputs, output)
        case "SVDF":
            time = inputs[2] if len(inputs) > 2 else None
            return math.prod(weights.shape) + (0 if time is None else math.prod(time.shape))
        case _:
            return 0


def _lstm(inputs: list[Tensor | None], output: Tensor) -> int:
    cells = output.shape[-1]
    steps = math.prod(output.shape[:-1])
    first = inputs[0]
    width = 0 if first is None else first.shape[-1]
    return steps * LSTM_GATES * cells * (width + cells)
