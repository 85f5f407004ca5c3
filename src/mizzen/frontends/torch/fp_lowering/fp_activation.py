"""Functions of each number.

Ref: TOSA 1.0, 2.4 activation functions, 2.6 elementwise unary operators.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi, sqrt

from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_context import FpCall
from mizzen.frontends.torch.shapes import slice_
from mizzen.graph import DType, Value
from mizzen.ops import Builder

Function = Callable[[Builder, Value], Value]


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return b("SIGMOID", x)


def tanh(b: Builder, x: Value) -> Value:
    """The hyperbolic tangent."""
    return b("TANH", x)


def hardsigmoid(b: Builder, x: Value) -> Value:
    """A line from 0 at -3 to 1 at 3."""
    return a.mul(b, a.clamp(b, a.add(b, x, 3.0), 0.0, 6.0), 1.0 / 6.0)


def _softplus(b: Builder, x: Value) -> Value:
    """log(1 + exp(x)), in a form that no x is too large for."""
    tail = b("LOG", a.add(b, b("EXP", a.neg(b, b("ABS", x))), 1.0))
    return a.add(b, a.maximum(b, x, 0.0), tail)


def _half_erf(b: Builder, x: Value) -> Value:
    """(1 + erf(x / sqrt 2)) / 2: the normal distribution."""
    return a.mul(b, a.add(b, b("ERF", a.mul(b, x, sqrt(0.5))), 1.0), 0.5)


def _tan(b: Builder, x: Value) -> Value:
    return a.div(b, b("SIN", x), b("COS", x))


def _sign(b: Builder, x: Value) -> Value:
    above = b("GREATER", *a.matched(b, x, 0.0))
    below = b("GREATER", *a.matched(b, 0.0, x))
    return a.select(b, above, 1.0, a.select(b, below, -1.0, 0.0, x.dtype), x.dtype)


def _sinh(b: Builder, x: Value) -> Value:
    return a.mul(b, a.sub(b, b("EXP", x), b("EXP", a.neg(b, x))), 0.5)


def _cosh(b: Builder, x: Value) -> Value:
    return a.mul(b, a.add(b, b("EXP", x), b("EXP", a.neg(b, x))), 0.5)


FUNCTIONS: dict[str, Function] = {
    "sigmoid": sigmoid,
    "tanh": tanh,
    "silu": lambda b, x: a.mul(b, x, sigmoid(b, x)),
    "hardsigmoid": hardsigmoid,
    "hardswish": lambda b, x: a.mul(b, x, hardsigmoid(b, x)),
    "mish": lambda b, x: a.mul(b, x, tanh(b, _softplus(b, x))),
    "log_sigmoid": lambda b, x: a.neg(b, _softplus(b, a.neg(b, x))),
    "exp": lambda b, x: b("EXP", x),
    "exp2": lambda b, x: b("EXP", a.mul(b, x, log(2.0))),
    "expm1": lambda b, x: a.sub(b, b("EXP", x), 1.0),
    "log": lambda b, x: b("LOG", x),
    "log2": lambda b, x: a.mul(b, b("LOG", x), 1.0 / log(2.0)),
    "log10": lambda b, x: a.mul(b, b("LOG", x), 1.0 / log(10.0)),
    "log1p": lambda b, x: b("LOG", a.add(b, x, 1.0)),
    "sqrt": a.sqrt,
    "rsqrt": lambda b, x: b("RSQRT", x),
    "reciprocal": lambda b, x: b("RECIPROCAL", x),
    "square": a.square,
    "erf": lambda b, x: b("ERF", x),
    "erfc": lambda b, x: a.sub(b, 1.0, b("ERF", x)),
    "sin": lambda b, x: b("SIN", x),
    "cos": lambda b, x: b("COS", x),
    "tan": _tan,
    "sinh": _sinh,
    "cosh": _cosh,
}
"""ATen's name to the function, for those with nothing to choose."""


def unary(call: FpCall) -> Value:
    """Return a function of each number that has nothing to choose."""
    return FUNCTIONS[call.operator](call.b, call.itself())


WHOLE: dict[str, Function] = {
    "floor": lambda b, x: b("FLOOR", x),
    "ceil": lambda b, x: b("CEIL", x),
    "trunc": a.truncated,
    "sign": _sign,
    "abs": lambda b, x: b("ABS", x),
    "neg": a.neg,
}
"""Functions that integers have too."""


def whole(call: FpCall) -> Value:
    """Signs and whole numbers."""
    name, x = call.operator, call.value("self")
    if not x.dtype.is_float and name in ("floor", "ceil", "trunc"):
        return x
    call.need(x.dtype.is_float or name != "sign", "it is of integers")
    return WHOLE[name](call.b, x)


LARGEST_FRACTION = float(1 << 23)
"""From here on all numbers of float32 are whole."""


def round_(call: FpCall) -> Value:
    """The nearest whole number, ties to even: TOSA's CAST rounds so. Ref: TOSA 1.0, 2.13.1."""
    b, x = call.b, call.value("self")
    if not x.dtype.is_float:
        return x
    inner = a.clamp(b, x, -LARGEST_FRACTION, LARGEST_FRACTION)
    near = b("CAST", b("CAST", inner, dtype=DType.INT32), dtype=x.dtype)
    small = b("GREATER", *a.matched(b, LARGEST_FRACTION, b("ABS", x)))
    return a.select(b, small, near, x, x.dtype)


def gelu(call: FpCall) -> Value:
    """x times the normal distribution, or its approximation by tanh."""
    b, x = call.b, call.value("self")
    if call["approximate"] != "tanh":
        return a.mul(b, x, _half_erf(b, x))
    cube = a.mul(b, a.square(b, x), x)
    inner = a.mul(b, a.add(b, x, a.mul(b, cube, 0.044715)), sqrt(2.0 / pi))
    return a.mul(b, a.mul(b, x, 0.5), a.add(b, tanh(b, inner), 1.0))


def clamp(call: FpCall) -> Value:
    """Bring within bounds that are numbers."""
    match call.operator:
        case "relu":
            low, high = 0.0, None
        case "relu6":
            low, high = 0.0, 6.0
        case "hardtanh":
            low, high = call["min_val"], call["max_val"]
        case _:
            low, high = call.arguments.get("min"), call.arguments.get("max")
    return a.clamp(call.b, call.itself(), low, high)


def clamp_tensor(call: FpCall) -> Value:
    """Bring within bounds that are tensors."""
    b = call.b
    x = call.itself()
    if call.given("min"):
        x = a.maximum(b, x, a.cast(b, call.value("min"), x.dtype))
    if call.given("max"):
        x = a.minimum(b, x, a.cast(b, call.value("max"), x.dtype))
    return x


def leaky_relu(call: FpCall) -> Value:
    """x, or a part of it below 0."""
    return _below(call, a.mul(call.b, call.value("self"), float(call["negative_slope"])))


def prelu(call: FpCall) -> Value:
    """x, or a learnt part of it below 0."""
    b, x, weight = call.b, call.value("self"), call.value("weight")
    if weight.type.rank == 1:
        shape = [1] * x.type.rank
        shape[min(1, x.type.rank - 1)] = weight.shape[0]
        weight = b("RESHAPE", weight, b.shape(shape))
    return _below(call, a.mul(b, x, weight))


def elu(call: FpCall) -> Value:
    """x, or an exponential below 0."""
    b, x = call.b, call.value("self")
    alpha, scale, inner = _elu_numbers(call)
    grown = a.sub(b, b("EXP", a.mul(b, a.minimum(b, x, 0.0), inner)), 1.0)
    value = _below(call, a.mul(b, grown, alpha))
    return value if scale == 1.0 else a.mul(b, value, scale)


def celu(call: FpCall) -> Value:
    """x, or an exponential below 0 that meets it smoothly."""
    return elu(call)


def selu(call: FpCall) -> Value:
    """x, or an exponential below 0, both scaled."""
    return elu(call)


def _elu_numbers(call: FpCall) -> tuple[float, float, float]:
    """Return alpha, scale and input scale: ``scale * (x, or alpha * (exp(x * inner) - 1))``."""
    if call.operator == "selu":
        return 1.6732632423543772, 1.0507009873554805, 1.0
    alpha = float(call["alpha"])
    if call.operator == "celu":
        return alpha, 1.0, 1.0 / alpha
    return alpha, float(call["scale"]), float(call["input_scale"])


def softplus(call: FpCall) -> Value:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above a threshold."""
    b, x, beta = call.b, call.value("self"), float(call["beta"])
    inner = x if beta == 1.0 else a.mul(b, x, beta)
    value = _softplus(b, inner)
    value = value if beta == 1.0 else a.mul(b, value, 1.0 / beta)
    above = b("GREATER", *a.matched(b, inner, float(call["threshold"])))
    return a.select(b, above, x, value, x.dtype)


def threshold(call: FpCall) -> Value:
    """What is not above a threshold becomes a value."""
    b, x = call.b, call.value("self")
    above = b("GREATER", *a.matched(b, x, float(call["threshold"])))
    return a.select(b, above, x, float(call["value"]), x.dtype)


def hardshrink(call: FpCall) -> Value:
    """What is small becomes 0."""
    b, x = call.b, call.value("self")
    large = b("GREATER", *a.matched(b, b("ABS", x), float(call["lambd"])))
    return a.select(b, large, x, 0.0, x.dtype)


def softshrink(call: FpCall) -> Value:
    """What is small becomes 0, all else smaller by as much."""
    bound = float(call["lambd"])
    return a.sub(call.b, x := call.value("self"), a.clamp(call.b, x, -bound, bound))


def glu(call: FpCall) -> Value:
    """One half times the sigmoid of the other."""
    b, x, axis = call.b, call.value("self"), call.axis()
    size = x.shape[axis] // 2
    gate = sigmoid(b, slice_(b, x, axis, size, size))
    return a.mul(b, slice_(b, x, axis, 0, size), gate)


def _below(call: FpCall, other: Value) -> Value:
    """x above 0, something else below."""
    b, x = call.b, call.value("self")
    return a.select(b, b("GREATER", *a.matched(b, x, 0.0)), x, other, x.dtype)
