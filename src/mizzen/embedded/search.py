"""Networks among other bytes: where one starts, what it is, where it ends.

A network is found by its file's identifier, and counts as one only where all of it can be read: the
same letters occur in code that handles such files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import MizzenError, fail
from mizzen.embedded.arrays import byte_arrays, is_source
from mizzen.embedded.elf import MAGIC, Symbol, symbols
from mizzen.flatbuffer import bpte, pte, tflite
from mizzen.flatbuffer.reader import extent
from mizzen.targets.ethos_u.machine.program import BY_CONFIG_WORD

IMAGE_ENDINGS = (".bin", ".img", ".elf", ".axf", ".out", ".o", ".a", ".hex", ".mcuboot")
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


@dataclass(frozen=True, slots=True)
class Payload:
    """A network in a file.

    offset       its first byte in the file, or in the array of a source
    symbol       the array or object that has it; empty where the file has no names
    accelerator  of its first stream; None without one
    """

    kind: Kind
    offset: int
    symbol: str
    accelerator: str | None
    data: bytes

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "kind": self.kind.value,
            "offset": self.offset,
            "bytes": len(self.data),
            "symbol": self.symbol,
            "accelerator": self.accelerator,
        }


_SCHEMAS = {Kind.TFLITE: tflite.SCHEMA, Kind.PTE: pte.SCHEMA, Kind.BPTE: bpte.SCHEMA}


def is_carrier(data: bytes, name: str) -> bool:
    """Whether a file is one in which networks are looked for: a source, or an image."""
    own = data[_IDENTIFIER_AT : _IDENTIFIER_AT + 4]
    if own in {schema.identifier for schema in _SCHEMAS.values()}:
        return False
    return is_source(name) or data.startswith(MAGIC) or name.lower().endswith(IMAGE_ENDINGS)


def payloads(data: bytes, name: str) -> tuple[Payload, ...]:
    """Return the networks in a source or an image. E698 for a file that is too large."""
    if len(data) > LARGEST_FILE_BYTES:
        raise fail(
            "E698",
            f"{name} must have at most {LARGEST_FILE_BYTES} bytes to be searched, not {len(data)}",
            help="cut out the part that has the network",
        )
    if is_source(name):
        return tuple(
            payload
            for array in byte_arrays(data)
            for payload in _inside(array.data, lambda _, named=array.name: named)
        )
    objects = symbols(data)
    return tuple(_inside(data, lambda at: _symbol_at(objects, at)))


def _symbol_at(objects: Sequence[Symbol], at: int) -> str:
    return next((item.name for item in objects if item.start <= at < item.end), "")


def _inside(data: bytes, symbol_at: Callable[[int], str]) -> Iterator[Payload]:
    end = 0
    for kind, start in _candidates(data):
        if start < end:  # a part of the one before
            continue
        try:
            size = _size(kind, data[start:])
        except MizzenError:
            continue
        end = start + size
        held = data[start:end]
        yield Payload(kind, start, symbol_at(start), _accelerator(held), held)


def _candidates(data: bytes) -> list[tuple[Kind, int]]:
    places: list[tuple[Kind, int]] = []
    for kind, schema in _SCHEMAS.items():
        at = data.find(schema.identifier, _IDENTIFIER_AT)
        while at >= 0 and len(places) < MOST_CANDIDATES:
            places.append((kind, at - _IDENTIFIER_AT))
            at = data.find(schema.identifier, at + 1)
    return sorted(places, key=lambda place: place[1])


def _size(kind: Kind, data: bytes) -> int:
    """Return how long the network is at whose start `data` begins. Raises as its reader."""
    if kind is Kind.PTE:
        return pte.size_of(data, kind.value)
    size = extent(data, _SCHEMAS[kind], kind.value)
    return min(len(data), size + -size % _ALIGNMENT)


def _accelerator(data: bytes) -> str | None:
    """Name the NPU of the first driver payload; what is damaged is told by its reader."""
    for magic in (b"COP1", b"COP2"):
        at = data.find(magic)
        if at < 0:
            continue
        count = min(_CONFIG_WORDS, (len(data) - at) // 4)
        for word in struct.unpack_from(f"<{count}I", data, at):
            if word in BY_CONFIG_WORD:
                return BY_CONFIG_WORD[word].name
    return None
