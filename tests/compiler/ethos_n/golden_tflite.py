"""A network of Arm's answers as TFLite: unsigned numbers become signed ones, 128 less."""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_n.network import (
    Constant,
    Convolution,
    DepthwiseConvolution,
    Input,
    Network,
    Node,
    Operand,
    Output,
    Pooling,
    Relu,
)
from mizzen.targets.ethos_n.tensors import QuantizationInfo, Stride

OFFSET = 128


def with_softmax(network: Network) -> bytes:
    """Return the TFLite network, with a SOFTMAX behind its one output, which only the CPU has."""
    return _Writer(network).finish()


class _Writer:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._builder = NetworkBuilder("golden")
        self._tensors: dict[Operand, int] = {}

    def finish(self) -> bytes:
        inputs: list[int] = []
        outputs: list[int] = []
        for node in self._network:
            match node.operation:
                case Constant():
                    pass
                case Input():
                    inputs.append(self._feature_map(node.operand))
                case Output():
                    outputs.append(self._softmax(node.inputs[0]))
                case _:
                    self._operator(node)
        return self._builder.finish(inputs, outputs)

    def _feature_map(self, operand: Operand) -> int:
        info = operand.info
        q = info.quantization
        name = f"t{operand.operation_id}"
        index = self._builder.tensor(name, info.shape, np.int8, q.scale, q.zero_point - OFFSET)
        self._tensors[operand] = index
        return index

    def _operator(self, node: Node) -> None:
        source = self._tensors[node.inputs[0]]
        target = self._feature_map(node.operand)
        match node.operation:
            case Convolution(_, stride, _):
                options = {**_window(stride, node), "dilation_w_factor": 1, "dilation_h_factor": 1}
                held = self._weights(node, (3, 0, 1, 2), 0)
                inputs, table = [source, *held], ("Conv2DOptions", options)
                self._builder.operator("CONV_2D", inputs, [target], table)
            case DepthwiseConvolution(_, stride, _):
                options = {**_window(stride, node), "depth_multiplier": 1,
                           "dilation_w_factor": 1, "dilation_h_factor": 1}  # fmt: skip
                held = self._weights(node, (3, 0, 1, 2), 3)
                inputs, table = [source, *held], ("DepthwiseConv2DOptions", options)
                self._builder.operator("DEPTHWISE_CONV_2D", inputs, [target], table)
            case Relu(0, 255):
                self._builder.operator("RELU", [source], [target])
            case Pooling((height, width), stride):
                options = {**_window(stride, node), "filter_width": width, "filter_height": height}
                table = ("Pool2DOptions", options)
                self._builder.operator("AVERAGE_POOL_2D", [source], [target], table)
            case other:
                raise AssertionError(other)

    def _weights(self, node: Node, axes: tuple[int, ...], axis: int) -> tuple[int, int]:
        """Add weights and bias; depthwise weights H, W, I, 1 become 1, H, W, I."""
        _, bias, weights = node.inputs
        q: QuantizationInfo = weights.info.quantization
        data, numbers = self._network.data_of(weights), self._network.data_of(bias)
        assert data is not None
        assert numbers is not None
        signed = (data.astype(np.int16) - q.zero_point).astype(np.int8).transpose(axes)
        name = f"t{weights.operation_id}"
        scale = bias.info.quantization.scale
        return (
            self._builder.constant(name, signed, q.scale, 0, axis=axis),
            self._builder.constant(f"{name}_bias", numbers.reshape(-1), scale, 0),
        )

    def _softmax(self, operand: Operand) -> int:
        shape = operand.info.shape
        target = self._builder.tensor("probabilities", shape, np.int8, 1 / 256, -OFFSET)
        inputs, table = [self._tensors[operand]], ("SoftmaxOptions", {"beta": 1.0})
        self._builder.operator("SOFTMAX", inputs, [target], table)
        return target


def _window(stride: Stride, node: Node) -> dict[str, Any]:
    padded = node.operand.info.height * stride.y == node.inputs[0].info.height or stride.y == 1
    same = 0 if padded and not isinstance(node.operation, Pooling) else 1
    return {"padding": same, "stride_w": stride.x, "stride_h": stride.y}
