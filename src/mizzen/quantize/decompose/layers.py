"""Recurrent layers: a linear layer over the whole sequence, then one node for all steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Node

from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import row_name
from mizzen.quantize.recurrence import Kind

LAYERS = {
    "lstm": (Kind.LSTM, ""),
    "gru": (Kind.GRU, ""),
    "rnn_tanh": (Kind.RNN, "tanh"),
    "rnn_relu": (Kind.RNN, "relu"),
}


@dataclass
class Layers:
    """The recurrent layers of one call of ``aten.lstm.input`` and its kin."""

    rewriter: Rewriter
    kind: Kind
    nonlinearity: str
    states: list[Node]
    parameters: list[Node]
    has_biases: bool

    def run(self, sequence: Node, count: int, directions: int) -> tuple[Node, ...]:
        """Return the output sequence and the last states, [layers * directions, batch, hidden]."""
        last: list[tuple[Node, ...]] = []
        for layer in range(count):
            outputs: list[Node] = []
            for direction in range(directions):
                index = layer * directions + direction
                steps, states = self._direction(sequence, index, bool(direction))
                outputs.append(steps)
                last.append(states)
            both = directions == 2
            sequence = self._call(aten.cat.default, outputs, -1) if both else outputs[0]
        stacked = (self._stack(list(states)) for states in zip(*last, strict=True))
        return sequence, *stacked

    def _direction(
        self, sequence: Node, index: int, reverse: bool
    ) -> tuple[Node, tuple[Node, ...]]:
        each = 4 if self.has_biases else 2
        weights = self.parameters[index * each : (index + 1) * each]
        bias, recurrent_bias = self._biases(weights)
        projection = self._call(aten.linear.default, sequence, weights[0], bias)
        first = [self._call(aten.select.int, state, 0, index) for state in self.states]
        operands: list[Any] = [projection, *first, weights[1]]
        if self.kind is Kind.GRU:
            operands.append(recurrent_bias)
        elif self.kind is Kind.RNN:
            operands.append(self.nonlinearity)
        results = self._steps(operands, reverse)
        end = 0 if reverse else shape_of(sequence)[0] - 1
        hidden = self._call(aten.select.int, results[0], 0, end)
        return results[0], (hidden, *results[1:])

    def _biases(self, weights: list[Node]) -> tuple[Node | None, Node | None]:
        """Return the biases of the projection and of the recurrent product.

        What is added to both is added once; only the GRU multiplies a part of the second, the new
        gate's, by the reset gate.
        """
        if not self.has_biases:
            return None, None
        one, other = weights[2:]
        if self.kind is not Kind.GRU:
            return self._call(aten.add.Tensor, one, other), None
        hidden = shape_of(other)[0] // 3
        with torch.no_grad():
            both = torch.ones(3 * hidden)
            both[2 * hidden :] = 0
        outside = self._call(aten.mul.Tensor, other, self.rewriter.constant(both, "outside"))
        inside = self._call(aten.sub.Tensor, other, outside)
        return self._call(aten.add.Tensor, one, outside), inside

    def _steps(self, operands: list[Any], reverse: bool) -> list[Node]:
        """Insert the node of the steps and return its results."""
        from mizzen.quantize.steps import RecurrentSteps

        module = RecurrentSteps(self.kind, reverse)
        shape = (shape_of(operands[0])[0], *shape_of(operands[1]))
        with self.rewriter.fake_mode:
            results = [torch.empty(shape)]
            if self.kind is Kind.LSTM:
                results.append(torch.empty(shape_of(operands[2])))
        node = self.rewriter.call_module(module, "steps", operands, tuple(results))
        return [self.rewriter.item(node, index) for index in range(len(results))]

    def _stack(self, states: list[Node]) -> Node:
        raised = [self._call(aten.unsqueeze.default, state, 0) for state in states]
        return raised[0] if len(raised) == 1 else self._call(aten.cat.default, raised, 0)

    def _call(self, target: Any, *arguments: Any) -> Node:
        return self.rewriter.call(target, *arguments)


def replace_layers(rewriter: Rewriter, node: Node) -> Node | None:
    """Replace a recurrent layer in place, where it has a form with steps."""
    kind, nonlinearity = LAYERS[row_name(node)]
    arguments: Any = node.args
    sequence, states, parameters, has_biases, count, dropout, train, both, batch_first = arguments
    states = [states] if isinstance(states, Node) else list(states)
    directions = 2 if both else 1
    if len(parameters) != count * directions * (4 if has_biases else 2) or (train and dropout):
        return None  # projections of the hidden state, dropout between layers: no steps
    rewriter.at(node)
    layers = Layers(rewriter, kind, nonlinearity, states, list(parameters), bool(has_biases))
    if batch_first:
        sequence = rewriter.call(aten.transpose.int, sequence, 0, 1)
    results = list(layers.run(sequence, count, directions))
    if batch_first:
        results[0] = rewriter.call(aten.transpose.int, results[0], 0, 1)
    for item in list(node.users):
        index = cast(int, item.args[1])
        item.replace_all_uses_with(results[index])
        rewriter.module.graph.erase_node(item)
    rewriter.module.graph.erase_node(node)
    return None
