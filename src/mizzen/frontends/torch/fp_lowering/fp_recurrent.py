"""Recurrent layers: one step after the other; all steps share one constant of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mizzen.frontends.arrangement.movement import concat, permuted, reshape, sliced
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_convolution import projected
from mizzen.frontends.torch.fp_lowering.fp_elementwise import sigmoid, tanh
from mizzen.frontends.torch.fp_lowering.fp_lower import Fixed, FpCall, Result, array_of
from mizzen.frontends.torch.program import Array
from mizzen.graph import Value
from mizzen.ops import Builder

States = tuple[Value, ...]
"""The hidden state [N,H], and the cell state of an LSTM."""
Step = Callable[["_Direction", Value, States], States]


@dataclass(frozen=True, eq=False)
class _Direction:
    """One layer in one direction: what its steps share. The weight is [1,H,gates*H]."""

    b: Builder
    weight: Value
    bias: Value | None
    width: int

    def recurrent(self, hidden: Value) -> Value:
        """Multiply the hidden state by the weight, for all gates."""
        b, (batch, width) = self.b, hidden.shape
        zero = b.constant([0], hidden.dtype)
        lifted = reshape(b, hidden, (1, batch, width))
        sums = b("MATMUL", lifted, self.weight, zero, zero, dtype=a.sum_type(hidden.dtype))
        value = reshape(b, a.cast(b, sums, hidden.dtype), (batch, self.weight.shape[2]))
        return value if self.bias is None else a.add(b, value, self.bias)

    def gate(self, gates: Value, index: int) -> Value:
        """Return one of the gates."""
        return sliced(self.b, gates, 1, index * self.width, self.width)


def _lstm_step(layer: _Direction, step: Value, states: States) -> States:
    """One step; gates are in the order input, forget, cell, output."""
    b, (hidden, cell) = layer.b, states
    gates = a.add(b, step, layer.recurrent(hidden))
    entry, kept, shown = (sigmoid(b, layer.gate(gates, index)) for index in (0, 1, 3))
    new = tanh(b, layer.gate(gates, 2))
    cell = a.add(b, a.mul(b, kept, cell), a.mul(b, entry, new))
    return a.mul(b, shown, tanh(b, cell)), cell


def _gru_step(layer: _Direction, step: Value, states: States) -> States:
    """One step; gates are in the order reset, update, new."""
    b, (hidden,) = layer.b, states
    recurrent = layer.recurrent(hidden)
    reset, kept = (
        sigmoid(b, a.add(b, layer.gate(step, index), layer.gate(recurrent, index)))
        for index in (0, 1)
    )
    new = tanh(b, a.add(b, layer.gate(step, 2), a.mul(b, reset, layer.gate(recurrent, 2))))
    return (a.add(b, new, a.mul(b, kept, a.sub(b, hidden, new))),)


def _plain_step(function: Callable[[Builder, Value], Value]) -> Step:
    def step(layer: _Direction, given: Value, states: States) -> States:
        return (function(layer.b, a.add(layer.b, given, layer.recurrent(states[0]))),)

    return step


def lstm(call: FpCall) -> Result:
    """LSTM layers: the sequence of the last one, the last hidden states, the last cell states."""
    return _layers(call, _lstm_step, call.values("hx"))


def gru(call: FpCall) -> Result:
    """GRU layers: the sequence of the last one, the last hidden states."""
    return _layers(call, _gru_step, [call.value("hx")])


def rnn_tanh(call: FpCall) -> Result:
    """Plain recurrent layers."""
    return _layers(call, _plain_step(tanh), [call.value("hx")])


def rnn_relu(call: FpCall) -> Result:
    """Plain recurrent layers with ReLU."""
    function = _plain_step(lambda b, x: a.clamp(b, x, 0.0, None))
    return _layers(call, function, [call.value("hx")])


def _layers(call: FpCall, step: Step, starts: Sequence[Value]) -> Result:
    """Run all layers; states are [layers * directions, N, H]."""
    b, x = call.b, call.value("input")
    call.need(not call["train"] or not call["dropout"], "it drops out", "call `model.eval()`")
    batched = x.type.rank == 3
    if not batched:
        x = reshape(b, x, (x.shape[0], 1, x.shape[1]))
        starts = [reshape(b, each, (each.shape[0], 1, each.shape[1])) for each in starts]
    elif call["batch_first"]:
        x = permuted(b, x, (1, 0, 2))
    directions = 2 if call["bidirectional"] else 1
    ends: list[States] = []
    for layer in range(int(call["num_layers"])):
        sides = [
            _direction(call, x, layer * directions + side, side, step, starts)
            for side in range(directions)
        ]
        x = concat(b, [sequence for sequence, _ in sides], 2)
        ends += [states for _, states in sides]
    if batched and call["batch_first"]:
        x = permuted(b, x, (1, 0, 2))
    lasts = [concat(b, [_row(b, states[index]) for states in ends], 0) for index in
             range(len(starts))]  # fmt: skip
    return tuple(
        reshape(b, value, shape) for value, shape in zip([x, *lasts], call.shapes, strict=True)
    )


def _row(b: Builder, state: Value) -> Value:
    return reshape(b, state, (1, *state.shape))


def _direction(
    call: FpCall, x: Value, place: int, side: int, step: Step, starts: Sequence[Value]
) -> tuple[Value, States]:
    """Run one layer in one direction over [steps, N, C]: its sequence, its last states."""
    b = call.b
    arrays = _parameters(call, place)
    steps, batch, _ = x.shape
    width = arrays[1].shape[1]
    gates = arrays[0].shape[0]
    given = projected(call, x, arrays[0], arrays[2], (steps, batch, gates))
    layer = _Direction(
        b,
        a.filled(b, arrays[1].T[None], x.dtype),
        None if arrays[3] is None else a.filled(b, arrays[3], x.dtype),
        width,
    )
    states = tuple(reshape(b, sliced(b, each, 0, place, 1), (batch, width)) for each in starts)
    sequence: list[Value] = []
    for index in range(steps)[:: -1 if side else 1]:
        each = reshape(b, sliced(b, given, 0, index, 1), (batch, gates))
        states = step(layer, each, states)
        sequence.append(_row(b, states[0]))
    return concat(b, sequence[::-1] if side else sequence, 0), states


def _parameters(call: FpCall, place: int) -> tuple[Array, Array, Array | None, Array | None]:
    """Return the weights of input and state, and their biases."""
    count = 4 if call["has_biases"] else 2
    nodes: list[Any] = list(call["params"])[place * count : (place + 1) * count]
    terms = [call.context.terms[node] for node in nodes]
    arrays = [array_of(each.tensor) for each in terms if isinstance(each, Fixed)]
    layers = int(call["num_layers"]) * (2 if call["bidirectional"] else 1)
    if len(call["params"]) != layers * count:
        raise RefusedError("it has projections", "use an LSTM without proj_size")
    if len(arrays) != count:
        raise RefusedError("its weights are no constants of the model")
    if count == 2:
        return arrays[0], arrays[1], None, None
    return arrays[0], arrays[1], arrays[2], arrays[3]
