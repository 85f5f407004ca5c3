"""UNIDIRECTIONAL_SEQUENCE_LSTM with its state as variables of the graph, step by step.

Gates are sums of two dense layers in 16 bits, of the input and of what was given last, each scaled
to units of 2**-12. The four gates are one layer here, first the three with a sigmoid; all steps'
inputs go through one. Sigmoid and tanh are CUSTOM operations as LOGISTIC and TANH of 16 bits are.

Ref: TFLite Micro, kernels/lstm_eval.h, lstm_eval.cc, lstm_eval_common.cc, lstm_shared.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.flatbuffer.tflite import ActivationFunctionType as Activation
from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers_with_state, no_shift, zero
from mizzen.frontends.tflite.lowering.lower_curves import UNIT_BITS, nearest_power
from mizzen.frontends.tflite.lowering.requantization import (
    IDENTITY,
    centered,
    reach,
    rescale,
    scale_of,
    short_scale_of,
)
from mizzen.frontends.tflite.tflite_tensors import Array
from mizzen.graph import DType, Quantization, Value

INPUT, FROM_INPUT, FROM_HIDDEN, BIASES = 0, 1, 5, 12
HIDDEN, CELL = 18, 19
ABSENT_INPUTS = (9, 10, 11, 16, 17, 20, 21, 22, 23)
"""Peepholes, a projection, and coefficients of a layer norm."""

ORDER = (0, 1, 3, 2)
"""The gates as they are joined here, of the operator's: input, forget, cell, output."""

GATE_SCALE = 2.0**-UNIT_BITS
CURVE_SCALE = 2.0**-15
"""Scales of what sigmoid and tanh are computed of, and of what they give."""

LONG_SUM_LIMIT = 1 << 47


@lowers_with_state("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(call: Call) -> Value:
    """[N,T,I] or, time first, [T,N,I] to the same with S cells: RESHAPE, CONV2D, RESCALE; of each
    step SLICE, CONV2D, RESCALE, ADD, RESCALE, CUSTOM, CUSTOM, MUL, RESCALE, MUL, RESCALE, ADD,
    RESCALE [, CLAMP], CUSTOM, MUL, RESCALE; CONCAT."""
    cells = _checked(call)
    time_axis = 0 if call.option("time_major", False) else 1
    b, shape = call.b, call.input(INPUT).shape
    batch, steps = shape[1 - time_axis], shape[time_axis]
    gates = _dense(call, call.value(INPUT), FROM_INPUT, INPUT, with_bias=True)
    gates = b("RESHAPE", gates, b.shape((*shape[:2], 4 * cells)))
    state = _State(call, cells, call.state(HIDDEN), call.state(CELL))
    given: list[Value] = []
    for step in range(steps):
        starts, sizes = [0, 0, 0], [*shape[:2], 4 * cells]
        starts[time_axis], sizes[time_axis] = step, 1
        part = b("SLICE", gates, b.shape(starts), b.shape(sizes))
        state = state.stepped(b("RESHAPE", part, b.shape((batch, 4 * cells))))
        one = (1, batch, cells) if time_axis == 0 else (batch, 1, cells)
        hidden = b("RESHAPE", state.hidden, b.shape((batch, cells)))
        given.append(b("RESHAPE", hidden, b.shape(one), quantization=kept(hidden)))
    call.keep(HIDDEN, state.hidden)
    call.keep(CELL, state.cell)
    return b("CONCAT", *given, axis=time_axis, quantization=kept(given[0]))


def _checked(call: Call) -> int:
    """Refuse what the kernel does not take; return the number of cells."""
    call.need(not any(call.has(index) for index in ABSENT_INPUTS), "it is no plain LSTM")
    hidden, cell = call.input(HIDDEN), call.input(CELL)
    call.need(hidden.variable and cell.variable, "its state is no variable")
    call.need(cell.type is FileType.INT16, "its cells are not INT16")
    dtype = call.need_types(
        FileType.INT8, FileType.INT16, tensors=(call.input(INPUT), hidden, call.output())
    )
    call.need(
        call.option("fused_activation_function") == Activation.TANH, "its cell gate has no tanh"
    )
    bias = FileType.INT32 if dtype is FileType.INT8 else FileType.INT64
    for gate in range(4):
        call.need(call.input(BIASES + gate).type is bias, f"its biases are not {bias.name}")
    shape = call.input(INPUT).shape
    call.need(len(shape) == len(call.output().shape) == 3, "its input is no sequence")
    call.need(hidden.elements == cell.elements, "its states are of several sizes")
    return call.output().shape[-1]


def _dense(call: Call, value: Value, first: int, given: int, *, with_bias: bool = False) -> Value:
    """Return the layer of all gates of [..., I], in 16 bits, [N, 1, 1, 4 S].

    first  the operator's input that is the first gate's weights
    given  the tensor that `value` is of, for its scale
    """
    b, x = call.b, call.quantization(call.input(given))
    weights = [call.contents(first + gate) for gate in ORDER]
    scales = [call.quantization(call.input(first + gate)) for gate in ORDER]
    call.need(all(row.dtype == np.int8 for row in weights), "its weights are not INT8")
    call.need(not any(row.zero_point for row in scales), "its weights have zero points")
    matrix = np.concatenate(weights)
    inputs, dtype = matrix.shape[1], value.dtype
    ratios = np.repeat([x.scale * row.scale / GATE_SCALE for row in scales], len(weights[0]))
    bias = _biases(call) if with_bias else np.zeros(len(matrix), np.int64)
    sums = b(
        "CONV2D",
        b("RESHAPE", value, b.shape((value.type.elements // inputs, 1, 1, inputs))),
        b.constant(matrix.reshape(-1, 1, 1, inputs), DType.INT8),
        b.constant(bias, DType.INT32 if dtype is DType.INT8 else DType.INT48),
        zero(b, dtype, x.zero_point),
        zero(b, DType.INT8),
        pad=(0, 0, 0, 0),
        stride=(1, 1),
        dilation=(1, 1),
    )
    bound = inputs * reach(dtype, x.zero_point) * 128 + int(np.abs(bias).max()) + 1
    call.need(bound < LONG_SUM_LIMIT, "its 48-bit sums can overflow")
    scale = scale_of(ratios) if dtype is DType.INT8 else short_scale_of(ratios)
    return rescale(b, sums, scale, DType.INT16, bound=bound)


def _biases(call: Call) -> Array:
    return np.concatenate([call.contents(BIASES + gate) for gate in ORDER]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """What an LSTM of some cells keeps between two steps, [N, S] each."""

    call: Call
    cells: int
    hidden: Value
    cell: Value

    def stepped(self, gates: Value) -> _State:
        """Return the state after a step with an input's part of the gates, [N, 4 S]."""
        call, b, cells = self.call, self.call.b, self.cells
        again = _dense(call, self.hidden, FROM_HIDDEN, HIDDEN)
        shape = (again.shape[0], 4 * cells)
        gates = _sum(call, gates, b("RESHAPE", again, b.shape(shape)))
        opened = _curve(call, "LOGISTIC", _columns(call, gates, 0, 3 * cells), 3, 0)
        new = _curve(call, "TANH", _columns(call, gates, 3 * cells, cells), 3, 0)
        taken, remembered, shown = (
            _columns(call, opened, place * cells, cells) for place in range(3)
        )
        before = b("RESHAPE", self.cell, b.shape((shape[0], cells)))
        scale = call.quantization(call.input(CELL)).scale
        old = _product(call, remembered, before, CURVE_SCALE, DType.INT16)
        new = _product(call, taken, new, CURVE_SCALE * CURVE_SCALE / scale, DType.INT16)
        cell = _clipped(call, _sum(call, old, new), scale)
        output = call.quantization(call.input(HIDDEN))
        ratio = CURVE_SCALE * CURVE_SCALE / output.scale
        seen = _curve(call, "TANH", cell, *_cell_scale(call, scale))
        hidden = _product(call, seen, shown, ratio, self.hidden.dtype, output)
        return _State(call, cells, hidden, cell)


def _sum(call: Call, first: Value, second: Value) -> Value:
    """Add 16 bits, saturated."""
    b = call.b
    total = b("ADD", centered(b, first), centered(b, second))
    return rescale(b, total, IDENTITY, DType.INT16, bound=1 << 17)


def _product(
    call: Call,
    first: Value,
    second: Value,
    ratio: float,
    dtype: DType,
    quantization: Quantization | None = None,
) -> Value:
    """Multiply 16 bits, scaled."""
    b = call.b
    return rescale(
        b,
        b("MUL", centered(b, first), centered(b, second), no_shift(b)),
        scale_of(ratio),
        dtype,
        bound=(1 << 30) + 1,
        zero_points=(0, 0 if quantization is None else quantization.zero_point),
        quantization=quantization,
    )


def _columns(call: Call, value: Value, start: int, count: int) -> Value:
    b = call.b
    return b("SLICE", value, b.shape((0, start)), b.shape((value.shape[0], count)))


def _curve(call: Call, name: str, value: Value, multiplier: int, shift: int) -> Value:
    return call.part(name, value, {"multiplier": multiplier, "shift": shift})


def _cell_scale(call: Call, scale: float) -> tuple[int, int]:
    """Return by what the kernel scales cells for tanh, a multiplier and a right shift."""
    power = nearest_power(scale)
    call.need(power is not None, "the scale of its cells is no power of two")
    assert power is not None
    left = UNIT_BITS + power
    return (3 << left, 0) if left >= 0 else (3, -left)


def _clipped(call: Call, cell: Value, scale: float) -> Value:
    clip = float(np.float32(call.option("cell_clip", 0.0)))
    if clip <= 0:
        return cell
    most = int(min(clip / scale, 32767.0))
    return call.b("CLAMP", cell, min_val=-most, max_val=most)
