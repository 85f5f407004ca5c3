"""Scales and zero points of the nodes that quantise and dequantise.

Bytes without a sign are 128 less in the graph, and so are their zero points; 16 bits 32768.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.frontends.onnx.lowering.context import Context
from mizzen.frontends.onnx.lowering.types import offset_of
from mizzen.frontends.onnx.model import Array, Node
from mizzen.frontends.quantized.terms import Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, integer_range

STATIC = "quantise the model statically (onnxruntime's quantize_static, or `mizzen quantize`)"

ACTIVATIONS = {
    "int8": DType.INT8,
    "uint8": DType.INT8,
    "int16": DType.INT16,
    "uint16": DType.INT16,
}
"""Types of computed numbers, and of the integers that stand for them in the graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """What a node quantises or dequantises by.

    scales  float32, and zero points of integers with a sign: one, or as many as the axis has
    """

    scales: Array
    zeros: Array
    axis: int | None

    @staticmethod
    def of(context: Context, node: Node, integers: str) -> Parameters:
        """Read a node's parameters; `integers` is the tensor of integers that it gives or takes."""
        model = context.model
        names = [name for name in node.inputs[1:] if name]
        if any(name not in model.constants for name in names):
            raise RefusedError("its scale or zero point is computed at run time", STATIC)
        if node.attributes.get("block_size", 0):
            raise RefusedError(
                "it has a scale for each block", "quantise with a scale for each channel or tensor"
            )
        type = model.types[integers]
        scales = np.asarray(model.constants[names[0]]).astype(np.float32)
        zeros = np.zeros(scales.shape, np.int64)
        if len(names) > 1:
            zeros = np.asarray(model.constants[names[1]]).astype(np.int64).reshape(scales.shape)
        if scales.ndim > 1 and scales.size > 1:
            raise RefusedError("its scales have more than one dimension")
        if not np.all(np.isfinite(scales) & (scales > 0)):
            raise RefusedError("a scale is zero, negative or not finite", "calibrate the model")
        axis = None
        if scales.size > 1:
            axis = int(node.attributes.get("axis", 1)) % len(type.shape)
        zeros = zeros.reshape(-1) - offset_of(type.dtype)
        return Parameters(scales.reshape(-1), zeros, axis)

    @property
    def quantization(self) -> Quantization:
        """The same as the graph has it."""
        scales = tuple(float(each) for each in self.scales)
        return Quantization(scales, tuple(int(each) for each in self.zeros), self.axis)

    def reals(self, integers: Array) -> Array:
        """Return the real numbers that integers with a sign stand for, in float32."""
        scales, zeros = (self._shaped(each, integers.ndim) for each in (self.scales, self.zeros))
        return (integers.astype(np.int64) - zeros).astype(np.float32) * scales

    def _shaped(self, array: Array, rank: int) -> Array:
        if self.axis is None:
            return array.reshape(())
        return array.reshape([-1 if index == self.axis else 1 for index in range(rank)])

    def integers(self, reals: Array, name: str) -> Array:
        """Quantise constants to a type of ONNX's: division in float32, half to even."""
        offset = offset_of(np.dtype(name))
        scales, zeros = (self._shaped(each, reals.ndim) for each in (self.scales, self.zeros))
        low, high = integer_range(ACTIVATIONS[name])
        steps = np.rint(reals.astype(np.float32) / scales) + zeros
        return (np.clip(steps, low, high).astype(np.int64) + offset).astype(name)


def target_of(context: Context, node: Node) -> Target:
    """Return the integers that a QuantizeLinear gives."""
    (name,) = node.outputs
    dtype = context.model.types[name].dtype.name
    if dtype not in ACTIVATIONS:
        help = "quantise activations to 8 or 16 bits"
        raise RefusedError(f"it gives integers of {dtype}", help)
    parameters = Parameters.of(context, node, name)
    need_one(parameters)
    target = ACTIVATIONS[dtype]
    need_centred(parameters, target)
    return Target(target, parameters.quantization, *integer_range(target))


def need_one(parameters: Parameters) -> None:
    """Refuse what has a scale for each channel."""
    if parameters.axis is not None:
        raise RefusedError(
            "its numbers are computed, and only those of a constant have a scale for each channel",
            "quantise activations with one scale",
        )


def need_centred(parameters: Parameters, dtype: DType) -> None:
    """Refuse a zero point of 16 bits, which no operation takes."""
    if dtype is DType.INT16 and np.any(parameters.zeros):
        raise RefusedError(
            "its integers of 16 bits have a zero point",
            "quantise 16-bit activations symmetrically, to int16 or to uint16 about 32768",
        )
