"""Recurrent layers: one step after the other, with the same weights and scales in each.

What is rounded where is said by the operators themselves (`mizzen.quantize.recurrence`); the
integers here are the ones of that arithmetic. All steps share one constant of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import concat, reshape, sliced
from mizzen.frontends.quantized.elementwise import combine, multiply
from mizzen.frontends.quantized.functions import narrow_table
from mizzen.frontends.quantized.scales import as_target, requantize
from mizzen.frontends.quantized.tables import Tables, tables_of, wide_table, wide_target
from mizzen.frontends.quantized.terms import Constant, Real, Target
from mizzen.frontends.torch.int_lowering.int_context import IntCall, Result
from mizzen.frontends.torch.int_lowering.int_convolution import ACCUMULATORS
from mizzen.frontends.torch.program import Array
from mizzen.graph import DType, Quantization, Value
from mizzen.ops import Builder

LSTM_GRIDS = ("gates", "sigmoid", "tanh", "cell", "narrow", "hidden")
GRU_GRIDS = ("gates", "sigmoid", "tanh", "difference", "hidden")
RNN_GRIDS = ("gates", "hidden")

DTYPES = {8: DType.INT8, 16: DType.INT16}


def lstm_steps_quantized(call: IntCall) -> Result:
    """An LSTM layer in one direction: the sequence of hidden states, the last cell state."""
    layer = _Layer.of(call, LSTM_GRIDS)
    hidden, cell = layer.state("hidden", "hidden"), layer.state("cell", "cell")
    sequence: list[Value] = []
    for step in layer.order():
        hidden, cell = _lstm_step(layer, layer.input(step), hidden, cell)
        sequence.append(hidden.value)
    return layer.sequence(sequence), Real(reshape(call.b, cell.value, layer.state_shape))


def gru_steps_quantized(call: IntCall) -> Result:
    """A GRU layer in one direction: the sequence of hidden states."""
    layer = _Layer.of(call, GRU_GRIDS)
    hidden = layer.state("hidden", "hidden")
    sequence: list[Value] = []
    for step in layer.order():
        hidden = _gru_step(layer, layer.input(step), hidden)
        sequence.append(hidden.value)
    return layer.sequence(sequence)


def rnn_steps_quantized(call: IntCall) -> Result:
    """A plain recurrent layer in one direction: the sequence of hidden states."""
    layer = _Layer.of(call, RNN_GRIDS)
    function = np.tanh if call["nonlinearity"] == "tanh" else _relu
    hidden = layer.state("hidden", "hidden")
    sequence: list[Value] = []
    for step in layer.order():
        gates = layer.sum(layer.input(step), layer.recurrent(hidden), "gates")
        hidden = layer.table(gates, function, "hidden")
        sequence.append(hidden.value)
    return layer.sequence(sequence)


def _lstm_step(layer: _Layer, step: Real, hidden: Real, cell: Real) -> tuple[Real, Real]:
    """One step; gates are in the order input, forget, cell, output."""
    gates = layer.sum(step, layer.recurrent(hidden), "gates")
    opened = layer.table(gates, _sigmoid, "sigmoid")
    new = layer.table(layer.gate(gates, 2), np.tanh, "tanh")
    kept = layer.product(layer.widened(layer.gate(opened, 1)), cell, "cell")
    cell = layer.sum(kept, layer.product(layer.gate(opened, 0), new, "cell"), "cell")
    squashed = layer.table(layer.rounded(cell, "narrow"), np.tanh, "tanh")
    return layer.product(layer.gate(opened, 3), squashed, "hidden"), cell


def _gru_step(layer: _Layer, step: Real, hidden: Real) -> Real:
    """One step; gates are in the order reset, update, new."""
    recurrent = layer.recurrent(hidden)
    both = layer.sum(layer.gate(step, 0, 2), layer.gate(recurrent, 0, 2), "gates")
    opened = layer.table(both, _sigmoid, "sigmoid")
    reset = layer.product(layer.gate(opened, 0), layer.gate(recurrent, 2), "gates")
    new = layer.table(layer.sum(layer.gate(step, 2), reset, "gates"), np.tanh, "tanh")
    change = layer.combined("SUB", hidden, new, "difference")
    change = layer.product(layer.gate(opened, 1), change, "difference")
    return layer.sum(new, change, "hidden")


@dataclass(frozen=True, eq=False)
class _Layer:
    """What all steps of a layer share. Values are [1, 1, batch, channels]."""

    call: IntCall
    b: Builder
    targets: dict[str, Target]
    projection: Real
    weight: Value
    bias: Value
    scales: Array
    width: int
    tables: dict[Any, Tables] = field(default_factory=dict[Any, Tables])
    """Tables of 16 bits by function, scale and grid: all steps have the same."""

    @staticmethod
    def of(call: IntCall, names: Sequence[str]) -> _Layer:
        """Take a node apart."""
        weight = call.constant("weight")
        assert weight.integers is not None
        assert weight.quantization is not None
        outputs, width = weight.integers.shape
        scales = np.asarray(weight.quantization.scales, np.float64)
        targets = {
            name: _target(scale, zero_point, bits)
            for name, scale, zero_point, bits in zip(
                names, call["scales"], call["zero_points"], call["bits"], strict=True
            )
        }
        sums = ACCUMULATORS[targets["hidden"].dtype]
        bias = _bias(call, scales * targets["hidden"].scale, outputs)
        projection = call.real("projection").value
        kernel = weight.integers.reshape(outputs, 1, 1, width)
        return _Layer(
            call=call,
            b=call.b,
            targets=targets,
            projection=Real(reshape(call.b, projection, (1, *projection.shape))),
            weight=call.b.constant(kernel, DType.INT8),
            bias=call.b.constant(bias, sums),
            scales=scales,
            width=width,
        )

    @property
    def state_shape(self) -> tuple[int, ...]:
        """The shape of a state outside: [batch, hidden]."""
        return (self.projection.value.shape[2], self.width)

    def order(self) -> list[int]:
        """Return the steps in the order in which they are computed."""
        steps = list(range(self.projection.value.shape[1]))
        return steps[::-1] if self.call["reverse"] else steps

    def input(self, step: int) -> Real:
        """Return the projection of one step's input."""
        return Real(sliced(self.b, self.projection.value, 1, step, 1))

    def state(self, name: str, grid: str) -> Real:
        """Return a first state, on the grid of the states."""
        first = self.call.real(name)
        batch, width = first.value.shape
        value = reshape(self.b, first.value, (1, 1, batch, width))
        return self.rounded(Real(value), grid)

    def sequence(self, states: list[Value]) -> Real:
        """Put the states one after the other, in the inputs' order: [steps, batch, width]."""
        ordered = states[::-1] if self.call["reverse"] else states
        batch, width = self.state_shape
        joined = concat(self.b, ordered, axis=1)
        return Real(reshape(self.b, joined, (len(ordered), batch, width)))

    def recurrent(self, hidden: Real) -> Real:
        """Multiply the hidden state by the weight."""
        b = self.b
        value = b(
            "CONV2D",
            hidden.value,
            self.weight,
            self.bias,
            b.constant([hidden.zero_point], hidden.value.dtype),
            b.constant([0], DType.INT8),
            pad=(0, 0, 0, 0),
            stride=(1, 1),
            dilation=(1, 1),
            acc_type=ACCUMULATORS[hidden.value.dtype],
        )
        target = self.targets["gates"]
        return Real(requantize(b, value, self.scales * hidden.scale, target))

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

    def widened(self, x: Real) -> Real:
        """Return the same numbers in 16 bits: the NPU multiplies only numbers of one width."""
        quantization = Quantization((x.scale,), (0,))
        wide = Target(DType.INT16, quantization, -(1 << 15), (1 << 15) - 1)
        return Real(as_target(self.b, x, wide))

    def table(self, x: Real, function: Callable[[Array], Array], grid: str) -> Real:
        """Look a function up, whose entries are computed in float64 as the operator does."""
        target = self.targets[grid]
        if x.value.dtype is DType.INT8:
            entries = _entries(function, x, np.arange(-128, 128), target)
            return Real(narrow_table(self.b, x, entries, target))
        key = (function, x.scale, grid)
        if key not in self.tables:
            scale = wide_target(target).scale
            self.tables[key] = tables_of(lambda points: function(points * x.scale) / scale, target)
        return Real(wide_table(self.b, x, self.tables[key], target))


def _target(scale: float, zero_point: int, bits: int) -> Target:
    high = (1 << (bits - 1)) - 1
    low = -high if bits == 16 else -high - 1
    quantization = Quantization((float(scale),), (int(zero_point),))
    return Target(DTYPES[bits], quantization, low, high)


def _entries(function: Callable[[Array], Array], x: Real, points: Array, target: Target) -> Array:
    reals = function((points - x.zero_point) * x.scale)
    integers = np.rint(reals / target.scale) + target.zero_point
    return np.clip(integers, target.quant_min, target.quant_max).astype(np.int64)


def _bias(call: IntCall, scales: Array, outputs: int) -> Array:
    argument: Any = call.arguments.get("bias")
    if argument is None:
        return np.zeros(outputs, np.int64)
    term = call.term("bias")
    assert isinstance(term, Constant)
    return np.rint(term.real.astype(np.float64) / scales).astype(np.int64)


def _sigmoid(reals: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-reals))


def _relu(reals: Array) -> Array:
    return np.maximum(reals, 0.0)
