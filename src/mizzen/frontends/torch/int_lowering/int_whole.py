"""Whole numbers, which are no quantised ones: in 32 bits, and as many of them as the result has."""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import same_rank
from mizzen.frontends.quantized.terms import Array, Integers, Plain, Wide
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.program import tensor_type
from mizzen.graph import DType, Value, integer_range


def is_whole(node: Any) -> bool:
    """Whether a result is of whole numbers that NPUs have."""
    return str(node.meta["val"].dtype).removeprefix("torch.") in ("int8", "int16", "int32")


def arithmetic(call: IntCall, kind: str) -> Plain:
    """Add, subtract or multiply (ADD, SUB, MUL); 8 and 16 bits wrap around, as PyTorch's do.

    32 bits do not: a result beyond them is a fault of the NPU's simulator.
    """
    b, dtype = call.b, type_of(call.node)
    x, y = wide_operands(call, "self", "other")
    value = b(kind, x, y, *([b.constant([0], DType.INT8)] if kind == "MUL" else []))
    if dtype is not DType.INT32:
        bits = number(call, 8 * dtype.numpy.itemsize, value.type.rank)
        beyond = b("ARITHMETIC_RIGHT_SHIFT", value, bits, round=True)
        value = b("SUB", value, b("LOGICAL_LEFT_SHIFT", beyond, bits))
    return narrowed(call, value)


def number(call: IntCall, value: int, rank: int) -> Value:
    """Return a number of 32 bits with dimensions of 1."""
    return call.b.constant(np.full((1,) * rank, value), DType.INT32)


def type_of(node: Any) -> DType:
    """Return the type of a node's elements. E162 for one that the graph has not."""
    return tensor_type(node.meta["val"], None).dtype


def wide_operands(call: IntCall, *names: str) -> list[Value]:
    """Return operands in 32 bits, of one rank."""
    return same_rank(call.b, *(_wide(call, call[name]) for name in names))


def are_whole(call: IntCall, *names: str) -> bool:
    """Whether operands are whole numbers of which an NPU has 32 bits."""
    return is_whole(call[names[0]]) or any(
        isinstance(call.term_of(call[name]), Wide) for name in names if hasattr(call[name], "meta")
    )


def _wide(call: IntCall, operand: Any) -> Value:
    if hasattr(operand, "meta"):
        match call.term_of(operand):
            case Wide(value):
                return value
            case Integers(array) if array.dtype == np.int64 and _fits(array):
                return call.b.constant(array, DType.INT32)
            case _:
                pass
    dtype = type_of(operand) if hasattr(operand, "meta") else DType.INT32
    value = call.as_plain(operand, dtype)
    return value if dtype is DType.INT32 else call.b("CAST", value, dtype=DType.INT32)


def _fits(array: Array) -> bool:
    low, high = integer_range(DType.INT32)
    return bool(((array >= low) & (array <= high)).all())


def narrowed(call: IntCall, value: Value) -> Plain:
    """Return numbers that fit the result in as many bits as it has."""
    dtype = type_of(call.node)
    return Plain(value if dtype is DType.INT32 else call.b("CAST", value, dtype=dtype))
