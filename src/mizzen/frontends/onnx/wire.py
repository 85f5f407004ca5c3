"""Read the messages of an ONNX file as plain data, within bounds of memory, time and depth.

A parser of protobuf makes a hundred bytes of two that say "an empty node follows", and copies all
weights. Here numbers of tensors stay views of the file, and a file of more fields or deeper
messages than any network has is refused before anything is made of it.

Ref: protobuf, Encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.frontends.onnx.fields import FIELDS, Field, Scalar

Message = dict[str, Any]
"""Values of the fields that a message has, by name; what may come several times is a list."""

MOST_FIELDS = 4_000_000
MOST_NUMBERS = 1 << 25
"""Integers written with as many bytes as each needs, which take eight times as much in memory."""
MOST_DEPTH = 48
"""Messages in one another; a graph in a graph are three."""

_SIZES = {1: 8, 5: 4}
_CHUNK = 1 << 20


class WireError(Exception):
    """Bytes are no message of the kind that was to be read."""


class _Reader:
    def __init__(self, data: bytes, file: str) -> None:
        self.data = data
        self.view = memoryview(data)
        self.file = file
        self.fields = 0
        self.numbers = 0

    def message(self, at: int, end: int, fields: Mapping[int, Field], depth: int) -> Message:
        if depth > MOST_DEPTH:
            raise _limit(self.file, f"have at most {MOST_DEPTH} messages in one another")
        values: Message = {}
        data = self.data
        while at < end:
            self.fields += 1
            key = data[at]
            at += 1
            if key >= 128:
                key, at = self.varint(at - 1, end)
            field = fields.get(key >> 3)
            wire = key & 7
            if wire == 2:
                size, at = self.varint(at, end)
                if size > end - at:
                    raise WireError(f"a field of {size} bytes at byte {at} ends outside")
                if field is not None:
                    self.sized(values, field, at, at + size, depth)
                at += size
            else:
                at = self.number(values, field, wire, at, end)
        if self.fields > MOST_FIELDS:
            raise _limit(self.file, f"have at most {MOST_FIELDS:,} fields")
        return values

    def varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        data = self.data
        while at < end and shift < 70:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & 0xFFFF_FFFF_FFFF_FFFF, at
            shift += 7
        raise WireError(f"a number at byte {at} has no end")

    def sized(self, values: Message, field: Field, at: int, end: int, depth: int) -> None:
        kind = field.kind
        match kind:
            case str():
                value = self.message(at, end, FIELDS[kind], depth + 1)
                if not field.many and field.name in values:
                    value = values[field.name] | value
            case Scalar.TEXT:
                value = self.text(at, end)
            case Scalar.BYTES:
                value = self.view[at:end]
            case _:
                if not field.many:
                    raise WireError(f"{field.name} at byte {at} is no number")
                value = self.packed(kind, at, end)
        if field.many:
            values.setdefault(field.name, []).append(value)
        else:
            values[field.name] = value

    def text(self, at: int, end: int) -> str:
        try:
            return str(self.view[at:end], "utf-8")
        except UnicodeDecodeError:
            raise WireError(f"a text at byte {at} is no UTF-8") from None

    def number(self, values: Message, field: Field | None, wire: int, at: int, end: int) -> int:
        """Take a field that is written as a number; the place after it."""
        if wire == 0:
            value, after = self.varint(at, end)
        elif wire in _SIZES and at + _SIZES[wire] <= end:
            value, after = 0, at + _SIZES[wire]
        else:
            raise WireError(f"a field at byte {at} is of no kind")
        if field is None:
            return after
        match field.kind, wire:
            case Scalar.INT, 0:
                number = value - (1 << 64) if value >> 63 else value
            case Scalar.UNSIGNED, 0:
                number = value
            case Scalar.FLOAT, 5:
                (number,) = struct.unpack_from("<f", self.data, at)
            case Scalar.DOUBLE, 1:
                (number,) = struct.unpack_from("<d", self.data, at)
            case _:
                raise WireError(f"{field.name} at byte {at} is written as something else")
        if field.many:
            values.setdefault(field.name, []).append(number)
        else:
            values[field.name] = number
        return after

    def packed(self, kind: Scalar, at: int, end: int) -> npt.NDArray[Any]:
        """Numbers one after another; those of a fixed size stay a view of the file."""
        if kind in (Scalar.FLOAT, Scalar.DOUBLE):
            size = 4 if kind is Scalar.FLOAT else 8
            if (end - at) % size:
                raise WireError(f"numbers at byte {at} end within one")
            return np.frombuffer(self.data, f"<f{size}", (end - at) // size, at)
        every = np.frombuffer(self.data, np.uint8, end - at, at)
        count = int(np.count_nonzero(every < 128))
        self.numbers += count
        if self.numbers > MOST_NUMBERS:
            raise _limit(self.file, f"have at most {MOST_NUMBERS:,} integers outside of raw data")
        if len(every) and every[-1] >= 128:
            raise WireError(f"a number before byte {end} has no end")
        result = np.empty(count, np.uint64)
        done = start = 0
        while start < len(every):
            part = every[start : start + _CHUNK]
            ends = np.flatnonzero(part < 128)
            if not len(ends):
                raise WireError(f"a number at byte {at + start} has no end")
            result[done : done + len(ends)] = _integers(part, ends, at + start)
            done += len(ends)
            start += int(ends[-1]) + 1
        return result.view(np.int64) if kind is Scalar.INT else result


def _integers(part: npt.NDArray[np.uint8], ends: npt.NDArray[Any], at: int) -> npt.NDArray[Any]:
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    most = int(lengths.max())
    if most > 10:
        raise WireError(f"a number after byte {at} has no end")
    values = np.zeros(len(ends), np.uint64)
    for place in range(most):
        longer = lengths > place
        bits = part[starts[longer] + place].astype(np.uint64) & np.uint64(127)
        values[longer] |= bits << np.uint64(7 * place)
    return values


def _limit(file: str, rule: str) -> Exception:
    return fail("E192", f"{file} must {rule}, and has more", help="a network has far fewer")


def parse(data: bytes, file: str, kind: str = "ModelProto") -> Message:
    """Read a file's bytes as a message.

    Raises E190 where they are none, E192 where it has more parts than any network has.
    """
    try:
        return _Reader(data, file).message(0, len(data), FIELDS[kind], 0)
    except WireError as error:
        raise fail(
            "E190",
            f"{file} must be an ONNX file, and {error}",
            help="export the network anew; the file is damaged or of another format",
        ) from None
