"""Transposed convolutions with long strides, as convolutions that compute blocks of pixels.

Each pixel of the input spreads over several blocks of stride times stride pixels; seen from a
block, it is a convolution with a channel for each of its pixels, and nothing is multiplied by the
zeros between the input's pixels. The channels become pixels when they are integers of 8 or 16 bits
again.
"""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, DType, Graph, Value
from mizzen.ops.builder import reshaped
from mizzen.ops.limits import WindowLimits
from mizzen.ops.tensor import TransposeConv2d
from mizzen.ops.type_conversion import Rescale
from mizzen.ops.upscaling import ending_rescale
from mizzen.passes.pipeline import Pass


def unfold_upscaling(limits: WindowLimits) -> Pass:
    """Return the pass that replaces TRANSPOSE_CONV2Ds with longer strides than a machine has."""

    def run(graph: Graph) -> bool:
        transposed = [each for each in graph if isinstance(each, TransposeConv2d)]
        far = [rescale for each in transposed if (rescale := _ending(each, limits)) is not None]
        for rescale in far:
            _Unfolding(graph, rescale).unfold()
        if far:
            graph.erase_dead()
        return bool(far)

    return Pass("unfold-upscaling", run)


def _ending(operation: TransposeConv2d, limits: WindowLimits) -> Rescale | None:
    longest = limits.longest_upscale
    if longest is None or max(operation.stride) <= longest:
        return None
    return ending_rescale(operation)


class _Axis:
    """How one axis unfolds: rows, or columns.

    Before `out_pad`, output position q * stride + r takes kernel position r + t * stride from
    input position q - t, for each t of the `taps`.
    """

    def __init__(self, size: int, kernel: int, stride: int, before: int, result: int) -> None:
        self.stride = stride
        self.taps = -(-kernel // stride)
        first = min(-before // stride, self.taps - 1)
        last = (result - 1 - before) // stride
        self.pad = self.taps - 1 - first, max(0, last - size + 1)
        self.blocks = size + sum(self.pad) - self.taps + 1
        self.start = -before - first * stride
        """The first pixel of the blocks that is wanted."""
        self.result = result


def _axis_of(operation: TransposeConv2d, axis: int) -> _Axis:
    return _Axis(
        operation.input.shape[axis],
        operation.weight.shape[axis],
        operation.stride[axis - 1],
        operation.out_pad[2 * (axis - 1)],
        operation.result.shape[axis],
    )


class _Unfolding:
    def __init__(self, graph: Graph, rescale: Rescale) -> None:
        self.graph = graph
        self.rescale = rescale
        operation = rescale.input.producer
        assert isinstance(operation, TransposeConv2d)
        self.operation = operation
        self.rows, self.columns = (_axis_of(operation, axis) for axis in (1, 2))
        self.pixels = self.rows.stride * self.columns.stride
        """Pixels of a block."""

    def unfold(self) -> None:
        """Replace the convolution and its RESCALE."""
        old, rescale = self.operation, self.rescale
        batch, outputs = old.input.shape[0], old.result.shape[3]
        shape = (batch, self.rows.blocks, self.columns.blocks, self.pixels * outputs)
        attributes = {
            "pad": (*self.rows.pad, *self.columns.pad),
            "stride": (1, 1),
            "dilation": (1, 1),
            "acc_type": old.acc_type,
            "local_bound": old.local_bound,
        }
        operands = (old.input, self._weights(), self._each(old.bias), *old.operands[3:])
        value = self.graph.add_beside(
            old, "CONV2D", operands, old.result.type.with_shape(shape), attributes
        )
        scales = [self._each(each) for each in rescale.operands[1:3]]
        operands = (value, *scales, *rescale.operands[3:])
        type = rescale.result.type.with_shape(shape)
        value = self.graph.add_beside(rescale, "RESCALE", operands, type, rescale.attributes)
        self.graph.supersede(rescale.result, self._cut(self._spread(value)))

    def _weights(self) -> Value:
        """Return the weights as [pixels of a block * OC, taps down, taps across, IC]."""
        old, zero = self.operation.weight, self.operation.weight_zp
        values, (outputs, height, width, inputs) = old.constant, old.shape
        assert values is not None
        assert zero.constant is not None
        down, columns = self.rows, self.columns
        shape = (outputs, down.taps * down.stride, columns.taps * columns.stride, inputs)
        whole: Array = np.full(shape, zero.constant.reshape(-1)[0], values.dtype)
        whole[:, :height, :width] = values
        whole = whole.reshape(outputs, down.taps, down.stride, columns.taps, columns.stride, inputs)
        turned = whole[:, ::-1, :, ::-1].transpose(2, 4, 0, 1, 3, 5)
        memory = np.ascontiguousarray(turned)
        given = self.graph.constant_like(old, memory.reshape(-1, down.taps, columns.taps, inputs))
        given.name, old.name = old.name, ""
        return given

    def _each(self, value: Value) -> Value:
        """Return a constant with one number for each channel, once for each pixel of a block."""
        numbers = value.constant
        assert numbers is not None
        if numbers.size == 1:
            return value
        return self.graph.constant_like(value, np.tile(numbers, self.pixels))

    def _spread(self, value: Value) -> Value:
        """Return [N, rows of blocks, columns of blocks, pixels * OC] as an image."""
        batch, down, across, channels = value.shape
        tall, columns = self.rows.stride, self.columns.stride
        if tall > 1:
            split = (batch * down, across, tall, channels // tall)
            value = reshaped(self.graph, self.rescale, value, split)
            type = value.type.with_shape(tuple(value.shape[axis] for axis in (0, 2, 1, 3)))
            perms = {"perms": (0, 2, 1, 3)}
            value = self.graph.add_beside(self.rescale, "TRANSPOSE", (value,), type, perms)
        image = (batch, down * tall, across * columns, channels // self.pixels)
        return reshaped(self.graph, self.rescale, value, image)

    def _cut(self, value: Value) -> Value:
        """Return the part of the blocks that is wanted."""
        batch, _, _, outputs = value.shape
        size = (batch, self.rows.result, self.columns.result, outputs)
        if value.shape == size:
            return value
        start = (0, self.rows.start, self.columns.start, 0)
        places = [self.graph.constant(numbers, DType.SHAPE) for numbers in (start, size)]
        operands = (value, *places)
        return self.graph.add_beside(self.rescale, "SLICE", operands, value.type.with_shape(size))
