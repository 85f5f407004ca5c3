"""Functions of each number: tables, with float32 entries as ONNX Runtime computes them.

A table takes a whole chain of such functions: what a quantiser left in floating point between a
DequantizeLinear and a QuantizeLinear is one table, as long as it depends on one quantised tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf as erf_of
from math import pi, sqrt

import numpy as np

from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.context import Function
from mizzen.frontends.onnx.lowering.spans import taken_for
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.functions import function_of
from mizzen.frontends.quantized.scales import requantize
from mizzen.frontends.quantized.tables import wide_target
from mizzen.frontends.quantized.terms import Pending, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value
from mizzen.ops import Builder

Numbers = Callable[[Array], Array]
"""A function of real numbers, float32."""

BEYOND = 1e9
"""Stands for an infinite number of steps."""


def steps_of(reals: Array, target: Target) -> Array:
    """Return numbers in steps of a scale, as QuantizeLinear does: divided, in float32.

    What is never a number has no place on the NPU: it becomes zero.
    """
    with np.errstate(over="ignore"):
        steps = reals.astype(np.float32) / np.float32(target.scale)
    return np.nan_to_num(steps, nan=0.0, posinf=BEYOND, neginf=-BEYOND)


def unary(call: OnnxCall) -> Pending:
    """Return a function of each number."""
    return applied(call, 0, FUNCTIONS[call.kind](call))


def applied(call: OnnxCall, index: int, function: Numbers) -> Pending:
    """Return a function of each number of an input."""
    before = call.function(index)
    if before is None:
        before = Function(call.real(index), lambda reals: reals)
    first = before.of
    return tabled(call, Function(before.x, lambda reals: function(first(reals))))


def tabled(call: OnnxCall, function: Function) -> Pending:
    """Return a function of one tensor; what follows it may be part of it."""
    call.context.functions[call.node.outputs[0]] = function
    return Pending(lambda target: table(call.b, function, target), call.shape)


def table(b: Builder, function: Function, target: Target) -> Value:
    """Add the table of a function; 8 bits come of 16 by way of 16, of 128 steps for each."""
    with np.errstate(all="ignore"):
        x = function.x
        if isinstance(x, Pending):
            x = taken_for(x, function.of, target, lambda reals: rounded(reals, target))
        if (x.value.dtype, target.dtype) != (DType.INT16, DType.INT8):
            return function_of(b, x, function.of, target, steps_of)
        fine = wide_target(target)
        value = function_of(b, x, function.of, fine, steps_of)
        return requantize(b, value, fine.scale, target)


def rounded(reals: Array, target: Target) -> Array:
    """Return integers as QuantizeLinear makes them."""
    return np.clip(np.rint(steps_of(reals, target)) + target.zero_point, *target.bounds)


def power(call: OnnxCall) -> Pending:
    """Raise to a constant power."""
    exponent = np.float32(call.scalar(1))
    return applied(call, 0, lambda reals: np.power(reals, exponent))


def leaky_relu(call: OnnxCall) -> Pending:
    """Multiply what is below zero."""
    return applied(call, 0, sloped(call.number("alpha", 0.01)))


def sloped(slope: float) -> Numbers:
    """Return a function that multiplies what is below zero."""
    return lambda reals: np.where(reals < 0, reals * np.float32(slope), reals)


def sigmoid(reals: Array) -> Array:
    """Return 1 / (1 + e^-x)."""
    return np.float32(1) / (np.float32(1) + np.exp(-reals))


def erf(reals: Array) -> Array:
    """Return the error function, rounded to float32 once."""
    return np.array([erf_of(real) for real in reals.ravel()], np.float32).reshape(reals.shape)


def softplus(reals: Array) -> Array:
    """Return log(1 + e^x)."""
    return np.where(
        reals > 0, reals + np.log1p(np.exp(-np.abs(reals))), np.log1p(np.exp(reals))
    ).astype(np.float32)


def gelu(reals: Array) -> Array:
    """Return x times the probability that a normal number is below it."""
    half = np.float32(0.5)
    return half * reals * (np.float32(1) + erf(reals * np.float32(sqrt(0.5))))


def tanh_gelu(reals: Array) -> Array:
    """Return the approximation of `gelu` by a hyperbolic tangent."""
    inner = np.float32(sqrt(2 / pi)) * (reals + np.float32(0.044715) * reals * reals * reals)
    return np.float32(0.5) * reals * (np.float32(1) + np.tanh(inner))


def _plain(function: Numbers) -> Callable[[OnnxCall], Numbers]:
    return lambda call: function


def _hard_sigmoid(call: OnnxCall) -> Numbers:
    alpha, beta = (np.float32(call.number(*each)) for each in (("alpha", 0.2), ("beta", 0.5)))
    return lambda reals: np.clip(alpha * reals + beta, np.float32(0), np.float32(1))


def _hard_swish(reals: Array) -> Array:
    part = reals * np.float32(1 / 6) + np.float32(0.5)
    return reals * np.clip(part, np.float32(0), np.float32(1))


def _gelu(call: OnnxCall) -> Numbers:
    way = call.text("approximate", "none")
    if way not in ("none", "tanh"):
        raise RefusedError(f'its approximation is "{way}"', 'use "none" or "tanh"')
    return tanh_gelu if way == "tanh" else gelu


def _elu(call: OnnxCall) -> Numbers:
    alpha = np.float32(call.number("alpha", 1.0))
    return lambda reals: np.where(reals < 0, alpha * np.expm1(reals), reals)


def _celu(call: OnnxCall) -> Numbers:
    alpha = np.float32(call.number("alpha", 1.0))
    return lambda reals: np.where(reals < 0, alpha * np.expm1(reals / alpha), reals)


def _selu(call: OnnxCall) -> Numbers:
    alpha = np.float32(call.number("alpha", 1.67326319217681884765625))
    gamma = np.float32(call.number("gamma", 1.05070102214813232421875))
    return lambda reals: gamma * np.where(reals <= 0, alpha * np.expm1(reals), reals)


def _swish(call: OnnxCall) -> Numbers:
    alpha = np.float32(call.number("alpha", 1.702 if call.kind == "QuickGelu" else 1.0))
    return lambda reals: reals * sigmoid(alpha * reals)


def _thresholded(call: OnnxCall) -> Numbers:
    alpha = np.float32(call.number("alpha", 1.0))
    return lambda reals: np.where(reals > alpha, reals, np.float32(0))


def _shrink(call: OnnxCall) -> Numbers:
    bias, limit = (np.float32(call.number(*each)) for each in (("bias", 0.0), ("lambd", 0.5)))

    def function(reals: Array) -> Array:
        inner = np.where(reals > limit, reals - bias, np.float32(0))
        return np.where(reals < -limit, reals + bias, inner)

    return function


FUNCTIONS: dict[str, Callable[[OnnxCall], Numbers]] = {
    "Abs": _plain(np.abs),
    "Acos": _plain(np.arccos),
    "Acosh": _plain(np.arccosh),
    "Asin": _plain(np.arcsin),
    "Asinh": _plain(np.arcsinh),
    "Atan": _plain(np.arctan),
    "Atanh": _plain(np.arctanh),
    "Ceil": _plain(np.ceil),
    "Celu": _celu,
    "Cos": _plain(np.cos),
    "Cosh": _plain(np.cosh),
    "Elu": _elu,
    "Erf": _plain(erf),
    "Exp": _plain(np.exp),
    "Floor": _plain(np.floor),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _plain(_hard_swish),
    "Log": _plain(np.log),
    "Mish": _plain(lambda reals: reals * np.tanh(softplus(reals))),
    "Neg": _plain(np.negative),
    "QuickGelu": _swish,
    "Reciprocal": _plain(lambda reals: np.float32(1) / reals),
    "Round": _plain(np.rint),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _plain(sigmoid),
    "Sign": _plain(np.sign),
    "Sin": _plain(np.sin),
    "Sinh": _plain(np.sinh),
    "Softplus": _plain(softplus),
    "Softsign": _plain(lambda reals: reals / (np.float32(1) + np.abs(reals))),
    "Sqrt": _plain(np.sqrt),
    "Swish": _swish,
    "Tan": _plain(np.tan),
    "Tanh": _plain(np.tanh),
    "ThresholdedRelu": _thresholded,
}
"""Types of operators to the function that a node is, float32."""
