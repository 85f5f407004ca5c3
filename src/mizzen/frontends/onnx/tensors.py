"""Tensors of a file as NumPy arrays: sizes are checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.onnx.wire import Message

DTYPES: Mapping[int, np.dtype[Any]] = {
    1: np.dtype(np.float32), 2: np.dtype(np.uint8), 3: np.dtype(np.int8), 4: np.dtype(np.uint16),
    5: np.dtype(np.int16), 6: np.dtype(np.int32), 7: np.dtype(np.int64), 9: np.dtype(np.bool_),
    10: np.dtype(np.float16), 11: np.dtype(np.float64), 12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
}  # fmt: skip
"""ONNX's numbers of types of elements."""
NUMBER_OF: Mapping[np.dtype[Any], int] = {dtype: number for number, dtype in DTYPES.items()}

NARROW: Mapping[int, tuple[int, bool]] = {
    21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True),
}  # fmt: skip
"""Types of a few bits, several in a byte: how many, and whether with a sign."""

OTHERS: Mapping[int, str] = {
    0: "no type", 8: "strings", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2", 21: "uint4", 22: "int4",
}  # fmt: skip
"""Types that no step here computes with."""

MOST_RANK = 32
MOST_ELEMENTS = (1 << 31) - 1
MOST_SPARSE_BYTES = 1 << 28

_TYPED: Mapping[str, tuple[int, ...]] = {
    "float_data": (1,),
    "double_data": (11,),
    "int32_data": (2, 3, 4, 5, 6, 9, 10, *NARROW),
    "int64_data": (7,),
    "uint64_data": (12, 13),
}
"""Fields that hold elements one by one, and the types whose elements each holds."""


def dtype_of(number: int, subject: str, origin: Origin) -> np.dtype[Any]:
    """Say a type of elements as NumPy has it; E194 for those that nothing here computes with."""
    if number in DTYPES:
        return DTYPES[number]
    if number not in OTHERS:
        raise wrong(origin, f"{subject} must be of a type of ONNX, and is of type {number}")
    raise fail(
        "E194",
        f"{subject} must be of numbers that the host or an NPU computes with, "
        f"and is of {OTHERS[number]}",
        origin=origin,
        help="export the network with float32, or integers of 8 to 64 bits",
    )


def require_extents(dims: tuple[int, ...], subject: str, origin: Origin) -> int:
    """Check extents; how many elements they span."""
    if any(extent < 0 for extent in dims):
        raise wrong(origin, f"{subject} must have extents from 0, and has {list(dims)[:8]}")
    if len(dims) > MOST_RANK:
        rule = f"{subject} must have at most {MOST_RANK} dimensions"
        raise fail("E192", f"{rule}, and has {len(dims)}", origin=origin)
    count = prod(dims)
    if max(count, *dims, 0) > MOST_ELEMENTS:
        rule = f"{subject} must have at most {MOST_ELEMENTS:,} elements"
        raise fail("E192", f"{rule}, and is of {list(dims)}", origin=origin)
    return count


def wrong(origin: Origin, message: str, help: str | None = None) -> MizzenError:
    """Make the error for a model that breaks ONNX's own rules."""
    return fail("E190", message, origin=origin, help=help)


_READ = "elements"
"""Where a message keeps its array: a function that is called often has its constants once."""


def dense(message: Message, beside: Beside, origin: Origin) -> Array:
    """Read a tensor's elements, or give those that were read before.

    Raises E190 for contents that do not fit, E191 for external data, E192 and E194 for sizes and
    types that nothing here holds.
    """
    if _READ not in message:
        message[_READ] = _dense(message, beside, origin)
    return message[_READ]


def _dense(message: Message, beside: Beside, origin: Origin) -> Array:
    """Read a tensor's elements; those of 2 and 4 bits come as 8 bits."""
    subject = f'tensor "{message.get("name", "")}"'
    dims = tuple(int(extent) for extent in numbers(message.get("dims", []), np.int64))
    count = require_extents(dims, subject, origin)
    number = message.get("data_type", 0)
    if number in NARROW:
        bits, is_signed = NARROW[number]
        size = -(-count * bits // 8)
        packed = _elements(message, number, np.dtype(np.uint8), size, beside, subject, origin)
        return _widened(packed, count, bits, is_signed).reshape(dims)
    dtype = dtype_of(number, subject, origin)
    return _elements(message, number, dtype, count, beside, subject, origin).reshape(dims)


def _elements(
    message: Message,
    number: int,
    dtype: np.dtype[Any],
    count: int,
    beside: Beside,
    subject: str,
    origin: Origin,
) -> Array:
    size = count * dtype.itemsize
    if message.get("data_location", 0) == 1:
        places: list[Message] = message.get("external_data", [])
        entries = {place.get("key", ""): place.get("value", "") for place in places}
        return _of_bytes(beside.tensor(entries, size, origin), dtype)
    if "raw_data" in message:
        raw = message["raw_data"]
        if len(raw) != size:
            raise wrong(origin, f"{subject} must have {size} bytes, and has {len(raw)}")
        return _of_bytes(raw, dtype)
    return _typed(message, number, dtype, count, subject, origin)


def _of_bytes(data: Any, dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False)


def _typed(
    message: Message, number: int, dtype: np.dtype[Any], count: int, subject: str, origin: Origin
) -> Array:
    name = next(field for field, types in _TYPED.items() if number in types)
    values = numbers(message.get(name, []), _CONTAINER[name])
    if len(values) != count:
        raise wrong(origin, f"{subject} must have {count} elements, and has {len(values)}")
    if dtype == np.bool_:
        return values != 0
    if dtype == np.float16:
        return _within(values, np.dtype(np.uint16), subject, origin).view(np.float16)
    return _within(values, dtype, subject, origin)


def _within(values: Array, dtype: np.dtype[Any], subject: str, origin: Origin) -> Array:
    result = values.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(result.astype(values.dtype), values):
        raise wrong(origin, f"elements of {subject} must fit {dtype}, and one does not")
    return result


_CONTAINER: Mapping[str, type[Any]] = {
    "float_data": np.float32,
    "double_data": np.float64,
    "int32_data": np.int64,
    "int64_data": np.int64,
    "uint64_data": np.uint64,
}


def numbers(parts: list[Any], dtype: Any) -> Array:
    """Join numbers that came one by one and in runs."""
    if len(parts) == 1 and isinstance(parts[0], np.ndarray):
        return cast("Array", parts[0]).astype(dtype, copy=False)
    if not any(isinstance(part, np.ndarray) for part in parts):
        return np.array(parts, dtype)
    return np.concatenate([np.atleast_1d(np.asarray(part, dtype)) for part in parts])


def _widened(packed: Array, count: int, bits: int, is_signed: bool) -> Array:
    """Take elements of a few bits, the first in the lowest, as bytes."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    mask = np.uint8((1 << bits) - 1)
    every = ((packed[:, None] >> shifts) & mask).reshape(-1)[:count]
    if not is_signed:
        return every
    signed = every.astype(np.int8)
    return np.where(signed >= 1 << (bits - 1), signed - np.int8(1 << bits), signed).astype(np.int8)


def of_sparse(message: Message, beside: Beside, origin: Origin) -> Array:
    """Read a sparse tensor as a dense one, once."""
    if _READ not in message:
        message[_READ] = _of_sparse(message, beside, origin)
    return message[_READ]


def _of_sparse(message: Message, beside: Beside, origin: Origin) -> Array:
    subject = f'sparse tensor "{message.get("values", {}).get("name", "")}"'
    dims = tuple(int(extent) for extent in numbers(message.get("dims", []), np.int64))
    count = require_extents(dims, subject, origin)
    values = dense(message.get("values", {}), beside, origin)
    places = dense(message.get("indices", {}), beside, origin)
    if count * values.itemsize > MOST_SPARSE_BYTES:
        raise fail(
            "E192",
            f"{subject} must take at most {MOST_SPARSE_BYTES:,} bytes when it is dense, "
            f"and takes {count * values.itemsize:,}",
            origin=origin,
        )
    flat = _flat_places(places, dims, len(values), subject, origin)
    result = np.zeros(count, values.dtype)
    result[flat] = values.reshape(-1)
    return result.reshape(dims)


def _flat_places(
    places: Array, dims: tuple[int, ...], count: int, subject: str, origin: Origin
) -> Array:
    if places.dtype != np.int64 or places.shape not in ((count,), (count, len(dims))):
        raise wrong(origin, f"{subject} must have an index for each value, and has others")
    every = places.reshape(count, -1)
    limits = (prod(dims),) if places.ndim == 1 else dims
    if np.any(every < 0) or np.any(every >= np.array(limits, np.int64)):
        raise wrong(origin, f"indices of {subject} must lie in {list(dims)}, and one does not")
    if places.ndim == 1:
        return places
    return np.ravel_multi_index(tuple(every.T), dims) if count else np.zeros(0, np.int64)
