"""Recurrent layers: one step after the other, with the same weights and scales in each.

What is rounded where is the caller's: a `Recurrence` has the grids that gates and states are
rounded to, by name, those of `LSTM_GRIDS` and the like. All steps share one constant of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import concat, lifted, reshape, sliced
from mizzen.frontends.arrangement.windows import POINTWISE
from mizzen.frontends.quantized.elementwise import combine, multiply
from mizzen.frontends.quantized.functions import Function, narrow_table
from mizzen.frontends.quantized.layers import ACCUMULATORS
from mizzen.frontends.quantized.scales import as_target, requantize, widened
from mizzen.frontends.quantized.tables import Tables, tables_of, wide_table, wide_target
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.graph import DType, Value
from mizzen.ops import Builder

LSTM_GRIDS = ("gates", "sigmoid", "tanh", "cell", "narrow", "hidden")
GRU_GRIDS = ("gates", "sigmoid", "tanh", "difference", "hidden")
RNN_GRIDS = ("gates", "hidden")


def lstm(layer: Recurrence, first: Real, first_cell: Real) -> tuple[Real, Real]:
    """Return the sequence of hidden states, and the last cell state.

    Gates are in the order input, forget, cell, output.
    """
    hidden, cell = layer.state(first, "hidden"), layer.state(first_cell, "cell")
    states: list[Value] = []
    for step in layer.order():
        hidden, cell = _lstm_step(layer, layer.input(step), hidden, cell)
        states.append(hidden.value)
    return layer.sequence(states), Real(reshape(layer.b, cell.value, layer.state_shape))


def gru(layer: Recurrence, first: Real) -> Real:
    """Return the sequence of hidden states.

    Gates are in the order reset, update, new; the reset gate multiplies the new gate's product.
    """
    return _sequence(layer, first, _gru_step)


def gru_reset_first(layer: Recurrence, first: Real) -> Real:
    """Return what `gru` does, with a reset gate that multiplies the hidden state."""
    return _sequence(layer, first, _gru_reset_first_step)


def rnn(layer: Recurrence, first: Real, function: Function) -> Real:
    """Return the sequence of hidden states, a function of the gates."""

    def step(layer: Recurrence, given: Real, hidden: Real) -> Real:
        gates = layer.sum(given, layer.recurrent(hidden), "gates")
        return layer.table(gates, function, "hidden")

    return _sequence(layer, first, step)


def _sequence(
    layer: Recurrence, first: Real, step_of: Callable[[Recurrence, Real, Real], Real]
) -> Real:
    hidden = layer.state(first, "hidden")
    states: list[Value] = []
    for step in layer.order():
        hidden = step_of(layer, layer.input(step), hidden)
        states.append(hidden.value)
    return layer.sequence(states)


def _lstm_step(layer: Recurrence, step: Real, hidden: Real, cell: Real) -> tuple[Real, Real]:
    """One step."""
    gates = layer.sum(step, layer.recurrent(hidden), "gates")
    opened = layer.table(gates, sigmoid, "sigmoid")
    new = layer.table(layer.gate(gates, 2), np.tanh, "tanh")
    kept = layer.product(widened(layer.b, layer.gate(opened, 1)), cell, "cell")
    cell = layer.sum(kept, layer.product(layer.gate(opened, 0), new, "cell"), "cell")
    squashed = layer.table(layer.rounded(cell, "narrow"), np.tanh, "tanh")
    return layer.product(layer.gate(opened, 3), squashed, "hidden"), cell


def _gru_step(layer: Recurrence, step: Real, hidden: Real) -> Real:
    """One step."""
    recurrent = layer.recurrent(hidden)
    both = layer.sum(layer.gate(step, 0, 2), layer.gate(recurrent, 0, 2), "gates")
    opened = layer.table(both, sigmoid, "sigmoid")
    reset = layer.product(layer.gate(opened, 0), layer.gate(recurrent, 2), "gates")
    return _gru_mixed(layer, layer.gate(step, 2), reset, layer.gate(opened, 1), hidden)


def _gru_reset_first_step(layer: Recurrence, step: Real, hidden: Real) -> Real:
    """One step."""
    both = layer.sum(layer.gate(step, 0, 2), layer.recurrent(hidden, 0, 2), "gates")
    opened = layer.table(both, sigmoid, "sigmoid")
    kept = layer.product(layer.gate(opened, 0), hidden, "hidden")
    product = layer.recurrent(kept, 2, 1)
    return _gru_mixed(layer, layer.gate(step, 2), product, layer.gate(opened, 1), hidden)


def _gru_mixed(layer: Recurrence, given: Real, product: Real, update: Real, hidden: Real) -> Real:
    """Return the new numbers, and of the old ones as much as the update gate lets through."""
    new = layer.table(layer.sum(given, product, "gates"), np.tanh, "tanh")
    change = layer.combined("SUB", hidden, new, "difference")
    return layer.sum(new, layer.product(update, change, "difference"), "hidden")


@dataclass(frozen=True, eq=False)
class _Weights:
    """The constants of some gates: the weight, the bias in the sums' units, and the scales."""

    kernel: Value
    bias: Value
    scales: Array


@dataclass(frozen=True, eq=False)
class Recurrence:
    """What all steps of a layer in one direction share. Values are [1, 1, batch, channels].

    targets      grids by name
    projection   what the inputs give, [steps, batch, gates * width]
    integers     the weight of the hidden state, [gates * width, width]
    scales       of the weight, by output or one for all
    bias         float64, by output, if any
    is_reversed  whether the last input comes first
    """

    b: Builder
    targets: Mapping[str, Target]
    projection: Real
    integers: Array
    scales: Array
    bias: Array | None
    is_reversed: bool
    tables: dict[Any, Tables] = field(default_factory=dict[Any, Tables])
    """Tables of 16 bits by function, scale and grid: all steps have the same."""
    weights: dict[Any, _Weights] = field(default_factory=dict[Any, _Weights])
    """The constants of gates: all steps have the same."""

    @property
    def width(self) -> int:
        """Channels of a state."""
        return self.integers.shape[1]

    @property
    def state_shape(self) -> tuple[int, ...]:
        """The shape of a state outside: [batch, hidden]."""
        return (self.projection.value.shape[1], self.width)

    def order(self) -> list[int]:
        """Return the steps in the order in which they are computed."""
        steps = list(range(self.projection.value.shape[0]))
        return steps[::-1] if self.is_reversed else steps

    def input(self, step: int) -> Real:
        """Return the projection of one step's input."""
        return Real(sliced(self.b, self._steps, 1, step, 1))

    @cached_property
    def _steps(self) -> Value:
        """The projection in four dimensions."""
        return lifted(self.b, self.projection.value, 4)

    def state(self, first: Real, grid: str) -> Real:
        """Return a first state, [batch, width], on the grid of the states."""
        batch, width = first.value.shape
        value = reshape(self.b, first.value, (1, 1, batch, width))
        return self.rounded(Real(value), grid)

    def sequence(self, states: list[Value]) -> Real:
        """Put the states one after the other, in the inputs' order: [steps, batch, width]."""
        ordered = states[::-1] if self.is_reversed else states
        batch, width = self.state_shape
        joined = concat(self.b, ordered, axis=1)
        return Real(reshape(self.b, joined, (len(ordered), batch, width)))

    def recurrent(self, hidden: Real, index: int = 0, count: int | None = None) -> Real:
        """Multiply the hidden state by the weight of some gates, all of them if not said."""
        b, weights = self.b, self._weights(index, count)
        value = b(
            "CONV2D",
            hidden.value,
            weights.kernel,
            weights.bias,
            b.constant([hidden.zero_point], hidden.value.dtype),
            b.constant([0], DType.INT8),
            acc_type=ACCUMULATORS[hidden.value.dtype],
            **POINTWISE,
        )
        target = self.targets["gates"]
        return Real(requantize(b, value, weights.scales * hidden.scale, target))

    def _weights(self, index: int, count: int | None) -> _Weights:
        key = (index, count)
        if key not in self.weights:
            outputs = slice(index * self.width, count and (index + count) * self.width)
            hidden, integers = self.targets["hidden"], self.integers[outputs]
            scales = self.scales if self.scales.size == 1 else self.scales[outputs]
            bias = np.zeros(len(integers)) if self.bias is None else self.bias[outputs]
            steps = np.rint(bias / (scales * hidden.scale)).astype(np.int64)
            kernel = self.b.constant(integers[:, None, None, :], DType.INT8)
            offsets = self.b.constant(steps, ACCUMULATORS[hidden.dtype])
            self.weights[key] = _Weights(kernel, offsets, scales)
        return self.weights[key]

    def gate(self, gates: Real, index: int, count: int = 1) -> Real:
        """Return some of the gates."""
        start, size = index * self.width, count * self.width
        return Real(sliced(self.b, gates.value, 3, start, size))

    def sum(self, x: Real, y: Real, grid: str) -> Real:
        """Add."""
        return self.combined("ADD", x, y, grid)

    def combined(self, kind: str, x: Real, y: Real, grid: str) -> Real:
        """Add or subtract."""
        return Real(combine(self.b, kind, x, y, self.targets[grid]))

    def product(self, x: Real, y: Real, grid: str) -> Real:
        """Multiply number by number."""
        return Real(multiply(self.b, x, y, self.targets[grid]))

    def rounded(self, x: Real, grid: str) -> Real:
        """Bring a tensor to another grid."""
        return Real(as_target(self.b, x, self.targets[grid]))

    def table(self, x: Real, function: Function, grid: str) -> Real:
        """Look a function up, whose entries are computed in float64."""
        target = self.targets[grid]
        if x.value.dtype is DType.INT8:
            entries = _entries(function, x, np.arange(-128, 128), target)
            return Real(narrow_table(self.b, x, entries, target))
        key = (function, x.scale, grid)
        if key not in self.tables:
            scale = wide_target(target).scale
            self.tables[key] = tables_of(lambda points: function(points * x.scale) / scale, target)
        return Real(wide_table(self.b, x, self.tables[key], target))


def _entries(function: Function, x: Real, points: Array, target: Target) -> Array:
    reals = function((points - x.zero_point) * x.scale)
    integers = np.rint(reals / target.scale) + target.zero_point
    return np.clip(integers, target.quant_min, target.quant_max).astype(np.int64)


def sigmoid(reals: Array) -> Array:
    """Return the logistic function, 0 for numbers too far below zero for float64."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-reals))
