"""Count multiply-accumulates of an FX graph; ATen operators, those of ExecuTorch's edge included.

Both sides of the benchmark count with this. Sums, pooling and element-wise products are not
counted: they are MACs of an NPU, but not what decides where a network runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Shape = tuple[int, ...]


def _shape(node: Any) -> Shape:
    return tuple(int(size) for size in node.meta["val"].shape)


def _convolution(node: Any) -> int:
    """Each element of the output, or of the input when transposed, meets one kernel's worth."""
    x, weight = node.args[:2]
    transposed = "transpose" in node_operator(node) or (len(node.args) > 6 and node.args[6] is True)
    weights = _shape(weight)
    return math.prod(_shape(x if transposed else node)) * math.prod(weights[1:])


def _linear(node: Any) -> int:
    return math.prod(_shape(node)) * _shape(node.args[1])[-1]


def _product(node: Any) -> int:
    return math.prod(_shape(node)) * _shape(node.args[0])[-1]


def _product_added(node: Any) -> int:
    return math.prod(_shape(node)) * _shape(node.args[1])[-1]


def _attention(node: Any) -> int:
    query, key, value = (_shape(part) for part in node.args[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _recurrent(node: Any) -> int:
    """All weight matrices, at each step of each sequence."""
    steps = math.prod(_shape(node.args[0])[:-1])
    weights = (_shape(weight) for weight in node.args[2])
    return steps * sum(math.prod(shape) for shape in weights if len(shape) == 2)


COUNTERS: dict[str, Callable[[Any], int]] = {
    "conv1d": _convolution,
    "conv2d": _convolution,
    "convolution": _convolution,
    "conv_transpose1d": _convolution,
    "conv_transpose2d": _convolution,
    "linear": _linear,
    "addmm": _product_added,
    "mm": _product,
    "bmm": _product,
    "matmul": _product,
    "scaled_dot_product_attention": _attention,
    "lstm": _recurrent,
    "gru": _recurrent,
    "rnn_tanh": _recurrent,
    "rnn_relu": _recurrent,
}


def node_operator(node: Any) -> str:
    """Return the operator without its library and overload: ``conv2d`` of ``aten::conv2d``.

    Functions that are no operators, such as `operator.getitem`, have their own name.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return str(getattr(node.target, "__name__", node.target))
    return str(schema.name).rpartition("::")[2]


def macs(nodes: Iterable[Any]) -> int:
    """Count the MACs of a graph's nodes; those of other operators are none."""
    counted = [node for node in nodes if node.op == "call_function"]
    return sum(
        COUNTERS[name](node) for node in counted if (name := node_operator(node)) in COUNTERS
    )
