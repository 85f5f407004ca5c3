"""Tensors in another type: integers as real numbers, 64 bits and 32, truth values."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.types import NUMBERS
from mizzen.frontends.quantized.terms import Pending, Plain, Quantized, Real, Term, Wide
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, Value


def cast(call: OnnxCall) -> Term:
    """Return the input in another type, where integers stay the numbers that they are."""
    source, result = call.dtype_of(0), call.dtype
    if source == result:
        return call.moved(lambda value: value)
    match source.kind, result.kind:
        case "f", "f":
            return _precise(call)
        case (("i" | "u" | "b"), "f"):
            return _as_real(call)
        case (("i" | "u" | "b"), ("i" | "u")):
            return _whole(call)
        case _:
            raise RefusedError(f"it turns {source.name} into {result.name}, which no NPU rounds")


def _precise(call: OnnxCall) -> Term:
    """Return quantised numbers themselves: integers stand for them in any precision."""
    if not isinstance(call.term(0), (Real, Pending)):
        raise RefusedError("its input is not quantised")
    return call.moved(lambda value: value)


def _as_real(call: OnnxCall) -> Term:
    """Return integers as the real numbers that they are: a scale of 1."""
    value = _counted(call)
    call.need(
        value.dtype in NUMBERS,
        f"it makes real numbers of {call.dtype_of(0).name}",
        "cast integers of 8 or 16 bits, or quantise the result",
    )
    zero = -call.offset(0)
    call.need(
        value.dtype is DType.INT8 or not zero, "it makes real numbers of 16 bits without a sign"
    )
    return Real(call.context.standing(value, Quantization((1.0,), (zero,)), call.node))


def _counted(call: OnnxCall) -> Value:
    """Return the input as integers, truth values as 0 and 1."""
    if call.dtype_of(0).kind == "b":
        return call.b("CAST", call.truth(0), dtype=DType.INT8)
    return call.integers(0)


def _whole(call: OnnxCall) -> Term:
    """Return integers in as many bits as the result has, if those hold each of them."""
    source, result = call.dtype_of(0), call.dtype
    if source.name == "int64" and result.name == "int32":
        return Plain(call.integers(0))
    wider = result.itemsize > source.itemsize and (result.kind == "i" or source.kind != "i")
    call.need(
        wider or source.kind == "b",
        f"it puts {source.name} into {result.name}, which does not hold all of its numbers",
    )
    call.need(result.name in WIDER, f"it makes {result.name}, which no NPU computes with")
    offset, dtype = call.offset(0), WIDER[result.name]
    value = _counted(call)
    if offset:
        value = _raised(call, value, offset)
    if value.dtype is not dtype:
        value = call.b("CAST", value, dtype=dtype)
    match result.name:
        case "int64":
            return Wide(value)
        case "int32":
            return Plain(value)
        case _:
            return Quantized(value)


def _raised(call: OnnxCall, value: Value, offset: int) -> Value:
    """Return integers without a sign as what they are, in 32 bits."""
    wide = call.b("CAST", value, dtype=DType.INT32)
    constant = call.b.constant(np.full((1,) * value.type.rank, offset), DType.INT32)
    return call.b("ADD", wide, constant)


WIDER = {"int8": DType.INT8, "int16": DType.INT16, "int32": DType.INT32, "int64": DType.INT32}
"""Types of results, and those that the graph has for them."""
