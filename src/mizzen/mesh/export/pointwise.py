"""Operations on each element alone, as expressions of C: what `mizzen.reference` computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from mizzen.graph import INTEGER_BITS, Array, DType, Operation, RoundingMode, integer_range
from mizzen.mesh.export.c_text import count, integer


class Parts(Protocol):
    """What an expression is made of."""

    @property
    def operation(self) -> Operation:
        """The operation."""
        ...

    def operand(self, index: int) -> str:
        """Return an operand's element."""
        ...

    def constant(self, index: int) -> Array:
        """Return an operand that is constant."""
        ...

    def along(self, index: int) -> str:
        """Return the element of a constant that has one for each channel, or one for all."""
        ...

    def table(self, index: int) -> str:
        """Return the name of a constant's array."""
        ...


Expression = Callable[[Parts], str]


def _form(text: str) -> Expression:
    """Return an expression of the first operands, ``a``, ``b`` and ``c``."""

    def expression(parts: Parts) -> str:
        operands = parts.operation.operands[:3]
        return text.format(
            **{name: parts.operand(index) for index, name in enumerate("abc"[: len(operands)])}
        )

    return expression


def _bits(dtype: DType) -> int:
    return 1 if dtype is DType.BOOL else INTEGER_BITS[dtype]


def _clamped(expression: str, dtype: DType) -> str:
    low, high = integer_range(dtype)
    return f"mesh_clamp({expression}, {integer(low)}, {integer(high)})"


def _rescale(parts: Parts) -> str:
    operation: Any = parts.operation
    source, target = operation.input.dtype, operation.result.dtype
    before = _zero_point(parts, 3, source, operation.input_unsigned)
    after = _zero_point(parts, 4, target, operation.output_unsigned)
    value = parts.operand(0)
    if operation.input_unsigned:
        value = f"mesh_unsigned({value}, {count(_bits(source))})"
    twice = operation.rounding_mode is RoundingMode.DOUBLE_ROUND
    name = "mesh_rescale_twice" if twice else "mesh_rescale"
    value = f"{value} - ({integer(before)})" if before else value
    shift = f"(uint32_t){parts.along(2)}"
    scaled = f"{name}({value}, {parts.along(1)}, {shift})"
    scaled = f"{scaled} + ({integer(after)})" if after else scaled
    if not operation.output_unsigned:
        return _clamped(scaled, target)
    bits = _bits(target)
    return f"mesh_wrap(mesh_clamp({scaled}, 0, {(1 << bits) - 1}), {count(bits)})"


def _zero_point(parts: Parts, index: int, dtype: DType, is_unsigned: bool) -> int:
    value = int(parts.constant(index).reshape(-1)[0])
    return value % (1 << _bits(dtype)) if is_unsigned else value


def _clamp(parts: Parts) -> str:
    operation: Any = parts.operation
    low, high = integer(int(operation.min_val)), integer(int(operation.max_val))
    return f"mesh_clamp({parts.operand(0)}, {low}, {high})"


def _table(parts: Parts) -> str:
    value, name = parts.operand(0), parts.table(1)
    if parts.operation.operand.dtype is DType.INT8:
        return f"{name}[(uint32_t)({value} + 128)]"
    entry = f"{name}[(uint32_t)({value} + 32768) >> 7]"
    behind = f"{name}[((uint32_t)({value} + 32768) >> 7) + 1u]"
    fraction = f"mesh_unsigned({value}, 7u)"
    return f"(int64_t){entry} * 128 + ((int64_t){behind} - {entry}) * {fraction}"


def _shift_right(parts: Parts) -> str:
    operation: Any = parts.operation
    round = integer(int(operation.round))
    return f"mesh_shift_right({parts.operand(0)}, {parts.operand(1)}, {round})"


def _logical_left(parts: Parts) -> str:
    bits = count(_bits(parts.operation.result.dtype))
    shifted = f"(int64_t)((uint64_t){parts.operand(0)} << {parts.operand(1)})"
    return f"mesh_wrap({shifted}, {bits})"


def _logical_right(parts: Parts) -> str:
    bits = count(_bits(parts.operation.result.dtype))
    shifted = f"mesh_unsigned({parts.operand(0)}, {bits}) >> {parts.operand(1)}"
    return f"mesh_wrap({shifted}, {bits})"


def _multiply(parts: Parts) -> str:
    shift = int(parts.constant(2).reshape(-1)[0])
    return f"mesh_multiply({parts.operand(0)}, {parts.operand(1)}, {count(shift)})"


def _negate(parts: Parts) -> str:
    zero_points = sum(int(parts.constant(index).reshape(-1)[0]) for index in (1, 2))
    return _clamped(f"{zero_points} - {parts.operand(0)}", parts.operation.result.dtype)


def _cast(parts: Parts) -> str:
    target, value = parts.operation.result.dtype, parts.operand(0)
    if target is DType.BOOL:
        return f"{value} != 0"
    return f"mesh_wrap({value}, {count(_bits(target))})"


POINTWISE: dict[str, Expression] = {
    "ABS": _form("{a} < 0 ? -{a} : {a}"),
    "ADD": _form("{a} + {b}"),
    "ARITHMETIC_RIGHT_SHIFT": _shift_right,
    "BITWISE_AND": _form("{a} & {b}"),
    "BITWISE_NOT": _form("~{a}"),
    "BITWISE_OR": _form("{a} | {b}"),
    "BITWISE_XOR": _form("{a} ^ {b}"),
    "CAST": _cast,
    "CLAMP": _clamp,
    "CLZ": _form("mesh_leading_zeros({a})"),
    "EQUAL": _form("{a} == {b}"),
    "GREATER": _form("{a} > {b}"),
    "GREATER_EQUAL": _form("{a} >= {b}"),
    "INTDIV": _form("{a} / {b}"),
    "LOGICAL_AND": _form("{a} != 0 && {b} != 0"),
    "LOGICAL_LEFT_SHIFT": _logical_left,
    "LOGICAL_NOT": _form("{a} == 0"),
    "LOGICAL_OR": _form("{a} != 0 || {b} != 0"),
    "LOGICAL_RIGHT_SHIFT": _logical_right,
    "LOGICAL_XOR": _form("({a} != 0) != ({b} != 0)"),
    "MAXIMUM": _form("mesh_greatest({a}, {b})"),
    "MINIMUM": _form("mesh_least({a}, {b})"),
    "MUL": _multiply,
    "NEGATE": _negate,
    "RESCALE": _rescale,
    "SELECT": _form("{a} != 0 ? {b} : {c}"),
    "SUB": _form("{a} - {b}"),
    "TABLE": _table,
}
"""By the kind of operation."""
