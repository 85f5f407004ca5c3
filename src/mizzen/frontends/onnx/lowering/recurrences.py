"""Recurrent layers, unrolled: LSTM, GRU and RNN with quantised inputs and constant weights.

The model says how a layer's inputs and outputs are rounded, and perhaps its weights, and nothing
about what is inside, which ONNX has in floating point. Inside, everything has 16 bits, and no
number leaves them: gates are bounded by the weights, states by what gates can give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.frontends.arrangement.movement import concat, permuted, reshape, sliced
from mizzen.frontends.arrangement.windows import linear
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.matrices import FineRecurrence, Matrix, Part, matrix_of
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.elementwise import combine
from mizzen.frontends.quantized.layers import BIAS_MAXIMUM, IntLayer
from mizzen.frontends.quantized.recurrence import (
    Recurrence,
    gru,
    gru_reset_first,
    lstm,
    rnn,
    sigmoid,
)
from mizzen.frontends.quantized.scales import as_target
from mizzen.frontends.quantized.terms import Constant, Pending, Real, Target, Term
from mizzen.graph import DType, Quantization, Value, integer_range

ONE = 2.0**-15
"""The step of numbers that are below 1."""

SATURATED = 12.0
"""Where gates are open or closed: closer to 1 and 0 than a step of 16 bits."""

ROOM = 1.02
"""What sums get beside what they need, for what is rounded before."""

STEPS_MAXIMUM = 256
"""More steps are no network for an NPU: each is some ten operations."""

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Ways to whether each direction begins at the last step."""

STATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Types of layers to how many gates a cell has."""

ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""Gates as ONNX has them, in the order that they are computed in."""

ACTIVATIONS = {
    "LSTM": ("sigmoid", "tanh", "tanh"),
    "GRU": ("sigmoid", "tanh"),
    "RNN": ("tanh",),
}


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """The constants of a layer in one direction.

    inputs, states  what multiplies each step's input, and the state before it
    bias, inner     what is added to the products of either
    """

    place: int
    is_reversed: bool
    inputs: Matrix
    states: Matrix
    bias: Array
    inner: Array


def recurrent(call: OnnxCall) -> tuple[Term, ...]:
    """Unroll a layer: the sequence of hidden states, the last ones, and an LSTM's last cells."""
    way = call.text("direction", "forward")
    call.need(way in DIRECTIONS, f'its direction is "{way}"')
    _need_shapes(call, len(DIRECTIONS[way]))
    _need_plain(call)
    directions = [_read(call, *each) for each in enumerate(DIRECTIONS[way])]
    grids = _grids(call, directions)
    parts = [_direction(call, each, grids) for each in directions]
    sequences, lasts, cells = zip(*parts, strict=True)
    b = call.b
    steps, batch = _extent(call)
    whole = [reshape(b, value, (steps, 1, batch, call.shape_of(2)[2])) for value in sequences]
    results = [concat(b, whole, 1), concat(b, lasts, 0), concat(b, cells, 0)]
    if _is_batch_first(call):
        orders = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
        results = [permuted(b, *each) for each in zip(results, orders, strict=True)]
    pairs = zip(results, call.shapes, strict=False)
    # A gate's function changes by a quarter as much as its sum, times the cell that it keeps.
    step, kept = grids["gates"].scale, grids["cell"].scale / ONE / 4
    errors = (step, step, step * max(1.0, kept))
    return tuple(
        _result(call, Real(each), shape, error)
        for (each, shape), error in zip(pairs, errors, strict=False)
    )


def _result(call: OnnxCall, x: Real, shape: tuple[int, ...], error: float) -> Pending:
    """Let states become integers of 8 bits: inside they have 16, too few for exactly as many.

    error  of a result, by a step of the sums that gates are functions of
    """

    def emit(target: Target) -> Value:
        call.need(
            target.dtype is DType.INT8,
            "its results have 16 bits, as many as its states have inside",
            "quantise its results to 8 bits",
        )
        call.need(
            error <= target.scale,
            "what its gates add goes too far to be told apart in 16 bits",
            "calibrate its first states with what they are in use, at most 1",
        )
        return as_target(call.b, x, target)

    return Pending(emit, shape)


def _is_batch_first(call: OnnxCall) -> bool:
    return bool(call.whole("layout", 0))


def _extent(call: OnnxCall) -> tuple[int, int]:
    """Return how many steps and sequences there are."""
    first, second, _ = call.shape_of(0)
    return (second, first) if _is_batch_first(call) else (first, second)


def _need_shapes(call: OnnxCall, directions: int) -> None:
    """Refuse constants and states of other shapes than a layer's."""
    call.need(all(len(call.shape_of(index)) == 3 for index in (0, 1, 2)), "it has no matrices")
    hidden, gates = call.shape_of(2)[2], STATES[call.kind]
    batch = _extent(call)[1]
    state = (batch, directions, hidden) if _is_batch_first(call) else (directions, batch, hidden)
    wanted = {
        1: (directions, gates * hidden, call.shape_of(0)[2]),
        2: (directions, gates * hidden, hidden),
        3: (directions, 2 * gates * hidden),
        5: state,
        **({6: state} if call.kind == "LSTM" else {}),
    }
    for index, shape in wanted.items():
        came = call.shape_of(index) if call.given(index) else shape
        call.need(
            came == shape and 0 not in shape,
            f"its input {index} is of shape {list(came)}, and must be of {list(shape)}",
        )


def _need_plain(call: OnnxCall) -> None:
    """Refuse what makes a layer another one than the common."""
    directions = call.shape_of(1)[0]
    names = [name.decode() if isinstance(name, bytes) else str(name)
             for name in call.node.attributes.get("activations", ())]  # fmt: skip
    usual = list(ACTIVATIONS[call.kind]) * directions
    lowered = [name.lower() for name in names]
    call.need(
        not names or lowered == usual,
        f"its activations are {', '.join(names)}",
        "use the usual ones",
    )
    call.need(not call.number("clip", 0.0), "it clips its gates", "export it without clip")
    call.need(not call.whole("input_forget", 0), "its input and forget gates are one")
    call.need(not call.given(7), "its gates see the cell (peepholes)")
    steps, _ = _extent(call)
    if call.given(4):
        full = bool(np.all(call.array(4) == steps))
        call.need(full, "its sequences end at different steps", "give it whole sequences")
    call.need(
        steps <= STEPS_MAXIMUM,
        f"it has {steps} steps, and {STEPS_MAXIMUM} at most are unrolled",
        "run it on shorter pieces, and carry its states over",
    )


def _read(call: OnnxCall, place: int, is_reversed: bool) -> Direction:
    """Return the constants of a direction; biases are one where nothing comes between them."""
    bias, inner = _biases(call, place)
    if call.kind != "GRU" or not call.whole("linear_before_reset", 0):
        bias, inner = bias + inner, np.zeros_like(inner)
    inputs, states = (_matrix(call, index, place) for index in (1, 2))
    return Direction(place, is_reversed, inputs, states, bias, inner)


def _direction(
    call: OnnxCall, direction: Direction, grids: dict[str, Target]
) -> tuple[Value, Value, Value]:
    """Compute one direction: the sequence, the last hidden state, the last cell."""
    layer = _layer(call, direction, grids)
    first = _first(call, 5, direction.place, grids["hidden"])
    last_cell = first
    match call.kind:
        case "LSTM":
            sequence, last_cell = lstm(
                layer, first, _first(call, 6, direction.place, grids["cell"])
            )
        case "GRU":
            after = bool(call.whole("linear_before_reset", 0))
            sequence = gru(layer, first) if after else gru_reset_first(layer, first)
        case _:
            sequence = rnn(layer, first, np.tanh)
    steps, batch, hidden = sequence.value.shape
    last = sliced(call.b, sequence.value, 0, 0 if direction.is_reversed else steps - 1, 1)
    return sequence.value, last, reshape(call.b, last_cell.value, (1, batch, hidden))


def _layer(call: OnnxCall, direction: Direction, grids: dict[str, Target]) -> Recurrence:
    """Return a direction's recurrence; its weight may have two parts."""
    first, *others = direction.states.parts
    whole = FineRecurrence(
        b=call.b,
        targets=grids,
        projection=_projected(call, direction, grids["gates"]),
        integers=first.integers,
        scales=first.scales,
        bias=direction.inner if direction.inner.any() else None,
        is_reversed=direction.is_reversed,
    )
    if not others:
        return whole
    (part,) = others
    lower = replace(whole, integers=part.integers, scales=part.scales, bias=None, weights={})
    return replace(whole, lower=lower)


def _matrix(call: OnnxCall, index: int, place: int) -> Matrix:
    """Return a weight in one direction, with gates in the order that they are computed in."""
    matrix = matrix_of(call.constant(index), place)
    parts = (
        Part(
            _ordered(call, part.integers),
            part.scales if part.scales.size == 1 else _ordered(call, part.scales),
        )
        for part in matrix.parts
    )
    return Matrix(tuple(parts), _ordered(call, matrix.reach))


def _ordered(call: OnnxCall, array: Array) -> Array:
    """Bring the gates of an array's first dimension into the order that they are computed in."""
    gates = array.reshape(STATES[call.kind], -1, *array.shape[1:])
    return gates[list(ORDERS[call.kind])].reshape(array.shape)


def _biases(call: OnnxCall, place: int) -> tuple[Array, Array]:
    """Return what is added to the inputs' products, and to the hidden state's."""
    size = STATES[call.kind] * call.shape_of(2)[2]
    if not call.given(3):
        return np.zeros(size), np.zeros(size)
    both = call.constant(3).real[place].astype(np.float64)
    return _ordered(call, both[:size]), _ordered(call, both[size:])


def _projected(call: OnnxCall, direction: Direction, target: Target) -> Real:
    """Multiply all inputs by the weight at once."""
    first, *others = direction.inputs.parts
    result = _product(call, first, direction.bias, target)
    for part in others:
        further = _product(call, part, np.zeros_like(direction.bias), target)
        result = Real(combine(call.b, "ADD", result, further, target))
    return result


def _product(call: OnnxCall, part: Part, bias: Array, target: Target) -> Real:
    x = call.real(0)
    outputs, inputs = part.integers.shape
    scales = part.scales * x.scale
    integers = np.rint(bias / scales).clip(-BIAS_MAXIMUM, BIAS_MAXIMUM).astype(np.int64)
    kernel = part.integers.reshape(outputs, 1, 1, inputs)
    given = permuted(call.b, x.value, (1, 0, 2)) if _is_batch_first(call) else x.value
    layer = IntLayer(call.b, x, kernel, integers, scales, target)
    return Real(linear(call.b, given, layer, (*given.shape[:2], outputs)))


def _grids(call: OnnxCall, directions: Sequence[Direction]) -> dict[str, Target]:
    """Return what is rounded to what inside, so that nothing leaves its range."""
    (steps, _), x = _extent(call), call.real(0)
    low, high = integer_range(x.value.dtype)
    furthest = max(high - x.zero_point, x.zero_point - low) * x.scale
    state = max(1.0, _initial(call, 5))
    most = max(_most(each, furthest, state) for each in directions)
    # A cell keeps a part of what it has, as much as its gate opens, and gets at most 1 anew.
    closed = 1 - float(sigmoid(np.array(most)))
    kept = min(float(steps), 1 / closed if closed else float(steps))
    cell = _target(ROOM * (kept + _initial(call, 6)) * ONE)
    hidden = _target(state * ONE)
    return {
        "gates": _target(ROOM * most * ONE),
        "sigmoid": _target(ONE),
        "tanh": _target(ONE),
        "cell": cell,
        "narrow": cell,
        "difference": _target(ROOM * 2 * hidden.scale),
        "hidden": hidden,
    }


def _most(direction: Direction, furthest: float, state: float) -> float:
    """Return how far from zero sums of gates are told apart; all further ones are as the last.

    An input's products may go further, as long as what is added to them leaves no gate between open
    and closed.

    furthest  an input is from zero
    state     is from zero, at most
    """
    inputs = direction.inputs.reach * furthest + np.abs(direction.bias)
    states = direction.states.reach * state + np.abs(direction.inner)
    fine = sum(
        np.abs(part.integers * part.scales.reshape(-1, 1)).sum(axis=1) * furthest
        for part in direction.inputs.parts[1:]
    )
    return float(min(np.max(inputs + states), SATURATED + np.max(states + fine)))


def _target(scale: float) -> Target:
    return Target(DType.INT16, Quantization((scale,), (0,)), *integer_range(DType.INT16))


def _initial(call: OnnxCall, index: int) -> float:
    """Return how far from zero a first state can be."""
    if not call.given(index) or (index == 6 and call.kind != "LSTM"):
        return 0.0
    term = call.term(index)
    if isinstance(term, Constant):
        return float(np.max(np.abs(term.real), initial=0.0))
    real = call.real(index)
    low, high = integer_range(real.value.dtype)
    return max(high - real.zero_point, real.zero_point - low) * real.scale


def _first(call: OnnxCall, index: int, place: int, grid: Target) -> Real:
    """Return a first state, [batch, hidden]; zeros where none is given."""
    shape, axis = (_extent(call)[1], call.shape_of(2)[2]), int(_is_batch_first(call))
    if not call.given(index):
        return Real(call.b.constant(np.zeros(shape), grid.dtype, grid.quantization))
    term = call.term(index)
    if isinstance(term, Constant):
        steps = np.rint(term.real.take(place, axis).astype(np.float64) / grid.scale)
        integers = steps.clip(*integer_range(grid.dtype)).astype(np.int64)
        return Real(call.b.constant(integers, grid.dtype, grid.quantization))
    value = sliced(call.b, call.real(index).value, axis, place, 1)
    return Real(reshape(call.b, value, shape))
