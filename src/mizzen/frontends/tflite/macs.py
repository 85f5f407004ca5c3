"""Multiply-accumulates of an operator, from the shapes of its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable

from mizzen.flatbuffer import Record
from mizzen.frontends.tflite.model import ABSENT, Operator, Subgraph, Tensor


class _Shapes:
    """An operator's shapes, looked up so that an operator with too few of them has no MACs."""

    def __init__(self, subgraph: Subgraph, operator: Operator) -> None:
        self._subgraph = subgraph
        self._operator = operator

    def _tensor(self, index: int) -> Tensor | None:
        inputs = self._operator.inputs
        if index >= len(inputs) or inputs[index] == ABSENT:
            return None
        return self._subgraph.tensors[inputs[index]]

    def elements(self, *inputs: int) -> int:
        """Elements of those inputs together; an absent one has none."""
        tensors = [self._tensor(index) for index in inputs]
        return sum(tensor.elements for tensor in tensors if tensor is not None)

    def extents(self, index: int, axes: slice) -> int:
        """Product of some extents of an input."""
        tensor = self._tensor(index)
        return 0 if tensor is None else math.prod(tensor.shape[axes])

    @property
    def output(self) -> int:
        """Elements of the first output."""
        outputs = self._operator.outputs
        return self._subgraph.tensors[outputs[0]].elements if outputs else 0

    @property
    def options(self) -> Record:
        return self._operator.options


def _batch_matmul(shapes: _Shapes) -> int:
    """[..., M, K] by [..., K, N]: each element of the output is a sum of K products."""
    axis = slice(-2, -1) if shapes.options.get("adj_x") else slice(-1, None)
    return shapes.output * shapes.extents(0, axis)


def _steps(shapes: _Shapes) -> int:
    """Time steps over the whole batch of x [N, T, IC], or [T, N, IC]."""
    return shapes.extents(0, slice(None, -1))


_MACS: dict[str, Callable[[_Shapes], int]] = {
    # Filter [OC, KH, KW, IC]; with groups, IC is that of a group.
    "CONV_2D": lambda s: s.output * s.extents(1, slice(1, None)),
    # Filter [KD, KH, KW, IC, OC].
    "CONV_3D": lambda s: s.output * s.extents(1, slice(None, -1)),
    # Filter [1, KH, KW, OC].
    "DEPTHWISE_CONV_2D": lambda s: s.output * s.extents(1, slice(1, -1)),
    # Inputs: shape of the output, filter [OC, KH, KW, IC], x [N, H, W, IC].
    "TRANSPOSE_CONV": lambda s: s.elements(2) * s.extents(1, slice(None, -1)),
    # Filter [OC, IC].
    "FULLY_CONNECTED": lambda s: s.output * s.extents(1, slice(-1, None)),
    "BATCH_MATMUL": _batch_matmul,
    # Input, recurrent and peephole weights, and the projection.
    "LSTM": lambda s: _steps(s) * s.elements(*range(1, 12), 16),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda s: _steps(s) * s.elements(*range(1, 12), 16),
    "BIDIRECTIONAL_SEQUENCE_LSTM": lambda s: (
        _steps(s) * s.elements(*range(1, 12), 16, *range(18, 29), 33)
    ),
    # Input and recurrent weights.
    "RNN": lambda s: _steps(s) * s.elements(1, 2),
    "UNIDIRECTIONAL_SEQUENCE_RNN": lambda s: _steps(s) * s.elements(1, 2),
    # x [N, IC], features [F, IC], time weights [F, T].
    "SVDF": lambda s: s.extents(0, slice(0, 1)) * s.elements(1, 2),
}


def macs(subgraph: Subgraph, operator: Operator) -> int:
    """Count the multiply-accumulates of one execution of an operator.

    Only operators that multiply by weights or matrices have any: pooling and elementwise operators
    count as none. Padding counts like data.
    """
    count = _MACS.get(operator.kind)
    return 0 if count is None or operator.custom else count(_Shapes(subgraph, operator))
