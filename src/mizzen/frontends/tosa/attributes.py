"""Attributes of operators of a TOSA file, as operations of the graph have them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer import Member
from mizzen.flatbuffer.tosa import ENUMERATIONS, decode, size_bytes
from mizzen.flatbuffer.tosa import TosaType as FileType
from mizzen.flatbuffer.tosa_tables import OPERATIONS
from mizzen.graph import DType, NanMode, ResizeMode, RoundingMode
from mizzen.ops import DEFINITIONS

GRAPH_ENUMERATIONS: dict[str, type[Enum]] = {
    "acc_type": DType,
    "mode": ResizeMode,
    "nan_mode": NanMode,
    "rounding_mode": RoundingMode,
}


def attributes_of(
    kind: str, member: Member | None, dtype: DType | None, origin: Origin
) -> dict[str, Any]:
    """Return an operator's attributes; `dtype` is its first operand's, for CLAMP.

    Bodies of control flow stay the names of their regions. Raises E154 for numbers that the schema
    does not have, E155 for limits that are not of CLAMP's type, E157 for attributes that are of
    another operator or missing.
    """
    table, fields = OPERATIONS[kind]
    if member is None and fields:
        raise fail("E157", f"{kind} must have its attributes, and has none", origin=origin)
    if member is not None and member.table != table:
        raise fail("E157", f"{kind} must have {table}, not {member.table}", origin=origin)
    if member is None:
        return {}
    return {
        name: _attribute(kind, name, value, dtype, origin) for name, value in member.fields.items()
    }


def _attribute(kind: str, name: str, value: Any, dtype: DType | None, origin: Origin) -> Any:
    if name in ENUMERATIONS:
        return _member(kind, name, value, origin)
    if kind == "CUSTOM":
        return _custom(name, value)
    if value is None:
        default = DEFINITIONS[kind].defaults.get(name)
        if default is None:
            raise fail("E157", f"{kind} must have {name}, and has none", origin=origin)
        return default
    if kind == "CLAMP":
        return _limit(name, value, dtype, origin)
    return value if isinstance(value, str | int | float) else tuple(map(int, value))


def _custom(name: str, value: Any) -> str | bytes:
    if name == "implementation_attrs":
        return b"" if value is None else value.tobytes()
    return value or ""


def _member(kind: str, name: str, number: int, origin: Origin) -> Any:
    members = ENUMERATIONS[name]
    known = members(number).name if number in set(members) else str(number)
    if known in GRAPH_ENUMERATIONS[name].__members__:
        return GRAPH_ENUMERATIONS[name][known]
    default = DEFINITIONS[kind].defaults.get(name)
    if number == 0 and default is not None:
        return default
    choices = ", ".join(GRAPH_ENUMERATIONS[name].__members__)
    message = f"{name} of {kind} must be one of {choices}, and is {known}"
    raise fail("E154", message, origin=origin)


def _limit(name: str, data: Any, dtype: DType | None, origin: Origin) -> int | float:
    type = FileType[dtype.name] if dtype is not None else FileType.UNKNOWN
    if type in (FileType.UNKNOWN, FileType.SHAPE) or len(data) < size_bytes(type, 1):
        raise fail(
            "E155",
            f"{name} must hold a number of the input's type, and has {len(data)} bytes",
            origin=origin,
        )
    return decode(data, type, 1)[0].item()
