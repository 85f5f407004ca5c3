"""Compute what depends on no input, within bounds of memory and time.

A result's type is inferred first, so its size is known before anything is allocated. What
evaluates an operator is a row of `EVALUATORS`: NumPy on arrays that are no larger than the file or
what was folded before. Quantised constants stay as they are: a DequantizeLinear of one is only
computed where a float constant needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.diagnostics import fail
from mizzen.frontends.onnx.draft import Draft
from mizzen.frontends.onnx.evaluators import EVALUATORS, MOST_STEPS, steps_of
from mizzen.frontends.onnx.model import Array, Node, TensorType

MOST_BYTES = 1 << 28
"""Of all folded tensors together; what computes them takes up to three times as much for a time."""


class Folding:
    """Evaluates nodes whose inputs are constants, and counts what that takes."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.bytes = 0

    def knows(self, node: Node) -> bool:
        """Whether there is a row for an operator."""
        return node.domain == "" and node.kind in EVALUATORS

    def fold(
        self, node: Node, inputs: Sequence[Array | None], types: Sequence[TensorType | None]
    ) -> list[Array] | None:
        """Compute a node's results, or nothing where that takes long; E192 where it is too large.

        types  of the results, None where extents depend on values
        """
        evaluator = EVALUATORS[node.kind]
        if any(type is None for type in types) and not evaluator.is_open:
            return None
        size = self._size(node, types)
        if steps_of(node, inputs, types) > MOST_STEPS:
            return None
        self.bytes += size
        try:
            results = evaluator.function(node, inputs, types)
        except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError) as error:
            text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise self.draft.wrong(node, f"must have inputs that fit each other: {text}") from None
        return [
            np.ascontiguousarray(result).reshape(np.shape(result))
            if type is None
            else self._fitting(node, np.asarray(result), type)
            for result, type in zip(results, types, strict=False)
        ]

    def _fitting(self, node: Node, result: Array, type: TensorType) -> Array:
        if result.shape != type.shape:
            rule = f"must make {list(type.shape)}, and its inputs make {list(result.shape)}"
            raise self.draft.wrong(node, rule)
        return np.ascontiguousarray(result.astype(type.dtype, copy=False)).reshape(type.shape)

    def _size(self, node: Node, types: Sequence[TensorType | None]) -> int:
        """Say how many bytes results take, if they are few enough."""
        sizes = [prod(type.shape) * type.dtype.itemsize for type in types if type is not None]
        total = self.bytes + sum(sizes)
        if total > MOST_BYTES:
            raise fail(
                "E192",
                f"constants that are computed when reading must take at most {MOST_BYTES:,} bytes, "
                f"and take {total:,} with this one",
                origin=self.draft.origin(node),
                help="export the network with its constants folded, or without this operator",
            )
        return sum(sizes)
