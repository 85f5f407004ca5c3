"""Networks among other bytes: where one starts, what it is, where it ends.

A network is found by its file's identifier, and counts as one only where all of it can be read: the
same letters occur in code that handles such files. So does a payload of Arm's driver, the command
stream of an NPU operator, which some tools write without a file around it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import MizzenError, fail
from mizzen.embedded import records
from mizzen.embedded.arrays import byte_arrays, is_source
from mizzen.embedded.conventions import constants_name
from mizzen.embedded.elf import MAGIC, symbols
from mizzen.flatbuffer import bpte, pte, tflite
from mizzen.flatbuffer.reader import extent
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import BY_CONFIG_WORD, accelerator_of

IMAGE_ENDINGS = (".bin", ".img", ".elf", ".axf", ".out", ".o", ".a", ".mcuboot", *records.ENDINGS)
LARGEST_FILE_BYTES = 1 << 28
MOST_CANDIDATES = 512
"""Places that are looked at in a file."""

_IDENTIFIER_AT = 4
_ALIGNMENT = 64
_CONFIG_WORDS = 64
"""Words of a driver payload in which the NPU is named."""


class Kind(Enum):
    """What a network is."""

    TFLITE = "TFLite"
    PTE = "ExecuTorch"
    BPTE = "ExecuTorch with examples"
    STREAM = "command stream"


@dataclass(frozen=True, slots=True)
class Payload:
    """A network in a file.

    offset       its first byte in the file, or in the array of a source; its address, where the
                 file says that
    symbol       the array or object that has it; empty where the file has no names
    accelerator  of its first stream; None without one
    constants    of a command stream: what the array of its region 0 is called, and its bytes where
                 the file has it; None where no convention says
    """

    kind: Kind
    offset: int
    symbol: str
    accelerator: str | None
    data: bytes
    constants: tuple[str, bytes | None] | None = None

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "kind": self.kind.value,
            "offset": self.offset,
            "bytes": len(self.data),
            "symbol": self.symbol,
            "accelerator": self.accelerator,
            "constants": None if self.constants is None else self.constants[0],
        }


_SCHEMAS = {Kind.TFLITE: tflite.SCHEMA, Kind.PTE: pte.SCHEMA, Kind.BPTE: bpte.SCHEMA}
_IDENTIFIERS = (
    *((schema.identifier, kind, _IDENTIFIER_AT) for kind, schema in _SCHEMAS.items()),
    *((head, Kind.STREAM, 0) for head in driver.HEADS),
)
"""Letters, what they are of, and how far from its start they stand."""


Named = Callable[[str], bytes | None]
"""Finds the bytes of an array or object by its name."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Bytes in which networks are looked for, the place of the first, and names of some."""

    data: bytes
    start: int
    name_at: Callable[[int], str]


def is_carrier(data: bytes, name: str) -> bool:
    """Whether a file is one in which networks are looked for: a source, an image, a payload."""
    own = data[_IDENTIFIER_AT : _IDENTIFIER_AT + 4]
    if own in {schema.identifier for schema in _SCHEMAS.values()}:
        return False
    begins = data.startswith((MAGIC, *driver.HEADS))
    return is_source(name) or begins or name.lower().endswith(IMAGE_ENDINGS)


def payloads(data: bytes, name: str) -> tuple[Payload, ...]:
    """Return the networks in a source or an image.

    E184 for an image with a damaged record, E698 for a file that is too large.
    """
    if len(data) > LARGEST_FILE_BYTES:
        raise fail(
            "E698",
            f"{name} must have at most {LARGEST_FILE_BYTES} bytes to be searched, not {len(data)}",
            help="cut out the part that has the network",
        )
    places, bytes_of = _places(data, name)
    return tuple(payload for place in places for payload in _inside(place, bytes_of))


def _places(data: bytes, name: str) -> tuple[list[_Place], Named]:
    """Return where networks may be, and what finds the bytes that have a name."""
    if is_source(name):
        arrays = tuple(byte_arrays(data))
        named = {array.name: array.data for array in arrays}
        places = [_Place(array.data, 0, lambda _, its=array.name: its) for array in arrays]
        return places, named.get
    held = records.segments(data, name)
    if held is not None:
        return [_Place(part.data, part.address, lambda _: "") for part in held], lambda _: None
    objects = symbols(data)
    by_name = {item.name: item for item in objects}

    def name_at(at: int) -> str:
        return next((item.name for item in objects if item.start <= at < item.end), "")

    def bytes_of(name: str) -> bytes | None:
        item = by_name.get(name)
        return None if item is None else data[item.start : item.end]

    return [_Place(data, 0, name_at)], bytes_of


def _inside(place: _Place, bytes_of: Named) -> Iterator[Payload]:
    end = 0
    for kind, start in _candidates(place.data):
        if start < end:  # a part of the one before
            continue
        try:
            size = _size(kind, place.data, start)
        except MizzenError:
            continue
        end = start + size
        held, symbol = place.data[start:end], place.name_at(start)
        other = constants_name(symbol) if kind is Kind.STREAM else None
        constants = None if other is None else (other, bytes_of(other))
        yield Payload(kind, place.start + start, symbol, _accelerator(held), held, constants)


def _candidates(data: bytes) -> list[tuple[Kind, int]]:
    places: list[tuple[Kind, int]] = []
    for identifier, kind, before in _IDENTIFIERS:
        at = data.find(identifier, before)
        while at >= 0 and len(places) < MOST_CANDIDATES:
            places.append((kind, at - before))
            at = data.find(identifier, at + 1)
    return sorted(places, key=lambda place: place[1])


def _size(kind: Kind, data: bytes, start: int) -> int:
    """Return how long the network is that starts there. Raises as its reader."""
    if kind is Kind.STREAM:
        seen = memoryview(data)[start:]
        size = driver.size_of(seen)
        accelerator_of(driver.parse(seen[:size]).hardware)
        return size
    rest = data[start:]
    if kind is Kind.PTE:
        return pte.size_of(rest, kind.value)
    size = extent(rest, _SCHEMAS[kind], kind.value)
    return min(len(rest), size + -size % _ALIGNMENT)


def _accelerator(data: bytes) -> str | None:
    """Name the NPU of the first driver payload; what is damaged is told by its reader."""
    for magic in driver.HEADS:
        at = data.find(magic)
        if at < 0:
            continue
        count = min(_CONFIG_WORDS, (len(data) - at) // 4)
        for word in struct.unpack_from(f"<{count}I", data, at):
            if word in BY_CONFIG_WORD:
                return BY_CONFIG_WORD[word].name
    return None
