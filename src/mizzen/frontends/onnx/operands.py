"""What operators must be given that ONNX's inference of shapes does not ask.

It takes axes, counts and equations as they stand, and writes past its arrays, divides by zero or
never ends where they are none. So they are held against the inputs first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mizzen.frontends.onnx.draft import Draft, has
from mizzen.frontends.onnx.model import Node


def require_operands(node: Node, draft: Draft) -> None:
    """Raise E190 where axes, counts, windows or channels of a node do not fit each other."""
    for name, value in node.attributes.items():
        if name in ("axis", "axes"):
            _require_axes(node, draft, name, value)
        elif name in _COUNTS and value < _COUNTS[name]:
            rule = f"must have a {name} from {_COUNTS[name]}"
            raise draft.wrong(node, f"{rule}, and has {value}")
        elif isinstance(value, int) and abs(value) > _MOST and name != "seed":
            raise draft.wrong(node, f"must have a {name} of at most 31 bits, and has {value}")
    if node.kind in _RULES:
        _RULES[node.kind](node, draft)


_MOST = (1 << 31) - 1
_COUNTS: Mapping[str, int] = {
    "batch_dims": 0,
    "blocksize": 1,
    "group": 1,
    "hidden_size": 1,
    "kv_num_heads": 1,
    "num_groups": 1,
    "num_heads": 0,
    "num_outputs": 1,
    "q_num_heads": 1,
    "rotary_embedding_dim": 0,
}
"""Attributes that count something, and the least that each may be."""

_ONE_MORE = ("OneHot", "Flatten")
"""Operators whose axis may be the one behind the last."""


def _require_axes(node: Node, draft: Draft, name: str, value: int | tuple[int, ...]) -> None:
    """Hold axes against the dimensions of the first input."""
    rank = len(draft.shape(node.inputs[0])) if has(node, 0) else 0
    most = rank + 1 if node.kind in _ONE_MORE else rank
    least = -rank - 1 if node.kind == "OneHot" else -rank
    for axis in value if isinstance(value, tuple) else (value,):
        if not least <= axis < most:
            raise draft.wrong(node, f"must have {name} of {rank} dimensions, and has {axis}")


def _gather(node: Node, draft: Draft) -> None:
    count: int = node.attributes.get("batch_dims", 0)
    ranks = [len(draft.shape(name)) for name in node.inputs[:2]]
    if not 0 <= count < min(ranks):
        rule = f"must have batch_dims below {min(ranks)}, its inputs' dimensions"
        raise draft.wrong(node, f"{rule}, and has {count}")


_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")
_MOST_LETTERS = 200


def _equation(node: Node, draft: Draft) -> None:
    """Hold an equation against its grammar: what parses it takes others for ever."""
    text: str = node.attributes.get("equation", "").replace(" ", "")
    if len(text) > _MOST_LETTERS or not _EQUATION.fullmatch(text):
        rule = "must have an equation of letters, as ij,jk->ik"
        raise draft.wrong(node, f'{rule}, and has "{text[:40]}"')


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


_RULES: Mapping[str, Callable[[Node, Draft], None]] = {
    "AveragePool": _pool,
    "BatchNormalization": _normalization,
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Einsum": _equation,
    "GatherND": _gather,
    "LpPool": _pool,
    "MaxPool": _pool,
}
