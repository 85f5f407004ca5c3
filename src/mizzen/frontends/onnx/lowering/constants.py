"""Constants that keep their integers where a network moves them: a weight that is transposed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mizzen.frontends.onnx.lowering.context import Context
from mizzen.frontends.onnx.model import Array, Node
from mizzen.frontends.quantized.terms import Constant, Term
from mizzen.graph import Quantization

RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def carried(context: Context, node: Node) -> Term | None:
    """Return the constant that a node makes of one by moving its elements; None for others."""
    if node.domain or node.kind not in (*RESHAPES, "Transpose"):
        return None
    term = context.term(node.inputs[0])
    if not isinstance(term, Constant):
        return None
    shape = context.model.types[node.outputs[0]].shape
    rank = term.real.ndim
    if node.kind == "Transpose":
        perms = tuple(node.attributes.get("perm", range(rank)[::-1]))
        return _moved(term, node, lambda array: array.transpose(perms), perms.index)
    old = term.real.shape

    def place(axis: int) -> int | None:
        """Return where a dimension is in the new shape, if it is still one by itself."""
        before = int(np.prod(old[:axis]))
        for index, extent in enumerate(shape):
            if extent == old[axis] and int(np.prod(shape[:index])) == before:
                return index
        return None

    return _moved(term, node, lambda array: array.reshape(shape), place)


def _moved(
    term: Constant, node: Node, move: Callable[[Array], Array], place: Callable[[int], int | None]
) -> Constant:
    """Move a constant; it loses its integers where its scales have no dimension of their own."""
    result = replace(term, real=move(term.real), source=node.outputs[0])
    if term.integers is None or term.quantization is None:
        return result
    axis = term.quantization.axis
    own = None if axis is None else place(axis)
    if axis is not None and own is None:
        return replace(result, integers=None, quantization=None)
    quantization = Quantization(term.quantization.scales, term.quantization.zero_points, own)
    return replace(result, integers=move(term.integers), quantization=quantization)
