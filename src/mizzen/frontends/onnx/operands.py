"""What operators must be given that ONNX's inference of shapes does not ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mizzen.frontends.onnx.draft import Draft, has
from mizzen.frontends.onnx.model import Node


def require_operands(node: Node, draft: Draft) -> None:
    """Raise E190 where windows, groups or channels of a node do not fit each other."""
    if node.kind in _RULES:
        _RULES[node.kind](node, draft)


def _require_positive(node: Node, draft: Draft, *names: str) -> None:
    for name in names:
        values: tuple[int, ...] = node.attributes.get(name, ())
        if any(value < 1 for value in values):
            raise draft.wrong(node, f"must have {name} from 1, and has {list(values)}")


def _convolution(node: Node, draft: Draft) -> None:
    x, w = draft.shape(node.inputs[0]), draft.shape(node.inputs[1])
    group: int = node.attributes.get("group", 1)
    if len(x) < 3 or len(w) != len(x):
        rule = "must have weights of as many dimensions as its input, at least 3"
        raise draft.wrong(node, f"{rule}, and has {len(w)} and {len(x)}")
    _require_positive(node, draft, "strides", "dilations", "kernel_shape")
    is_turned = node.kind == "ConvTranspose"
    channels = w[0] if is_turned else w[1] * group
    results = w[1] * group if is_turned else w[0]
    if group < 1 or channels != x[1] or channels % group or results % group:
        rule = f"must have weights for {x[1]} channels in {group} groups"
        raise draft.wrong(node, f"{rule}, and has {list(w)}")
    if node.attributes.get("kernel_shape", w[2:]) != w[2:]:
        raise draft.wrong(node, "must have a kernel_shape as its weights are, and has another")
    if has(node, 2) and draft.shape(node.inputs[2]) != (results,):
        rule = f"must have a bias of {results} elements"
        raise draft.wrong(node, f"{rule}, and has {list(draft.shape(node.inputs[2]))}")


def _pool(node: Node, draft: Draft) -> None:
    _require_positive(node, draft, "strides", "dilations", "kernel_shape")


def _normalization(node: Node, draft: Draft) -> None:
    shape = draft.shape(node.inputs[0])
    channels = shape[1] if len(shape) > 1 else 1
    for name in node.inputs[1:5]:
        if draft.shape(name) != (channels,):
            rule = f"must have a scale, a bias, a mean and a variance of {channels} channels"
            raise draft.wrong(node, f"{rule}, and has {list(draft.shape(name))}")


def _blocks(node: Node, draft: Draft) -> None:
    size: Any = node.attributes.get("blocksize", 1)
    if size < 1:
        raise draft.wrong(node, f"must have a blocksize from 1, and has {size}")


_RULES: Mapping[str, Callable[[Node, Draft], None]] = {
    "AveragePool": _pool,
    "BatchNormalization": _normalization,
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "DepthToSpace": _blocks,
    "LpPool": _pool,
    "MaxPool": _pool,
    "SpaceToDepth": _blocks,
}
