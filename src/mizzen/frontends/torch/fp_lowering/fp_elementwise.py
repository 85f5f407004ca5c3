"""Functions of each number, and of two: activations, arithmetic, comparisons, choices.

Ref: TOSA 1.0, 2.4 activation functions, 2.5 elementwise binary, 2.6 elementwise unary, 2.7
elementwise ternary, 2.8 comparison operators.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi, sqrt
from typing import Any

from mizzen.frontends.arrangement.choice import compared
from mizzen.frontends.arrangement.movement import same_rank, sliced
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_lower import FpCall
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


def shift(call: FpCall) -> Value:
    """Shift whole numbers to the left, or to the right, which rounds down."""

    def build(x: Value, by: Value) -> Value:
        x, by = same_rank(call.b, x, by)
        if call.operator == "bitwise_left_shift":
            return call.b("LOGICAL_LEFT_SHIFT", x, by)
        return call.b("ARITHMETIC_RIGHT_SHIFT", x, by, round=False)

    return call.alike([call["self"], call["other"]], build)


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
    gate = sigmoid(b, sliced(b, x, axis, size, size))
    return a.mul(b, sliced(b, x, axis, 0, size), gate)


def _below(call: FpCall, other: Value) -> Value:
    """x above 0, something else below."""
    b, x = call.b, call.value("self")
    return a.select(b, b("GREATER", *a.matched(b, x, 0.0)), x, other, x.dtype)


def _operands(call: FpCall, dtype: DType | None = None) -> tuple[a.Operand, a.Operand]:
    """Return both operands in the type in which PyTorch computes."""
    kind = dtype or call.dtype
    x, y = call.operand("self"), call.operand("other")
    x, y = (a.cast(call.b, item, kind) if isinstance(item, Value) else item for item in (x, y))
    if not (isinstance(x, Value) or isinstance(y, Value)):
        x = a.number(call.b, x, kind, len(call.shape))
    return x, y


def add(call: FpCall) -> Value:
    """x + alpha y."""
    x, y = _operands(call)
    return a.add(call.b, x, _scaled(call, y))


def sub(call: FpCall) -> Value:
    """x - alpha y."""
    x, y = _operands(call)
    return a.sub(call.b, x, _scaled(call, y))


def rsub(call: FpCall) -> Value:
    """y - alpha x."""
    x, y = _operands(call)
    return a.sub(call.b, y, _scaled(call, x))


def _scaled(call: FpCall, operand: a.Operand) -> a.Operand:
    alpha = call.arguments.get("alpha", 1)
    if alpha == 1:
        return operand
    return a.mul(call.b, operand, alpha) if isinstance(operand, Value) else operand * alpha


def mul(call: FpCall) -> Value:
    """x * y; for truths, both."""
    x, y = _operands(call)
    if call.dtype is DType.BOOL:
        return call.b("LOGICAL_AND", *a.matched(call.b, x, y))
    return a.mul(call.b, x, y)


def div(call: FpCall) -> Value:
    """x / y, perhaps rounded down or towards 0."""
    b, mode = call.b, call.arguments.get("rounding_mode")
    call.need(call.dtype.is_float, "it divides integers", "divide floating-point numbers")
    value = a.div(b, *_operands(call))
    if mode == "floor":
        return b("FLOOR", value)
    return a.truncated(b, value) if mode == "trunc" else value


def maximum(call: FpCall) -> Value:
    """The greater of two."""
    return a.maximum(call.b, *_operands(call))


def minimum(call: FpCall) -> Value:
    """The lesser of two."""
    return a.minimum(call.b, *_operands(call))


LARGEST_EXPONENT = 64
"""Of a whole number, up to which a power is a product."""


def pow_(call: FpCall) -> Value:
    """x to the y-th: a product where y is a whole number, for x may be negative."""
    b, exponent = call.b, call.arguments["exponent"]
    base = call.arguments["self"]
    if not hasattr(base, "meta"):
        return b("POW", *a.matched(b, float(base), a.cast(b, call.value("exponent"), call.dtype)))
    x = a.cast(b, call.value("self"), call.dtype)
    if hasattr(exponent, "meta"):
        return b("POW", *a.matched(b, x, a.cast(b, call.value("exponent"), call.dtype)))
    return _power(call, x, float(exponent))


def _power(call: FpCall, x: Value, exponent: float) -> Value:
    """x to a constant."""
    b = call.b
    if exponent in ROOTS:
        return ROOTS[exponent](b, x)
    if exponent == int(exponent) and 0 < abs(exponent) <= LARGEST_EXPONENT:
        value = _product(b, x, int(abs(exponent)))
        return value if exponent > 0 else b("RECIPROCAL", value)
    call.need(x.dtype.is_float, "it is of integers")
    return b("POW", *a.matched(b, x, exponent))


ROOTS: dict[float, Callable[[Builder, Value], Value]] = {
    0.5: a.sqrt,
    -0.5: lambda b, x: b("RSQRT", x),
}


def _product(b: Builder, x: Value, count: int) -> Value:
    """Multiply x with itself: squares of squares."""
    result: Value | None = None
    while True:
        if count & 1:
            result = x if result is None else a.mul(b, result, x)
        count >>= 1
        if not count:
            assert result is not None
            return result
        x = a.square(b, x)


def compare(call: FpCall) -> Value:
    """Return whether two numbers are in an order."""
    kind = _common(call)
    x, y = _operands(call, kind if kind.is_float else DType.INT32)
    return compared(call.b, call.operator, *a.matched(call.b, x, y))


def _common(call: FpCall) -> DType:
    """Return the type in which PyTorch compares."""
    import torch

    torch_: Any = torch
    metas = [_meta(call.arguments[name]) for name in ("self", "other")]
    example = torch_.empty(0, dtype=torch_.result_type(*metas), device="meta")
    return call.context.dtype(example)


def _meta(argument: Any) -> Any:
    return argument.meta["val"] if hasattr(argument, "meta") else argument


INFINITE = float("inf")


def isinf(call: FpCall) -> Value:
    """Whether it is infinite, of one sign or either."""
    b, x = call.b, call.value("self")
    if call.operator == "isinf":
        x = b("ABS", x)
    return b("EQUAL", *a.matched(b, x, -INFINITE if call.operator == "isneginf" else INFINITE))


def nan_to_num(call: FpCall) -> Value:
    """What is not a number becomes 0, what is infinite the greatest number, or others given."""
    b, x = call.b, call.value("self")
    greatest = LARGEST[x.dtype]
    low = -greatest if call["neginf"] is None else float(call["neginf"])
    high = greatest if call["posinf"] is None else float(call["posinf"])
    value = a.select(b, _equals(b, x, INFINITE), high, x, x.dtype)
    value = a.select(b, _equals(b, x, -INFINITE), low, value, x.dtype)
    return a.select(b, b("EQUAL", x, x), value, float(call["nan"] or 0.0), x.dtype)


def _equals(b: Builder, x: Value, number: float) -> Value:
    return b("EQUAL", *a.matched(b, x, number))


LARGEST = {
    DType.FP32: (2.0 - 2.0**-23) * 2.0**127,
    DType.FP16: 65504.0,
    DType.BF16: (2.0 - 2.0**-7) * 2.0**127,
}
"""The greatest finite number of a type."""


def isnan(call: FpCall) -> Value:
    """Whether it is not a number: it does not equal itself."""
    x = call.value("self")
    return call.b("LOGICAL_NOT", call.b("EQUAL", x, x))
