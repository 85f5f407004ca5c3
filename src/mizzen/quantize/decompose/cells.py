"""Cells of recurrent networks, one step each, which models call in loops of their own.

Ref: PyTorch's documentation of GRUCell, LSTMCell and RNNCell, whose gates are in that order.
"""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from mizzen.quantize.decompose.arithmetic import argument
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import row_name


def gru_cell(rewriter: Rewriter, node: Node) -> Node:
    """Return the next state: between the new one and the old as the update gate says."""
    state = node.args[1]
    reset_in, update_in, new_in = _parts(rewriter, _of_input(rewriter, node, node.args[0]), 3)
    reset_old, update_old, new_old = _parts(rewriter, _of_state(rewriter, node, state), 3)
    reset = _sigmoid(rewriter, _add(rewriter, reset_in, reset_old))
    update = _sigmoid(rewriter, _add(rewriter, update_in, update_old))
    kept = rewriter.call(aten.mul.Tensor, reset, new_old)
    new = rewriter.call(aten.tanh.default, _add(rewriter, new_in, kept))
    change = rewriter.call(aten.mul.Tensor, update, rewriter.call(aten.sub.Tensor, state, new))
    return _add(rewriter, new, change)


def lstm_cell(rewriter: Rewriter, node: Node) -> Node:
    """Return the next hidden state, and give the next cell state to who takes it."""
    states: Any = node.args[1]
    gates = _add(
        rewriter,
        _of_input(rewriter, node, node.args[0]),
        _of_state(rewriter, node, states[0]),
    )
    into, forget, new, out = _parts(rewriter, gates, 4)
    old = rewriter.call(aten.mul.Tensor, _sigmoid(rewriter, forget), states[1])
    candidate = rewriter.call(aten.tanh.default, new)
    added = rewriter.call(aten.mul.Tensor, _sigmoid(rewriter, into), candidate)
    cell = _add(rewriter, old, added)
    shown = rewriter.call(aten.tanh.default, cell)
    hidden = rewriter.call(aten.mul.Tensor, _sigmoid(rewriter, out), shown)
    for item in list(node.users):
        assert item.target is operator.getitem
        item.replace_all_uses_with(cell if item.args[1] else hidden)
        rewriter.module.graph.erase_node(item)
    return hidden


def rnn_cell(rewriter: Rewriter, node: Node) -> Node:
    """Return the next state, a function of the sum of both products."""
    function: Any = aten.relu.default if row_name(node) == "rnn_relu_cell" else aten.tanh.default
    total = _add(
        rewriter,
        _of_input(rewriter, node, node.args[0]),
        _of_state(rewriter, node, node.args[1]),
    )
    return rewriter.call(function, total)


def _of_input(rewriter: Rewriter, node: Node, value: Any) -> Node:
    return _linear(rewriter, value, node.args[2], argument(node, 4, "b_ih"))


def _of_state(rewriter: Rewriter, node: Node, value: Any) -> Node:
    return _linear(rewriter, value, node.args[3], argument(node, 5, "b_hh"))


def _linear(rewriter: Rewriter, value: Any, weight: Any, bias: Any) -> Node:
    """Add a product, with a bias of its own: each has the scale of its input."""
    if isinstance(bias, Node) and bias.op == "get_attr":
        bias = rewriter.read_again(bias)
    return rewriter.call(aten.linear.default, value, weight, bias)


def _parts(rewriter: Rewriter, gates: Node, count: int) -> list[Node]:
    size = shape_of(gates)[-1] // count
    return [
        rewriter.call(aten.slice.Tensor, gates, -1, index * size, (index + 1) * size)
        for index in range(count)
    ]


def _sigmoid(rewriter: Rewriter, value: Node) -> Node:
    return rewriter.call(aten.sigmoid.default, value)


def _add(rewriter: Rewriter, one: Node, other: Node) -> Node:
    return rewriter.call(aten.add.Tensor, one, other)
