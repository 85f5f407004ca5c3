"""The TOSA schema: the numbers of its enumerations, how tensors hold elements, the schema itself.

Ref: TOSA serialization library 1.0, schema/tosa.fbs (file identifier ``TOSA``).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer.schema import Schema
from mizzen.flatbuffer.tosa_fields import FIELDS
from mizzen.flatbuffer.tosa_tables import OPERATIONS, TABLES, UNIONS

VERSION = (1, 0, 0)
"""The version of TOSA that files are written in."""

NUMBERS = {kind: number for number, kind in enumerate(OPERATIONS, 1)}
"""Operation to its number."""

KINDS = {number: kind for kind, number in NUMBERS.items()}
"""Number to operation."""


class TosaType(IntEnum):
    """Type of a tensor's elements."""

    UNKNOWN = 0
    BOOL = 1
    INT4 = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT48 = 6
    FP32 = 7
    FP16 = 8
    BF16 = 9
    SHAPE = 10
    FP8E4M3 = 11
    FP8E5M2 = 12


class ResizeMode(IntEnum):
    """How RESIZE finds values between samples."""

    UNKNOWN = 0
    NEAREST = 1
    BILINEAR = 2


class NanMode(IntEnum):
    """What an operation makes of a NaN; called NanPropagationMode in the schema."""

    UNKNOWN = 0
    PROPAGATE = 1
    IGNORE = 2


class RoundingMode(IntEnum):
    """How RESCALE rounds."""

    UNKNOWN = 0
    SINGLE_ROUND = 1
    INEXACT_ROUND = 2
    DOUBLE_ROUND = 3


ENUMERATIONS: dict[str, type[IntEnum]] = {
    "acc_type": TosaType,
    "mode": ResizeMode,
    "nan_mode": NanMode,
    "rounding_mode": RoundingMode,
}
"""Attributes whose numbers have names."""

BITS = {
    TosaType.BOOL: 8,
    TosaType.INT4: 4,
    TosaType.INT8: 8,
    TosaType.INT16: 16,
    TosaType.INT32: 32,
    TosaType.INT48: 48,
    TosaType.FP32: 32,
    TosaType.FP16: 16,
    TosaType.BF16: 16,
    TosaType.SHAPE: 64,
    TosaType.FP8E4M3: 8,
    TosaType.FP8E5M2: 8,
}
"""Bits of an element in a file."""

PLAIN: dict[TosaType, np.dtype[Any]] = {
    TosaType.INT8: np.dtype("i1"),
    TosaType.INT16: np.dtype("<i2"),
    TosaType.INT32: np.dtype("<i4"),
    TosaType.FP32: np.dtype("<f4"),
    TosaType.FP16: np.dtype("<f2"),
    TosaType.SHAPE: np.dtype("<i8"),
}
"""Types whose elements NumPy holds as files do."""

INT48_BYTES = 6
BF16_FROM_BYTE = 2
"""A bf16 is the upper half of an f32."""

Array = npt.NDArray[Any]


def size_bytes(type: TosaType, elements: int) -> int:
    """Return the bytes that elements take in a file; the last of odd INT4 takes a whole byte."""
    return (elements * BITS[type] + 7) // 8


def encode(values: Array, type: TosaType) -> npt.NDArray[np.uint8]:
    """Return elements as a file has them.

    INT4 comes in integers of any width, INT48 in int64, BF16 in f32 that it holds exactly.
    """
    flat = np.ravel(values)
    match type:
        case TosaType.BOOL:
            return flat.astype(np.uint8)
        case TosaType.INT4:
            return _pack_nibbles(flat)
        case TosaType.INT48:
            return _octets(flat, "<i8").reshape(-1, 8)[:, :INT48_BYTES].reshape(-1)
        case TosaType.BF16:
            return _octets(flat, "<f4").reshape(-1, 4)[:, BF16_FROM_BYTE:].reshape(-1)
        case _:
            return _octets(flat, PLAIN[type])


def decode(data: npt.NDArray[np.uint8], type: TosaType, elements: int) -> Array:
    """Return the elements that bytes of a file hold, as many as are asked for; see `encode`.

    `data` must have `size_bytes` of them at least. What NumPy holds as files do stays a view.
    """
    data = data[: size_bytes(type, elements)]
    match type:
        case TosaType.BOOL:
            return data != 0
        case TosaType.INT4:
            return _unpack_nibbles(data)[:elements]
        case TosaType.INT48:
            return _widen(data.reshape(-1, INT48_BYTES))
        case TosaType.BF16:
            whole = np.zeros((elements, 4), np.uint8)
            whole[:, BF16_FROM_BYTE:] = data.reshape(-1, 2)
            return whole.reshape(-1).view("<f4")
        case _:
            return data.view(PLAIN[type])


def _octets(values: Array, dtype: npt.DTypeLike) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(values, dtype).view(np.uint8)


def _pack_nibbles(values: Array) -> npt.NDArray[np.uint8]:
    """Put two elements into a byte, the first into the lower half."""
    halves = np.zeros(values.size + values.size % 2, np.uint8)
    halves[: values.size] = values.astype(np.int8).view(np.uint8) & 0xF
    return np.bitwise_or(halves[0::2], np.left_shift(halves[1::2], 4), dtype=np.uint8)


def _unpack_nibbles(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    halves = np.stack([data << 4, data & 0xF0], axis=1).reshape(-1)
    return np.right_shift(halves.view(np.int8), 4, dtype=np.int8)


def _widen(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Extend the sign of 48-bit integers."""
    whole = np.zeros((len(octets), 8), np.uint8)
    whole[:, 2:] = octets
    return whole.reshape(-1).view("<i8") >> 16


SCHEMA = Schema("TOSA", "TosaGraph", b"TOSA", TABLES, UNIONS, FIELDS)
"""What reads and writes `.tosa` files."""

ENDING = ".tosa"


def is_tosa(data: bytes, name: str) -> bool:
    """Whether a file is, or says by its name that it is, a TOSA network."""
    return data[4:8] == SCHEMA.identifier or name.endswith(ENDING)
