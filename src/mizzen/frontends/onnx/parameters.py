"""Hold scales and zero points against what they mean, before anything computes with them."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.onnx.draft import Draft, changed, has
from mizzen.frontends.onnx.model import Node
from mizzen.frontends.onnx.tensors import DTYPES, NARROW, NUMBER_OF, OTHERS


def require_parameters(node: Node, draft: Draft) -> Node:
    """Check a QuantizeLinear or DequantizeLinear; it comes back with what its form needs.

    Raises E190 for constants that are no scales, E194 for scales of blocks, and for integers of 2
    or 4 bits that are computed.
    """
    if node.attributes.get("block_size", 0):
        raise draft.refused(
            node,
            "must have scales of the tensor or of one axis, and has them of blocks",
            "quantise weights per channel",
        )
    _require_scale(node, draft)
    _require_wide(node, draft)
    number = node.attributes.get("output_dtype", 0)
    if number and node.kind == "QuantizeLinear" and number in OTHERS:
        raise draft.refused(node, f"must make integers of 8 or 16 bits, and makes {OTHERS[number]}")
    precision = node.attributes.get("precision", 0)
    if precision not in (0, NUMBER_OF[draft.types[node.inputs[1]].dtype]):
        raise draft.refused(node, "must divide in the type of its scale, and divides in another")
    return _with_zero(_with_axis(changed(node, without=("precision", "block_size")), draft), draft)


def _with_axis(node: Node, draft: Draft) -> Node:
    """Say the axis that scales lie along, counted from the first; none where one is of all."""
    if _is_one(draft.types[node.inputs[1]].shape):
        return changed(node, without=("axis",))
    axis: int = node.attributes.get("axis", 1)
    return changed(node, axis=axis % len(draft.shape(node.inputs[0])))


def _with_zero(node: Node, draft: Draft) -> Node:
    """Say the zero point of a QuantizeLinear that has none: 0 of the type that it makes."""
    if node.kind != "QuantizeLinear" or has(node, 2):
        return node
    dtype = DTYPES.get(node.attributes.get("output_dtype", 0) or NUMBER_OF[np.dtype(np.uint8)])
    if dtype is None:
        raise draft.wrong(node, "must make integers, and makes something else")
    zero = draft.constant(np.zeros(draft.shape(node.inputs[1]), dtype), f"{node.name}:zero_point")
    inputs = (*node.inputs[:2], zero)
    return changed(node, inputs=inputs, without=("output_dtype",))


def _require_scale(node: Node, draft: Draft) -> None:
    scale = draft.input_value(node, 1)
    is_real = scale is not None and scale.dtype.kind == "f"
    if scale is not None and is_real and not bool(np.all(np.isfinite(scale) & (scale > 0))):
        raise draft.wrong(node, "must have scales above 0 that are finite, and has others")
    if scale is not None and not scale.size:
        raise draft.wrong(node, "must have a scale, and has none")
    shape = draft.shape(node.inputs[1])
    if has(node, 2):
        zero = draft.types[node.inputs[2]]
        if zero.shape != shape and not (_is_one(zero.shape) and _is_one(shape)):
            rule = f"must have a zero point for each of {list(shape)} scales"
            raise draft.wrong(node, f"{rule}, and has {list(zero.shape)}")
    _require_axis(node, draft, shape)


def _is_one(shape: tuple[int, ...]) -> bool:
    return all(extent == 1 for extent in shape)


def _require_axis(node: Node, draft: Draft, scale: tuple[int, ...]) -> None:
    if _is_one(scale):
        return
    shape, axis = draft.shape(node.inputs[0]), node.attributes.get("axis", 1)
    is_axis = isinstance(axis, int) and -len(shape) <= axis < len(shape)
    if len(scale) != 1 or not is_axis or shape[axis] != scale[0]:
        rule = f"must have a scale for each of one axis of {list(shape)}, axis {axis}"
        raise draft.wrong(node, f"{rule}, and has {list(scale)}")


def _require_wide(node: Node, draft: Draft) -> None:
    """Raise E194 for a QuantizeLinear to 2 or 4 bits of what the network computes."""
    is_narrow = has(node, 2) and node.inputs[2] in draft.narrow
    number = node.attributes.get("output_dtype", 0)
    if node.kind == "QuantizeLinear" and (is_narrow or number in NARROW):
        raise draft.refused(
            node,
            "must make integers of 8 or 16 bits, and makes smaller ones",
            "quantise what the network computes to 8 bits",
        )
