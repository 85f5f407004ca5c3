"""Let convolutions with long strides work on blocks of pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.graph import Array, Attributes, DType, Graph, TensorType, Value
from mizzen.ops.builder import reshaped
from mizzen.ops.limits import WindowLimits
from mizzen.ops.tensor import Conv2d
from mizzen.passes.pipeline import Pass


def fold_strides(limits: WindowLimits) -> Pass:
    """Return the pass that gives CONV2Ds with too long a stride blocks of pixels as channels.

    With blocks of stride times stride pixels as channels the stride is one, and the kernel has as
    many blocks as it touches; weights are zero where a block reaches beyond it. Pixels beside each
    other become channels by a RESHAPE; rows below each other by a CONCAT of slices.
    """

    def run(graph: Graph) -> bool:
        found = [each for each in graph if isinstance(each, Conv2d) and _is_long(each, limits)]
        for operation in found:
            _Folding(graph, operation).fold()
        if found:
            graph.erase_dead()
        return bool(found)

    return Pass("fold-strides", run)


def _is_long(operation: Conv2d, limits: WindowLimits) -> bool:
    return (
        max(operation.stride) > limits.longest_stride
        and operation.dilation == (1, 1)
        and all(operand.constant is not None for operand in operation.operands[1:])
    )


class _Folding:
    def __init__(self, graph: Graph, operation: Conv2d) -> None:
        self.graph = graph
        self.operation = operation
        self.down, self.across = operation.stride
        _, height, width, _ = operation.weight.shape
        self.kernel = (-(-height // self.down), -(-width // self.across))
        """Height and width of the kernel in blocks."""

    def fold(self) -> None:
        """Replace the convolution."""
        old = self.operation
        attributes = {**old.attributes, "stride": (1, 1), "pad": (0, 0, 0, 0)}
        operands = [self._blocks(), self._weights(), *old.operands[2:]]
        result = self._add("CONV2D", operands, old.result.type, attributes)
        self.graph.supersede(old.result, result)

    def _blocks(self) -> Value:
        """Return the input as [N, rows of blocks, columns of blocks, numbers of a block]."""
        value = self._padded()
        batch, height, width, channels = value.shape
        rows, columns = height // self.down, width // self.across
        # Memory of a row of blocks: its first row of pixels, block by block, then the next.
        beside = (batch, rows, self.down * columns, self.across * channels)
        value = reshaped(self.graph, self.operation, value, beside)
        if self.down == 1:
            return value
        part = (batch, rows, columns, self.across * channels)
        size, slices = self._shape(part), list[Value]()
        for row in range(self.down):
            start = self._shape((0, 0, row * columns, 0))
            slices.append(self._add("SLICE", (value, start, size), value.type.with_shape(part)))
        whole = value.type.with_shape((*part[:3], self.down * part[3]))
        return self._add("CONCAT", slices, whole, {"axis": 3})

    def _padded(self) -> Value:
        """Return the input with its padding, and with what the last blocks reach beyond it."""
        value, weights = self.operation.input, self.operation.weight
        top, bottom, left, right = self.operation.pad
        bottom += self.kernel[0] * self.down - weights.shape[1]
        right += self.kernel[1] * self.across - weights.shape[2]
        if not any((top, bottom, left, right)):
            return value
        batch, height, width, channels = value.shape
        shape = (batch, top + height + bottom, left + width + right, channels)
        amounts = self._shape((0, 0, top, bottom, left, right, 0, 0))
        operands = (value, amounts, self.operation.input_zp)
        return self._add("PAD", operands, value.type.with_shape(shape))

    def _weights(self) -> Value:
        """Return the weights as [OC, blocks down, blocks across, numbers of a block]."""
        old, zero = self.operation.weight, self.operation.weight_zp
        values, (outputs, height, width, channels) = old.constant, old.shape
        assert values is not None
        assert zero.constant is not None
        down, across = self.kernel
        whole: Array = np.full(
            (outputs, down * self.down, across * self.across, channels),
            zero.constant.reshape(-1)[0],
            values.dtype,
        )
        whole[:, :height, :width] = values
        blocks = whole.reshape(outputs, down, self.down, across, self.across, channels)
        memory = np.ascontiguousarray(blocks.transpose(0, 1, 3, 2, 4, 5))
        given = self.graph.constant_like(old, memory.reshape(outputs, down, across, -1))
        given.name, old.name = old.name, ""
        return given

    def _shape(self, numbers: tuple[int, ...]) -> Value:
        return self.graph.constant(numbers, DType.SHAPE)

    def _add(
        self,
        kind: str,
        operands: Sequence[Value],
        type: TensorType,
        attributes: Attributes | None = None,
    ) -> Value:
        return self.graph.add_beside(self.operation, kind, operands, type, attributes)
