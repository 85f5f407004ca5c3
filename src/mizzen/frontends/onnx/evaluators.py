"""How operators with constant inputs are computed: one row each, in NumPy.

Ref: ONNX, Operators; the names of attributes and the order of inputs are those of version 21.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mizzen.frontends.onnx.arithmetic import dequantized, quantized
from mizzen.frontends.onnx.model import Array, Node, TensorType

Inputs = Sequence[Array | None]
Types = Sequence[TensorType | None]
Function = Callable[[Node, Inputs, Types], Sequence[Array]]

MOST_STEPS = 1 << 28
"""Multiplications and the like of one node."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """How an operator is computed.

    is_open  whether its results' extents depend on values, but never exceed its inputs'
    """

    function: Function
    is_open: bool = False


def steps_of(node: Node, inputs: Inputs, types: Types) -> int:
    """Estimate how long an operator takes."""
    elements = sum(prod(type.shape) for type in types if type is not None)
    if node.kind in ("MatMul", "Gemm") and inputs[0] is not None:
        return elements * max(1, *inputs[0].shape)
    return elements + sum(value.size for value in inputs if value is not None)


def _plain(function: Callable[..., Any]) -> Evaluator:
    """Make a row of a function of arrays."""
    return Evaluator(lambda node, inputs, types: [function(*_given(inputs))])


def _folded(function: Callable[[Any, Any], Any]) -> Evaluator:
    """Make a row of an operator of any number of inputs from one of two."""

    def evaluate(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
        first, *others = _given(inputs)
        for other in others:
            first = function(first, other)
        return [first]

    return Evaluator(evaluate)


def _given(inputs: Inputs) -> list[Array]:
    return [value for value in inputs if value is not None]


def _at(inputs: Inputs, place: int) -> Array | None:
    return inputs[place] if place < len(inputs) else None


def _needed(inputs: Inputs, place: int) -> Array:
    value = _at(inputs, place)
    if value is None:
        raise ValueError(f"input {place} is left out")
    return value


def _type(types: Types, place: int = 0) -> TensorType:
    type = types[place]
    if type is None:
        raise ValueError("the result's type is open")
    return type


def _axis(node: Node, rank: int, default: int = 0) -> int:
    axis = node.attributes.get("axis", default)
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} of {rank} dimensions")
    return axis % max(rank, 1)


def _divide(x: Array, y: Array) -> Array:
    """Divide; integers towards zero."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    floor = np.floor_divide(x, y)
    exact = (floor * y) == x
    is_lower = ((x < 0) != (y < 0)) & ~exact & (y != 0)
    return floor + is_lower.astype(x.dtype)


def _mod(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    x, y = _needed(inputs, 0), _needed(inputs, 1)
    return [np.fmod(x, y) if node.attributes.get("fmod", 0) else np.mod(x, y)]


def _pow(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    x, y = _needed(inputs, 0), _needed(inputs, 1)
    if x.dtype.kind in "iu" and y.dtype.kind in "iu" and np.any(y < 0):
        raise ValueError("an integer to a negative power")
    return [np.power(x, y).astype(x.dtype)]


def _cast(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    x, dtype = _needed(inputs, 0), _type(types).dtype
    if dtype == np.bool_:
        return [x != 0]
    return [x.astype(dtype)]


def _constant_of_shape(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    value = node.attributes.get("value", np.zeros(1, np.float32))
    if value.size != 1:
        raise ValueError("the value has not one element")
    return [np.full(_type(types).shape, value.reshape(()), value.dtype)]


def _range(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    start, end, delta = (_needed(inputs, place).reshape(()) for place in range(3))
    (count,) = _type(types).shape
    if start.dtype.kind in "iu" and len(range(int(start), int(end), int(delta))) != count:
        raise ValueError(f"{start} to {end} by {delta}")
    return [(start + np.arange(count, dtype=start.dtype) * delta).astype(start.dtype)]


def _concat(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    values = _given(inputs)
    return [np.concatenate(values, _axis(node, values[0].ndim))]


def _gather(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    data, places = _needed(inputs, 0), _needed(inputs, 1)
    axis = _axis(node, data.ndim)
    return [np.take(data, places, axis)]


def _slice(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    data = _needed(inputs, 0)
    starts, ends = _needed(inputs, 1).tolist(), _needed(inputs, 2).tolist()
    axes, steps = _at(inputs, 3), _at(inputs, 4)
    chosen = list(range(len(starts))) if axes is None else axes.tolist()
    strides = [1] * len(starts) if steps is None else steps.tolist()
    places = [slice(None)] * data.ndim
    for axis, start, end, step in zip(chosen, starts, ends, strides, strict=True):
        places[axis] = _span(start, end, step, data.shape[axis])
    return [data[tuple(places)]]


def _span(start: int, end: int, step: int, size: int) -> slice:
    """Take ONNX's bounds, which are clamped to the extent, as Python's."""
    if step == 0:
        raise ValueError("a step of 0")
    start, end = (at + size if at < 0 else at for at in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


def _reshaped(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    return [_needed(inputs, 0).reshape(_type(types).shape)]


def _transpose(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    data = _needed(inputs, 0)
    order = node.attributes.get("perm") or tuple(reversed(range(data.ndim)))
    return [np.transpose(data, order)]


def _expand(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    return [np.broadcast_to(_needed(inputs, 0), _type(types).shape)]


def _tile(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    return [np.tile(_needed(inputs, 0), _needed(inputs, 1).tolist())]


def _split(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    data, sizes = _needed(inputs, 0), _needed(inputs, 1)
    axis = _axis(node, data.ndim)
    return np.split(data, np.cumsum(sizes)[:-1].tolist(), axis)


def _reduced(function: Callable[..., Any]) -> Evaluator:
    def evaluate(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
        data, axes = _needed(inputs, 0), _at(inputs, 1)
        keep = bool(node.attributes.get("keepdims", 1))
        if axes is None or axes.size == 0:
            if node.attributes.get("noop_with_empty_axes", 0):
                return [data]
            return [np.asarray(function(data, axis=None, keepdims=keep))]
        return [np.asarray(function(data, axis=tuple(axes.tolist()), keepdims=keep))]

    return Evaluator(evaluate)


def _clip(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    result, low, high = _needed(inputs, 0), _at(inputs, 1), _at(inputs, 2)
    if low is not None:
        result = np.maximum(result, low)
    return [result if high is None else np.minimum(result, high)]


def _gemm(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    a, b, c = _needed(inputs, 0), _needed(inputs, 1), _at(inputs, 2)
    get = node.attributes.get
    a, b = (a.T if get("transA", 0) else a), (b.T if get("transB", 0) else b)
    result = a.dtype.type(get("alpha", 1.0)) * (a @ b)
    return [result if c is None else result + a.dtype.type(get("beta", 1.0)) * c]


def _pad(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    data, pads, value = _needed(inputs, 0), _needed(inputs, 1).tolist(), _at(inputs, 2)
    mode = node.attributes.get("mode", "constant")
    if mode != "constant" or any(pad < 0 for pad in pads):
        raise ValueError("pads of constants are of one value, and none is negative")
    width = list(zip(pads[: data.ndim], pads[data.ndim :], strict=True))
    filled = 0 if value is None else value.reshape(-1)[0]
    return [np.pad(data, width, constant_values=filled)]


def _quantize(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    x, scale, zero = _needed(inputs, 0), _needed(inputs, 1), _at(inputs, 2)
    dtype = _type(types).dtype
    limits = np.iinfo(dtype).min, np.iinfo(dtype).max
    return [quantized(x, scale, zero, dtype, limits, node.attributes.get("axis", 1))]


def _dequantize(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    x, scale, zero = _needed(inputs, 0), _needed(inputs, 1), _at(inputs, 2)
    return [dequantized(x, scale, zero, node.attributes.get("axis", 1))]


def _cum_sum(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    if node.attributes.get("exclusive", 0) or node.attributes.get("reverse", 0):
        raise ValueError("a sum that leaves its own element out, or runs backwards")
    return [np.cumsum(_needed(inputs, 0), int(_needed(inputs, 1).reshape(())))]


def _sigmoid(x: Array) -> Array:
    return (1 / (1 + np.exp(-x))).astype(x.dtype)


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def _non_zero(node: Node, inputs: Inputs, types: Types) -> Sequence[Array]:
    places = np.nonzero(np.atleast_1d(_needed(inputs, 0)))
    return [np.array(places, np.int64).reshape(len(places), -1)]


EVALUATORS: Mapping[str, Evaluator] = {
    "Abs": _plain(np.abs), "Neg": _plain(np.negative), "Sign": _plain(np.sign),
    "Sqrt": _plain(np.sqrt), "Exp": _plain(np.exp), "Log": _plain(np.log),
    "Floor": _plain(np.floor), "Ceil": _plain(np.ceil), "Round": _plain(np.rint),
    "Reciprocal": _plain(np.reciprocal), "Tanh": _plain(np.tanh), "Sigmoid": _plain(_sigmoid),
    "Relu": _plain(_relu),
    "Add": _plain(np.add), "Sub": _plain(np.subtract), "Mul": _plain(np.multiply),
    "Div": _plain(_divide), "Mod": Evaluator(_mod), "Pow": Evaluator(_pow),
    "Max": _folded(np.maximum), "Min": _folded(np.minimum), "Sum": _folded(np.add),
    "Equal": _plain(np.equal), "Less": _plain(np.less), "Greater": _plain(np.greater),
    "LessOrEqual": _plain(np.less_equal), "GreaterOrEqual": _plain(np.greater_equal),
    "And": _plain(np.logical_and), "Or": _plain(np.logical_or), "Xor": _plain(np.logical_xor),
    "Not": _plain(np.logical_not), "Where": _plain(np.where),
    "MatMul": _plain(np.matmul), "Gemm": Evaluator(_gemm), "Cast": Evaluator(_cast),
    "ConstantOfShape": Evaluator(_constant_of_shape), "Range": Evaluator(_range),
    "Concat": Evaluator(_concat), "Gather": Evaluator(_gather), "Slice": Evaluator(_slice),
    "Reshape": Evaluator(_reshaped), "Flatten": Evaluator(_reshaped),
    "Squeeze": Evaluator(_reshaped), "Unsqueeze": Evaluator(_reshaped),
    "Transpose": Evaluator(_transpose), "Expand": Evaluator(_expand), "Tile": Evaluator(_tile),
    "Split": Evaluator(_split), "Pad": Evaluator(_pad), "Clip": Evaluator(_clip),
    "ReduceSum": _reduced(np.sum), "ReduceProd": _reduced(np.prod),
    "ReduceMax": _reduced(np.max), "ReduceMin": _reduced(np.min),
    "ReduceMean": _reduced(np.mean), "CumSum": Evaluator(_cum_sum),
    "NonZero": Evaluator(_non_zero, is_open=True),
    "QuantizeLinear": Evaluator(_quantize), "DequantizeLinear": Evaluator(_dequantize),
}  # fmt: skip
"""Operators that are computed when reading."""
