"""Post-training quantisation of the network to int8, and its TFLite file.

TensorFlow Lite's rules: activations with one scale and zero point for a tensor, weights symmetric
with one scale for an output channel, biases int32 in the scale of the accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer.tflite import ActivationFunctionType, Padding
from mizzen.package.tflite.builder import NetworkBuilder
from network import CLASSES, Array, Convolution, Network

LOWEST, HIGHEST = -128, 127
SOFTMAX_SCALE = 1 / 256
STEP_2X2 = {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}


@dataclass(frozen=True, slots=True)
class Scale:
    """The real value of an int8 `q` is `(q - zero_point) * step`."""

    step: float
    zero_point: int

    def integers(self, values: Array) -> npt.NDArray[np.int8]:
        """Return the nearest int8 of real values."""
        rounded = np.round(values / self.step) + self.zero_point
        return np.clip(rounded, LOWEST, HIGHEST).astype(np.int8)


def scale_of(values: Array) -> Scale:
    """Return the scale that covers the values of a sample, and zero exactly."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    step = (high - low) / (HIGHEST - LOWEST)
    return Scale(step, round(LOWEST - low / step))


def quantise(network: Network, sample: Array) -> tuple[bytes, Scale]:
    """Return the TFLite file of the network, and the scale of its input.

    `sample` [N, 8, 8, 1] are images that show which values occur.
    """
    writer = _Writer(NetworkBuilder("digits"))
    *activations, _, scores = network.activations(sample)
    scales = [scale_of(values) for values in activations]
    image = writer.activation("image", (1, 8, 8, 1), scales[0])
    value = image
    for i, layer in enumerate(network.convolutions):
        shape = (1, *activations[i + 1].shape[1:])
        value = writer.convolution(f"conv{i}", layer, value, shape, scales[i], scales[i + 1])
    value = writer.pooling("pool", value, activations[-1].shape[1:], scales[-1])
    value = writer.flattening("flat", value, len(network.dense_weight), scales[-1])
    value = writer.dense("scores", network, value, scales[-1], scale_of(scores))
    value = writer.softmax("probabilities", value)
    return writer.builder.finish([image], [value]), scales[0]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Adds layers to a TFLite network; each method gives the index of the layer's output."""

    builder: NetworkBuilder

    def activation(self, name: str, shape: tuple[int, ...], scale: Scale) -> int:
        return self.builder.tensor(name, shape, np.int8, scale.step, scale.zero_point)

    def convolution(
        self,
        name: str,
        layer: Convolution,
        value: int,
        shape: tuple[int, ...],
        before: Scale,
        after: Scale,
    ) -> int:
        # TFLite keeps the output channel first, or last in a depthwise layer.
        kernel = layer.weight[None] if layer.depthwise else np.moveaxis(layer.weight, 3, 0)
        axis = 3 if layer.depthwise else 0
        weight, steps = _weights(kernel, axis)
        kind = "DEPTHWISE_CONV_2D" if layer.depthwise else "CONV_2D"
        table = "DepthwiseConv2DOptions" if layer.depthwise else "Conv2DOptions"
        options: dict[str, object] = {
            "padding": int(Padding.SAME),
            "stride_w": layer.stride,
            "stride_h": layer.stride,
            "fused_activation_function": int(ActivationFunctionType.RELU),
        }
        if layer.depthwise:
            options["depth_multiplier"] = 1
        inputs = [
            value,
            self.builder.constant(f"{name}/weight", weight, steps, axis=axis),
            self._bias(f"{name}/bias", layer.bias, before.step * np.asarray(steps)),
        ]
        output = self.activation(name, shape, after)
        self.builder.operator(kind, inputs, [output], (table, options), version=3)
        return output

    def pooling(self, name: str, value: int, shape: tuple[int, ...], scale: Scale) -> int:
        height, width, channels = shape
        output = self.activation(name, (1, height // 2, width // 2, channels), scale)
        options = {"padding": int(Padding.VALID), **STEP_2X2}
        self.builder.operator("MAX_POOL_2D", [value], [output], ("Pool2DOptions", options))
        return output

    def flattening(self, name: str, value: int, size: int, scale: Scale) -> int:
        shape = np.array([1, size], np.int32)
        output = self.activation(name, (1, size), scale)
        inputs = [value, self.builder.constant(f"{name}/shape", shape)]
        self.builder.operator("RESHAPE", inputs, [output], ("ReshapeOptions", {"new_shape": shape}))
        return output

    def dense(self, name: str, network: Network, value: int, before: Scale, after: Scale) -> int:
        kernel = network.dense_weight.T
        step = float(np.abs(kernel).max()) / HIGHEST
        weight = np.round(kernel / step).astype(np.int8)
        inputs = [
            value,
            self.builder.constant(f"{name}/weight", weight, step),
            self._bias(f"{name}/bias", network.dense_bias, np.array([before.step * step])),
        ]
        output = self.activation(name, (1, CLASSES), after)
        self.builder.operator(
            "FULLY_CONNECTED", inputs, [output], ("FullyConnectedOptions", {}), version=4
        )
        return output

    def softmax(self, name: str, value: int) -> int:
        output = self.activation(name, (1, CLASSES), Scale(SOFTMAX_SCALE, LOWEST))
        self.builder.operator("SOFTMAX", [value], [output], ("SoftmaxOptions", {"beta": 1.0}))
        return output

    def _bias(self, name: str, bias: Array, steps: npt.NDArray[np.float64]) -> int:
        integers = np.round(bias / steps).astype(np.int32)
        return self.builder.constant(name, integers, [float(step) for step in steps])


def _weights(kernel: Array, axis: int) -> tuple[npt.NDArray[np.int8], list[float]]:
    """Return int8 weights, and the step of every channel along `axis`."""
    others = tuple(i for i in range(kernel.ndim) if i != axis)
    steps = np.abs(kernel).max(axis=others) / HIGHEST
    shape = [1] * kernel.ndim
    shape[axis] = -1
    return np.round(kernel / steps.reshape(shape)).astype(np.int8), [float(s) for s in steps]
