"""Recurrent layers next to the same steps in real numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.frontends.quantized.recurrence import (
    GRU_GRIDS,
    LSTM_GRIDS,
    RNN_GRIDS,
    Recurrence,
    gru,
    gru_reset_first,
    lstm,
    rnn,
    sigmoid,
)
from mizzen.frontends.quantized.scales import as_target
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.graph import DType, Quantization, integer_range

from .graphs import Bench

STEPS, BATCH, WIDTH = 5, 2, 6
GREATEST = {"gates": 8.0, "cell": 4.0, "narrow": 4.0, "difference": 2.0}
"""Of each grid; of the others, 1."""


def grids(names: tuple[str, ...], dtype: DType) -> dict[str, Target]:
    result: dict[str, Target] = {}
    for name in names:
        kind = DType.INT16 if name == "cell" else dtype
        low, high = integer_range(kind)
        scale = float(np.float32(GREATEST.get(name, 1.0) / high))
        result[name] = Target(kind, Quantization((scale,), (0,)), low, high)
    return result


class Layer:
    """A layer of random weights, and its first state."""

    def __init__(self, gates: int, names: tuple[str, ...], dtype: DType, is_reversed: bool) -> None:
        self.bench = Bench(gates)
        self.targets = grids(names, dtype)
        least = self.targets["gates"].scale / 2
        self.projection = self.bench.real((STEPS, BATCH, gates * WIDTH), dtype, least)
        self.integers = self.bench.weight(gates * WIDTH, WIDTH)
        self.scales = self.bench.random.uniform(0.001, 0.005, gates * WIDTH)
        self.bias = self.bench.random.normal(size=gates * WIDTH)
        self.first = self.bench.real((BATCH, WIDTH), dtype, 1 / integer_range(dtype)[1])
        self.is_reversed = is_reversed
        self.recurrence = Recurrence(
            self.bench.b, self.targets, self.projection, self.integers, self.scales, self.bias,
            is_reversed,
        )  # fmt: skip

    def model(self, step: Callable[[Array, Array], Array]) -> Array:
        """Return the hidden states, [steps, batch, width], of a step in real numbers."""
        numbers = self.bench.numbers(self.projection)
        hidden = self.bench.numbers(self.first).clip(-1, 1)
        states: list[Array] = []
        for given in numbers[::-1] if self.is_reversed else numbers:
            hidden = step(given, hidden)
            states.append(hidden)
        return np.stack(states[::-1] if self.is_reversed else states)

    def product(self, hidden: Array) -> Array:
        """Return what the weight makes of a state."""
        return hidden @ (self.integers * self.scales[:, None]).T + self.bias

    def off(self, sequence: Callable[[], Real], wanted: Array) -> float:
        """Return how far the hidden states are off, in real numbers."""
        target = self.targets["hidden"]
        found = self.bench.computed(lambda to: as_target(self.bench.b, sequence(), to), target)
        assert found.shape == wanted.shape
        return float(np.abs(found * target.scale - wanted).max())


def parts(x: Array, count: int) -> list[Array]:
    return np.split(x, count, axis=-1)


BOUNDS = {DType.INT8: 0.12, DType.INT16: 0.001}
"""Gates of 8 bits have steps of 1/16, and errors of one step are carried to the next."""

DIRECTIONS = pytest.mark.parametrize("is_reversed", [False, True])
DTYPES = pytest.mark.parametrize("dtype", BOUNDS)


@DIRECTIONS
@DTYPES
def test_lstm(dtype: DType, is_reversed: bool) -> None:
    layer = Layer(4, LSTM_GRIDS, dtype, is_reversed)
    first_cell = layer.bench.real((BATCH, WIDTH), DType.INT16, 1 / (1 << 15))
    cells = [layer.bench.numbers(first_cell)]

    def step(given: Array, hidden: Array) -> Array:
        enter, forget, new, leave = parts(given + layer.product(hidden), 4)
        cells.append(sigmoid(forget) * cells[-1] + sigmoid(enter) * np.tanh(new))
        return sigmoid(leave) * np.tanh(cells[-1])

    wanted = layer.model(step)
    assert (
        layer.off(lambda: lstm(layer.recurrence, layer.first, first_cell)[0], wanted)
        < (BOUNDS[dtype])
    )
    _, cell = lstm(layer.recurrence, layer.first, first_cell)
    found = layer.bench.computed(lambda _: cell.value, layer.targets["cell"])
    assert np.abs(found * cell.scale - cells[-1]).max() < BOUNDS[dtype]


@DIRECTIONS
@DTYPES
@pytest.mark.parametrize("function", [gru, gru_reset_first])
def test_gru(function: Callable[[Recurrence, Real], Real], dtype: DType, is_reversed: bool) -> None:
    layer = Layer(3, GRU_GRIDS, dtype, is_reversed)

    def step(given: Array, hidden: Array) -> Array:
        reset, update, new = parts(given, 3)
        ours = parts(layer.product(hidden), 3)
        reset, update = sigmoid(reset + ours[0]), sigmoid(update + ours[1])
        product = reset * ours[2] if function is gru else parts(layer.product(reset * hidden), 3)[2]
        new = np.tanh(new + product)
        return new + update * (hidden - new)

    wanted = layer.model(step)
    assert layer.off(lambda: function(layer.recurrence, layer.first), wanted) < BOUNDS[dtype]


@DIRECTIONS
@DTYPES
def test_rnn(dtype: DType, is_reversed: bool) -> None:
    layer = Layer(1, RNN_GRIDS, dtype, is_reversed)
    wanted = layer.model(lambda given, hidden: np.tanh(given + layer.product(hidden)))
    assert layer.off(lambda: rnn(layer.recurrence, layer.first, np.tanh), wanted) < BOUNDS[dtype]


def test_all_steps_share_the_weight() -> None:
    layer = Layer(3, GRU_GRIDS, DType.INT8, is_reversed=False)
    layer.bench.graph.set_outputs([gru(layer.recurrence, layer.first).value])
    kernels = {each.operands[1] for each in layer.bench.graph if each.kind == "CONV2D"}
    assert len(kernels) == 1
