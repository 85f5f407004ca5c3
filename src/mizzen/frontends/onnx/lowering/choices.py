"""Comparisons, truths, choices, and integers in other types.

Numbers of one scale compare as their integers do, others in a fine unit of both; with a constant,
the integers on either side of it are known.
"""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.choice import compared
from mizzen.frontends.arrangement.movement import lifted, same_rank
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.types import DTYPES, SIGNED
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.elementwise import HEADROOM_BITS
from mizzen.frontends.quantized.functions import reals_of
from mizzen.frontends.quantized.scales import centered, rescale
from mizzen.frontends.quantized.terms import Constant, Plain, Quantized, Real, Term, Wide
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, Value, integer_range

OPERATORS = {
    "Equal": "eq",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "Less": "lt",
    "LessOrEqual": "le",
}
"""Types of operators to the comparison that they are."""

TURNED = {"eq": "eq", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
"""Comparisons to those of the operands the other way round."""

BITWISE = {"BitwiseAnd": "BITWISE_AND", "BitwiseOr": "BITWISE_OR", "BitwiseXor": "BITWISE_XOR"}


def compare(call: OnnxCall) -> Plain:
    """Compare two tensors, broadcast."""
    name = OPERATORS[call.kind]
    if call.dtype_of(0) == np.bool_:
        same = call.b("LOGICAL_XOR", *same_rank(call.b, call.truth(0), call.truth(1)))
        return Plain(call.b("LOGICAL_NOT", same))
    if call.dtype_of(0).kind != "f":
        return Plain(compared(call.b, name, *(_wide(call, index) for index in (0, 1))))
    constants = [isinstance(call.term(index), Constant) for index in (0, 1)]
    if constants[1]:
        return _with_constant(call, name, 0, 1)
    if constants[0]:
        return _with_constant(call, TURNED[name], 1, 0)
    x, y = call.real(0), call.real(1)
    if x.scale == y.scale:
        return Plain(compared(call.b, name, centered(call.b, x), centered(call.b, y)))
    bits = min(HEADROOM_BITS[each.value.dtype] for each in (x, y))
    unit = max(x.scale, y.scale) / (1 << bits)
    left, right = (
        rescale(call.b, each.value, each.scale / unit, DType.INT32, (each.zero_point, 0))
        for each in (x, y)
    )
    return Plain(compared(call.b, name, left, right))


def _with_constant(call: OnnxCall, name: str, real: int, constant: int) -> Plain:
    """Compare with constants: with the first integer on the other side of each."""
    b, x, reals = call.b, call.real(real), call.constant(constant).real
    low, high = integer_range(x.value.dtype)
    points = reals_of(x, np.arange(low, high + 1))
    after = "right" if name in ("gt", "le", "eq") else "left"
    limits = low + np.searchsorted(points, reals.astype(np.float32), after)
    if name == "eq":
        is_one = np.isin(reals.astype(np.float32), points)
        limits = np.where(is_one, limits - 1, high + 1)
    limit = b.constant(limits - x.zero_point, DType.INT32)
    kind = "EQUAL" if name == "eq" else "GREATER_EQUAL"
    value = b(kind, *same_rank(b, centered(b, x), limit))
    return Plain(b("LOGICAL_NOT", value) if name in ("lt", "le") else value)


def _wide(call: OnnxCall, index: int) -> Value:
    """Return integers in 32 bits; those without a sign are less by what their type says."""
    value = call.integers(index)
    if value.dtype is DType.INT32:
        return value
    call.need(value.dtype in (DType.INT8, DType.INT16), f"it is of {call.dtype_of(index).name}")
    return rescale(call.b, value, 1.0, DType.INT32)


def logical(call: OnnxCall) -> Plain:
    """Combine truths, broadcast: And, Or, Xor."""
    operands = same_rank(call.b, call.truth(0), call.truth(1))
    return Plain(call.b(f"LOGICAL_{call.kind.upper()}", *operands))


def logical_not(call: OnnxCall) -> Plain:
    """Return the opposite truth."""
    return Plain(call.b("LOGICAL_NOT", call.truth(0)))


def bitwise(call: OnnxCall) -> Term:
    """Combine the bits of integers with a sign."""
    call.need(call.dtype.kind == "i", f"it is of {call.dtype.name}", "use integers with a sign")
    values = same_rank(call.b, call.integers(0), call.integers(1))
    return of_type(call, call.b(BITWISE[call.kind], *values))


def bitwise_not(call: OnnxCall) -> Term:
    """Turn all bits: without a sign too, for 255 - x is what ~(x - 128) stands for."""
    return of_type(call, call.b("BITWISE_NOT", call.integers(0)))


def of_type(call: OnnxCall, value: Value) -> Term:
    """Return integers of the result's type as a term."""
    if call.dtype.name == "int64":
        return Wide(value)
    return Quantized(value) if value.dtype in (DType.INT8, DType.INT16) else Plain(value)


def where(call: OnnxCall) -> Term:
    """Return one where a condition holds, else the other, broadcast."""
    b, condition = call.b, call.truth(0)
    rank = len(call.shape)

    def build(x: Value, y: Value) -> Value:
        operands = (lifted(b, value, rank) for value in (condition, x, y))
        return b("SELECT", *operands)

    result = call.alike([1, 2], build)
    return Wide(result.value) if isinstance(result, Plain) and _is_long(call) else result


def _is_long(call: OnnxCall) -> bool:
    return call.dtype.name == "int64"


def cast(call: OnnxCall) -> Term:
    """Return the input in another type: among integers and truths, and integers as real numbers."""
    to, given = call.dtype, call.dtype_of(0)
    if to == given:
        return call.moved(lambda value: value)
    if given.kind == "f":
        raise RefusedError(
            f"it makes {to.name} of real numbers", "put a QuantizeLinear there instead"
        )
    if to.kind == "f":
        return _real(call)
    value = _of_32_bits(call)
    if to == np.bool_:
        zero = call.b.constant(np.zeros((1,) * value.type.rank), DType.INT32)
        return Plain(call.b("LOGICAL_NOT", call.b("EQUAL", value, zero)))
    return _narrowed(call, value)


def _of_32_bits(call: OnnxCall) -> Value:
    """Return integers or truths as what they are, in 32 bits."""
    b = call.b
    if call.dtype_of(0) == np.bool_:
        return b("CAST", b("CAST", call.truth(0), dtype=DType.INT8), dtype=DType.INT32)
    value, offset = _wide(call, 0), call.offset(0)
    if not offset:
        return value
    return b("ADD", *same_rank(b, value, b.constant([offset], DType.INT32)))


def _narrowed(call: OnnxCall, value: Value) -> Term:
    """Return 32 bits in the result's type; what does not fit wraps around."""
    dtype, b, offset = DTYPES.get(call.dtype.name), call.b, _offset_of(call.dtype)
    if call.dtype.name in ("int32", "int64"):
        return of_type(call, value)
    dtype = SIGNED.get(dtype, dtype) if dtype is not None else None
    call.need(dtype in (DType.INT8, DType.INT16), f"it makes {call.dtype.name}")
    if offset:
        value = b("SUB", *same_rank(b, value, b.constant([offset], DType.INT32)))
    return Quantized(b("CAST", value, dtype=dtype))


def _offset_of(dtype: np.dtype[np.generic]) -> int:
    return {"uint8": 128, "uint16": 32768}.get(dtype.name, 0)


def _real(call: OnnxCall) -> Term:
    """Let integers stand for themselves: real numbers of scale 1."""
    b = call.b
    call.need(call.dtype == np.float32, f"it makes numbers of {call.dtype.name}", "use float32")
    if call.dtype_of(0) == np.bool_:
        value = b("CAST", call.truth(0), dtype=DType.INT8)
    else:
        value = call.integers(0)
    offset = call.offset(0)
    call.need(
        value.dtype is DType.INT8 or (value.dtype is DType.INT16 and not offset),
        f"it makes real numbers of {call.dtype_of(0).name}",
        "quantise them: 8 bits with a scale of 1 are the integers themselves",
    )
    own = Quantization((1.0,), (-offset,))
    return Real(b("IDENTITY", value, quantization=own))


def mod(call: OnnxCall) -> Term:
    """Return the remainder of a division by a constant; its sign is the divisor's, or with fmod
    the dividend's."""
    if call.dtype.kind == "f":
        raise RefusedError("it divides real numbers, and no NPU does", "use integers")
    b, divisor = call.b, call.array(1)
    call.need(bool(np.all(divisor != 0)), "it divides by zero")
    call.need(call.dtype.name in ("int32", "int64"), f"it divides numbers of {call.dtype.name}")
    value, by = same_rank(b, call.integers(0), b.constant(divisor.astype(np.int64), DType.INT32))
    none = b.constant([0], DType.INT8)
    left = b("SUB", value, b("MUL", b("INTDIV", value, by), by, none))
    if call.whole("fmod", 0):
        return of_type(call, left)
    return of_type(call, _with_sign_of(call, left, by, divisor))


def _with_sign_of(call: OnnxCall, left: Value, by: Value, divisor: Array) -> Value:
    """Add the divisor to remainders of the other sign."""
    b = call.b
    zero = b.constant(np.zeros((1,) * left.type.rank), DType.INT32)
    call.need(bool(np.all(divisor > 0) or np.all(divisor < 0)), "its divisors are of both signs")
    other = b("GREATER", zero, left) if divisor.reshape(-1)[0] > 0 else b("GREATER", left, zero)
    return b("SELECT", other, *same_rank(b, b("ADD", left, by), left))
