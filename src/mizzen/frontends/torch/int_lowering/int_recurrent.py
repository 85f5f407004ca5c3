"""Recurrent layers of integers, whose grids the operators themselves say.

The operators are those of `mizzen.quantize.recurrence`; the integers are of the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.frontends.quantized.recurrence import (
    GRU_GRIDS,
    LSTM_GRIDS,
    RNN_GRIDS,
    Recurrence,
    gru,
    lstm,
    rnn,
)
from mizzen.frontends.quantized.terms import Array, Target
from mizzen.frontends.torch.int_lowering.int_context import IntCall, Result
from mizzen.graph import DType, Quantization

DTYPES = {8: DType.INT8, 16: DType.INT16}


def lstm_steps_quantized(call: IntCall) -> Result:
    """An LSTM layer in one direction: the sequence of hidden states, the last cell state."""
    return lstm(_layer(call, LSTM_GRIDS), call.real("hidden"), call.real("cell"))


def gru_steps_quantized(call: IntCall) -> Result:
    """A GRU layer in one direction: the sequence of hidden states."""
    return gru(_layer(call, GRU_GRIDS), call.real("hidden"))


def rnn_steps_quantized(call: IntCall) -> Result:
    """A plain recurrent layer in one direction: the sequence of hidden states."""
    function = np.tanh if call["nonlinearity"] == "tanh" else _relu
    return rnn(_layer(call, RNN_GRIDS), call.real("hidden"), function)


def _layer(call: IntCall, names: Sequence[str]) -> Recurrence:
    """Take a node apart."""
    weight = call.constant("weight")
    assert weight.integers is not None
    assert weight.quantization is not None
    grids = zip(names, call["scales"], call["zero_points"], call["bits"], strict=True)
    bias = call.constant("bias").real.astype(np.float64) if call.given("bias") else None
    return Recurrence(
        b=call.b,
        targets={name: _target(*grid) for name, *grid in grids},
        projection=call.real("projection"),
        integers=weight.integers,
        scales=np.asarray(weight.quantization.scales, np.float64),
        bias=bias,
        is_reversed=bool(call["reverse"]),
    )


def _target(scale: float, zero_point: int, bits: int) -> Target:
    high = (1 << (bits - 1)) - 1
    low = -high if bits == 16 else -high - 1
    quantization = Quantization((float(scale),), (int(zero_point),))
    return Target(DTYPES[bits], quantization, low, high)


def _relu(reals: Array) -> Array:
    return np.maximum(reals, 0.0)
