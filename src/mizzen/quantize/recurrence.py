"""Recurrences: the steps of LSTM, GRU and RNN layers, and the operators they ship as.

Each recurrence is written once, over `at(name, value)`, which is called with every intermediate
result. Calibration looks at it there, training rounds it with a gradient, and the quantised
operator rounds it to the integers of its grid. So what the operators compute, in order, is what the
functions below say, with a rounding at each `at`. All steps of a sequence use the same grids.

The operators (`torch.ops.mizzen`) take the projection of the inputs, a linear layer over the whole
sequence that already has the biases of the inputs in it: [steps, batch, gates * hidden].

    lstm_steps_quantized(Tensor projection, Tensor hidden, Tensor cell, Tensor weight,
                         bool reverse, float[] scales, int[] zero_points, int[] bits)
        -> (Tensor sequence, Tensor cell)
    gru_steps_quantized(Tensor projection, Tensor hidden, Tensor weight, Tensor? bias,
                        bool reverse, float[] scales, int[] zero_points, int[] bits) -> Tensor
    rnn_steps_quantized(Tensor projection, Tensor hidden, Tensor weight, str nonlinearity,
                        bool reverse, float[] scales, int[] zero_points, int[] bits) -> Tensor

`hidden` and `cell` are the first states, [batch, hidden]; `weight` is [gates * hidden, hidden] in
PyTorch's order of gates. The sequence is [steps, batch, hidden], in the order of the inputs also
where `reverse` starts from the last. Scales, zero points and bits are in the order of `GRIDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

At = Callable[[str, Tensor], Tensor]


class Kind(Enum):
    """The recurrences there are; the value is the operator's first word."""

    LSTM = "lstm"
    GRU = "gru"
    RNN = "rnn"


GRIDS: dict[Kind, tuple[str, ...]] = {
    Kind.LSTM: ("gates", "sigmoid", "tanh", "cell", "narrow", "hidden"),
    Kind.GRU: ("gates", "sigmoid", "tanh", "difference", "hidden"),
    Kind.RNN: ("gates", "hidden"),
}
"""The grids of each recurrence, in the order of the operators' lists.

gates: projection, recurrent product and their sum. sigmoid, tanh: results of these functions.
cell: the LSTM's cell state, 16 bits. narrow: the same with as many bits as the gates, for the table
of tanh. difference: hidden state minus new gate. hidden: the hidden state, and the sequence.
"""


@dataclass(frozen=True)
class Grid:
    """The integers that a value is rounded to."""

    scale: float
    zero_point: int
    bits: int

    def round(self, value: Tensor) -> Tensor:
        """Return the nearest value on the grid, halves to even, limited at its ends."""
        high = 2 ** (self.bits - 1) - 1
        low = -high if self.bits == 16 else -high - 1
        integers = torch.clamp(torch.round(value / self.scale) + self.zero_point, low, high)
        return (integers - self.zero_point) * self.scale


def lstm_steps(
    projection: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, reverse: bool, at: At
) -> tuple[Tensor, Tensor]:
    """Run an LSTM: gates in the order input, forget, cell, output."""
    sequence: list[Tensor] = []
    for step in _steps(projection, reverse):
        recurrent = at("gates", torch.nn.functional.linear(hidden, weight))
        gates = at("gates", step + recurrent).chunk(4, -1)
        enter, forget, leave = (at("sigmoid", torch.sigmoid(gates[i])) for i in (0, 1, 3))
        new = at("tanh", torch.tanh(gates[2]))
        kept = at("cell", forget * cell)
        cell = at("cell", kept + at("cell", enter * new))
        hidden = at("hidden", leave * at("tanh", torch.tanh(at("narrow", cell))))
        sequence.append(hidden)
    return _stacked(sequence, reverse), cell


def gru_steps(
    projection: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, at: At
) -> Tensor:
    """Run a GRU: gates in the order reset, update, new."""
    sequence: list[Tensor] = []
    for step in _steps(projection, reverse):
        recurrent = at("gates", torch.nn.functional.linear(hidden, weight, bias)).chunk(3, -1)
        inputs = step.chunk(3, -1)
        reset = at("sigmoid", torch.sigmoid(at("gates", inputs[0] + recurrent[0])))
        update = at("sigmoid", torch.sigmoid(at("gates", inputs[1] + recurrent[1])))
        new = at("gates", inputs[2] + at("gates", reset * recurrent[2]))
        new = at("tanh", torch.tanh(new))
        change = at("difference", update * at("difference", hidden - new))
        hidden = at("hidden", new + change)
        sequence.append(hidden)
    return _stacked(sequence, reverse)


def rnn_steps(
    projection: Tensor, hidden: Tensor, weight: Tensor, nonlinearity: str, reverse: bool, at: At
) -> Tensor:
    """Run a plain recurrence, with ``tanh`` or ``relu``."""
    function = torch.tanh if nonlinearity == "tanh" else torch.relu
    sequence: list[Tensor] = []
    for step in _steps(projection, reverse):
        recurrent = at("gates", torch.nn.functional.linear(hidden, weight))
        hidden = at("hidden", function(at("gates", step + recurrent)))
        sequence.append(hidden)
    return _stacked(sequence, reverse)


def _steps(projection: Tensor, reverse: bool) -> Iterator[Tensor]:
    steps = projection.unbind(0)
    return iter(steps[::-1] if reverse else steps)


def _stacked(sequence: list[Tensor], reverse: bool) -> Tensor:
    return torch.stack(sequence[::-1] if reverse else sequence)


def on_grids(
    kind: Kind, scales: Sequence[float], zero_points: Sequence[int], bits: Sequence[int]
) -> At:
    """Return the `at` that rounds to the grids of a quantised operator."""
    grids = dict(zip(GRIDS[kind], map(Grid, scales, zero_points, bits), strict=True))
    return lambda name, value: grids[name].round(value)


# Products and sums of integers are exact in float64, and only there: 16 bits by 16 bits.


def _lstm_quantized(
    projection: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, reverse: bool, *grids: Any
) -> tuple[Tensor, Tensor]:
    at = on_grids(Kind.LSTM, *grids)
    sequence, last = lstm_steps(
        projection.double(), hidden.double(), cell.double(), weight.double(), reverse, at
    )
    return sequence.to(projection.dtype), last.to(projection.dtype)


def _gru_quantized(
    projection: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool,
    *grids: Any,
) -> Tensor:  # fmt: skip
    at = on_grids(Kind.GRU, *grids)
    offset = None if bias is None else bias.double()
    sequence = gru_steps(projection.double(), hidden.double(), weight.double(), offset, reverse, at)
    return sequence.to(projection.dtype)


def _rnn_quantized(
    projection: Tensor, hidden: Tensor, weight: Tensor, nonlinearity: str, reverse: bool,
    *grids: Any,
) -> Tensor:  # fmt: skip
    at = on_grids(Kind.RNN, *grids)
    sequence = rnn_steps(
        projection.double(), hidden.double(), weight.double(), nonlinearity, reverse, at
    )
    return sequence.to(projection.dtype)


def _sequence_like(projection: Tensor, hidden: Tensor, *rest: Any) -> Tensor:
    return projection.new_empty((projection.shape[0], *hidden.shape))


def _lstm_like(projection: Tensor, hidden: Tensor, cell: Tensor, *rest: Any) -> tuple[Any, Any]:
    return _sequence_like(projection, hidden), torch.empty_like(cell)


GRID_ARGUMENTS = "bool reverse, float[] scales, int[] zero_points, int[] bits"
LIBRARY: Any = torch.library.Library("mizzen", "FRAGMENT")


def _define(kind: Kind, operands: str, results: str, kernel: Any, fake: Any) -> None:
    name = f"{kind.value}_steps_quantized"
    LIBRARY.define(f"{name}({operands}, {GRID_ARGUMENTS}) -> {results}")
    LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
    library: Any = torch.library
    library.register_fake(f"mizzen::{name}", fake, lib=LIBRARY)


_define(
    Kind.LSTM,
    "Tensor projection, Tensor hidden, Tensor cell, Tensor weight",
    "(Tensor, Tensor)",
    _lstm_quantized,
    _lstm_like,
)
_define(
    Kind.GRU,
    "Tensor projection, Tensor hidden, Tensor weight, Tensor? bias",
    "Tensor",
    _gru_quantized,
    _sequence_like,
)
_define(
    Kind.RNN,
    "Tensor projection, Tensor hidden, Tensor weight, str nonlinearity",
    "Tensor",
    _rnn_quantized,
    _sequence_like,
)
