"""Truth values, and choices among numbers, which stay what they are.

Ref: TOSA 1.0, 2.5 LOGICAL_AND to LOGICAL_XOR, 2.6.1 SELECT, 2.7 comparison operators, 2.9 reduction
operators.
"""

from __future__ import annotations

from typing import Any

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import lifted, reshape, same_rank
from mizzen.frontends.torch.call import Call, Term
from mizzen.graph import Value


def where(call: Call[Term]) -> Term:
    """Return one where a condition holds, else the other."""
    return _chosen(call, call.truth("condition"), call["self"], call["other"])


def masked_fill(call: Call[Term]) -> Term:
    """Put a number wherever a mask is true."""
    return _chosen(call, call.truth("mask"), call["value"], call["self"])


def _chosen(call: Call[Term], condition: Value, chosen: object, other: object) -> Term:
    def build(x: Value, y: Value) -> Value:
        operands = (lifted(call.b, value, len(call.shape)) for value in (condition, x, y))
        return call.b("SELECT", *operands)

    return call.alike([chosen, other], build)


def logical(call: Call[Term]) -> Term:
    """Combine truth values, broadcast."""
    call.need(call.gives_truths, "it is of integers", "use it on truths (torch.bool)")
    operands = same_rank(call.b, call.truth("self"), call.truth("other"))
    return call.truths(call.b(call.operator.upper(), *operands))


def logical_not(call: Call[Term]) -> Term:
    """Return the opposite truth."""
    call.need(call.gives_truths, "it is of integers", "use it on truths (torch.bool)")
    return call.truths(call.b("LOGICAL_NOT", call.truth("self")))


def any_(call: Call[Term]) -> Term:
    """Return whether one is true."""
    return call.truths(_reduced(call, "REDUCE_ANY", call.truth("self")))


def all_(call: Call[Term]) -> Term:
    """Return whether all are true."""
    return call.truths(_reduced(call, "REDUCE_ALL", call.truth("self")))


def amax(call: Call[Term]) -> Term:
    """Return the greatest along dimensions."""
    return call.moved(lambda value: _reduced(call, "REDUCE_MAX", value))


def amin(call: Call[Term]) -> Term:
    """Return the least along dimensions."""
    return call.moved(lambda value: _reduced(call, "REDUCE_MIN", value))


def _reduced(call: Call[Any], kind: str, value: Value) -> Value:
    value = reduced(call.b, kind, reshape(call.b, value, value.shape or (1,)), call.axes() or [0])
    return reshape(call.b, value, call.shapes[0])
