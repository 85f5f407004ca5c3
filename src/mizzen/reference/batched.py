"""Evaluates graphs for several inferences at once, with the numbers that each alone would give.

A value's elements have one dimension more in front, the inferences, unless they come from constants
alone. Kernels that compute each element, or along axes counted from the last, take that as it is;
those of images take the images of all inferences as one batch. Integers are exact whatever the
order, so this gives the same. Sums and functions of real numbers need not, and are computed one
inference after another, as is all that has state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import MizzenError
from mizzen.graph import Array, Graph, Operation, Value
from mizzen.ops import DEFINITIONS
from mizzen.ops import control_flow as flow
from mizzen.ops import image as image_operators
from mizzen.ops import tensor as tensor_operators
from mizzen.reference import data_layout, elementwise, reduction, type_conversion
from mizzen.reference.control_flow import CustomKernel, Variables
from mizzen.reference.evaluation import (
    KERNELS,
    Evaluation,
    Trace,
    apply,
    check_inputs,
    checked,
    walk,
)

MOVING: frozenset[type[Operation]] = frozenset((*data_layout.KERNELS, flow.Identity))
"""Operations that compute nothing, and so are the same for all types."""

LEADING = MOVING | frozenset(
    (
        *elementwise.KERNELS,
        *reduction.KERNELS,
        *type_conversion.KERNELS,
        tensor_operators.Argmax,
        tensor_operators.Matmul,
    )
)
"""Operations whose kernels take operands with dimensions in front, and give such results."""

IMAGES: frozenset[type[Operation]] = frozenset(
    (
        image_operators.Resize,
        tensor_operators.AvgPool2d,
        tensor_operators.Conv2d,
        tensor_operators.Conv3d,
        tensor_operators.DepthwiseConv2d,
        tensor_operators.MaxPool2d,
        tensor_operators.TransposeConv2d,
    )
)
"""Operations whose kernels take any number of images, of their first operand."""


def evaluate_batch(
    graph: Graph,
    inputs: Sequence[Array],
    count: int,
    *,
    trace: Trace | None = None,
    custom: CustomKernel | None = None,
) -> list[Array]:
    """Return the elements of the graph's outputs for `count` inferences, at least one.

    inputs  of the graph, `[count, *shape]` each, as are the outputs
    trace   is told every value, `[count, *shape]`, but constants and those in control flow
    custom  computes CUSTOM operations of `[count, *shape]`; in control flow of one inference

    Variables start without a value, or with their initial one. The arrays may share memory, so do
    not write to them. Raises what `evaluate` does for one of the inferences.
    """
    check_inputs(graph, inputs, (count,))
    return _Batch(count, [{} for _ in range(count)], trace, custom).run(graph, inputs)


@dataclass(frozen=True)
class _Batch:
    count: int
    states: list[Variables]
    trace: Trace | None
    custom: CustomKernel | None

    def run(self, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
        outputs = walk(graph, inputs, self._results, None if self.trace is None else self._tell)
        return [
            self._whole(value, array) for value, array in zip(graph.outputs, outputs, strict=True)
        ]

    def _tell(self, value: Value, array: Array) -> Array | None:
        assert self.trace is not None
        return self.trace(value, self._whole(value, array))

    def _results(self, operation: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        if isinstance(operation, flow.Custom) and self.custom is not None:
            results = self.custom(operation, self._all_whole(operation, operands))
            return checked(operation, results, (self.count,))
        if type(operation) in KERNELS:
            if not any(map(_is_batched, operation.operands, operands)):
                return apply(operation, operands)
            try:
                answer = self._at_once(operation, operands)
            except MizzenError:  # of any inference; the first that has one says it
                answer = None
            if answer is not None:
                return answer
        return self._one_by_one(operation, operands)

    def _at_once(self, operation: Operation, operands: Sequence[Array]) -> tuple[Array, ...] | None:
        """Return the results for all inferences; None where only each alone is sure to be right."""
        kind, values = type(operation), operation.operands
        if kind not in MOVING and any(
            value.dtype.is_float for value in (*values, *operation.results)
        ):
            return None
        if kind in IMAGES and not any(map(_is_batched, values[1:], operands[1:])):
            images, *rest = operands
            joined = images.reshape(-1, *images.shape[2:])
            (result,) = apply(operation, [joined, *rest])
            return (result.reshape(self.count, -1, *result.shape[1:]),)
        if kind not in LEADING:
            return None
        given = list(operands)
        for index, (value, array) in enumerate(zip(values, operands, strict=True)):
            if not _is_constant(operation, index):
                given[index] = self._whole(value, array)
            elif _is_batched(value, array):
                return None
        return apply(operation, given)

    def _one_by_one(self, operation: Operation, operands: Sequence[Array]) -> list[Array]:
        given = self._all_whole(operation, operands)
        results = [
            Evaluation(state, None, self._custom_of_one).results(
                operation, [array[index] for array in given]
            )
            for index, state in enumerate(self.states)
        ]
        return [np.stack(same) for same in zip(*results, strict=True)]

    @property
    def _custom_of_one(self) -> CustomKernel | None:
        custom = self.custom
        if custom is None:
            return None
        return lambda operation, operands: [
            result[0] for result in custom(operation, [array[np.newaxis] for array in operands])
        ]

    def _all_whole(self, operation: Operation, operands: Sequence[Array]) -> list[Array]:
        return [
            self._whole(value, array)
            for value, array in zip(operation.operands, operands, strict=True)
        ]

    def _whole(self, value: Value, array: Array) -> Array:
        """Return elements for each inference."""
        if _is_batched(value, array):
            return array
        return np.broadcast_to(array, (self.count, *array.shape))


def _is_batched(value: Value, array: Array) -> bool:
    return array.ndim > value.type.rank


def _is_constant(operation: Operation, index: int) -> bool:
    """Whether the operation takes a constant there, by which its kernel computes everything."""
    operands = DEFINITIONS[operation.kind].operands
    return operands[min(index, len(operands) - 1)].constant
