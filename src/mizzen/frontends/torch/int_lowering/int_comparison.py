"""Comparisons, truth values, choices.

Numbers of one scale compare as their integers do. With a number that is no tensor, PyTorch itself
says which integers are on which side of it. Only Ethos-U85 has these operations.

Ref: TOSA 1.0, 2.7 comparison operators, 2.5 LOGICAL_AND to LOGICAL_XOR, 2.6.1 SELECT.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.context import Call, Result, lowers
from mizzen.frontends.torch.int_lowering.int_activation import evaluate, reals_of
from mizzen.frontends.torch.int_lowering.int_convolution import reshape
from mizzen.frontends.torch.int_lowering.int_elementwise import as_target, same_rank
from mizzen.frontends.torch.int_lowering.rescale import rescale
from mizzen.frontends.torch.values import Constant, Integers, Pending, Plain, Real, Target
from mizzen.graph import DType, Value, integer_range

COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
TRUTHS = {"and": "LOGICAL_AND", "or": "LOGICAL_OR", "xor": "LOGICAL_XOR", "not": "LOGICAL_NOT"}


@lowers(*(f"aten.{name}.Tensor" for name in COMPARISONS))
def comparison(call: Call) -> Plain:
    """Compare two tensors, broadcast."""
    x, y = call.real("self"), call.real("other")
    call.need(
        (x.scale, x.zero_point) == (y.scale, y.zero_point),
        "its operands have different scales",
        "quantise the comparison itself: its operands then share a scale",
    )
    left, right = same_rank(call.b, _centered(call, x), _centered(call, y))
    return _compared(call, left, right)


def _compared(call: Call, x: Value, y: Value) -> Plain:
    b = call.b
    match _name(call):
        case "eq":
            return Plain(b("EQUAL", x, y))
        case "ne":
            return Plain(b("LOGICAL_NOT", b("EQUAL", x, y)))
        case "ge":
            return Plain(b("GREATER_EQUAL", x, y))
        case "gt":
            return Plain(b("GREATER", x, y))
        case "le":
            return Plain(b("GREATER_EQUAL", y, x))
        case _:
            return Plain(b("GREATER", y, x))


@lowers(*(f"aten.{name}.Scalar" for name in COMPARISONS))
def comparison_with_number(call: Call) -> Plain:
    """Compare a tensor with a number: with the first integer on the other side of it."""
    b, x, name = call.b, call.real("self"), _name(call)
    low, high = integer_range(x.value.dtype)
    points = np.arange(low, high + 1)
    holds = evaluate(call.node, call["self"], reals_of(x, points))
    negated = name in ("lt", "le", "ne")
    found = points[~holds if negated else holds]
    limit = int(found[0]) if found.size else high + 1
    shape = (1,) * x.value.type.rank
    constant = b.constant(np.full(shape, limit - x.zero_point), DType.INT32)
    kind = "EQUAL" if name in ("eq", "ne") else "GREATER_EQUAL"
    value = b(kind, _centered(call, x), constant)
    return Plain(b("LOGICAL_NOT", value) if negated else value)


@lowers(
    *(f"aten.logical_{name}.default" for name in TRUTHS),
    *(f"aten.bitwise_{name}.{'default' if name == 'not' else 'Tensor'}" for name in TRUTHS),
    *(f"aten.__{name}__.Tensor" for name in ("and", "or", "xor")),
)
def truth(call: Call) -> Plain:
    """Combine truth values, broadcast."""
    kind = TRUTHS[_name(call).strip("_").rpartition("_")[2]]
    if kind == "LOGICAL_NOT":
        return Plain(call.b(kind, _condition(call, "self")))
    operands = same_rank(call.b, _condition(call, "self"), _condition(call, "other"))
    return Plain(call.b(kind, *operands))


@lowers("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def choice(call: Call) -> Pending:
    """Choose between two tensors or numbers, element by element."""
    return _select(call, _condition(call, "condition"), call["self"], call["other"])


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def filled(call: Call) -> Pending:
    """Put a number wherever a mask is true."""
    return _select(call, _condition(call, "mask"), call["value"], call["self"])


def _select(call: Call, condition: Value, chosen: Any, other: Any) -> Pending:
    terms = [_choice(call, node) for node in (chosen, other)]

    def emit(target: Target) -> Value:
        b, rank = call.b, len(call.shape)
        values = (condition, *(_chosen(call, term, target) for term in terms))
        lifted = (reshape(b, row, (*(1,) * (rank - row.type.rank), *row.shape)) for row in values)
        return b("SELECT", *lifted, quantization=target.quantization)

    return Pending(emit, call.shape)


def _choice(call: Call, node: Any) -> Real | float:
    """Return what may be chosen: a quantised tensor, or a number."""
    if isinstance(node, (int, float)):
        return float(node)
    found = call.term_of(node)
    if isinstance(found, Constant) and found.real.size == 1:
        return float(found.real.reshape(()))
    return call.real_of(node)


def _chosen(call: Call, term: Real | float, target: Target) -> Value:
    if isinstance(term, Real):
        return as_target(call.b, term, target)
    shape = (1,) * len(call.shape)
    return call.b.constant(np.full(shape, target.quantize(term)), target.dtype)


def _condition(call: Call, name: str) -> Value:
    """Return an argument that must be truth values."""
    match call.term(name):
        case Plain(value) if value.dtype is DType.BOOL:
            return value
        case Integers(array) if array.dtype == np.bool_:
            return call.context.graph.constant(array, DType.BOOL)
        case _:
            raise RefusedError(
                f"its {'input' if name == 'self' else name} is no truth value",
                "compare numbers with > or ==, and choose by the result",
            )


def _centered(call: Call, x: Real) -> Value:
    """Return 32-bit integers without zero point."""
    return rescale(call.b, x.value, 1.0, DType.INT32, (x.zero_point, 0))


def _name(call: Call) -> str:
    return str(call.node.target).split(".")[1]


@lowers("aten.argmax.default", "aten.argmin.default")
def index_of_extreme(call: Call) -> Result:
    """The index of an extreme: PyTorch finds it, for an index has 64 bits."""
    raise RefusedError(
        "its result has 64 bits, which no NPU gives",
        "take the index on the host: it costs one pass over the outputs",
    )
