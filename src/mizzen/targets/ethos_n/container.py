"""The container "ENCN" that holds a compiled network: constants, command stream, buffers.

Little-endian. The tag "ENCN", the version as three 32-bit words, two blocks of constants (length,
bytes), and five lists of buffers (count; of each: id, offset, size). Version 2.0 adds a name to
each buffer (length, UTF-8).

Ref: Ethos-N driver stack 23.02 and 25.03, `CompiledNetworkImpl::Serialize`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from mizzen.diagnostics import fail

TAG = b"ENCN"
NAMED_SINCE = 2
"""Major version from which on buffers have names."""


class Version(IntEnum):
    """The versions that are known, by their major number; the others are 0."""

    V1_0 = 1
    V2_0 = 2


@dataclass(frozen=True, slots=True)
class BufferInfo:
    """A buffer in DRAM: its index in the binding table, its place in its block, in bytes.

    name  for people, of version 2.0 only
    """

    id: int
    offset: int
    size: int
    name: str = ""


Buffers = tuple[BufferInfo, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """A compiled network as it is stored.

    constant_dma           what the NPU's DMA reads: weights
    constant_control_unit  what the control unit reads: the command stream, places of weight stripes
    inputs, ...            the buffers of each kind; offsets of constants count in their block,
                           those of inputs, outputs and intermediates in the memory for all of a
                           kind
    """

    version: Version
    constant_dma: bytes
    constant_control_unit: bytes
    inputs: Buffers
    outputs: Buffers
    constants_control_unit: Buffers
    constants_dma: Buffers
    intermediates: Buffers


def read(data: bytes) -> Container:
    """Read a container.

    E920 for bytes that are none or of an unknown version, E921 where they end too early, E922 for
    bytes after the end, E923 for a name that is no UTF-8.
    """
    version = _version(data)
    reader = _Reader(data, len(TAG) + 12)
    blocks = reader.block("the constants for the DMA"), reader.block("those for the control unit")
    lists = [reader.buffers(kind, version) for kind in _KINDS]
    reader.require_end()
    return Container(version, *blocks, *lists)


def write(container: Container) -> bytes:
    """Return the container's bytes; E924 for a number that is not one of 32 bits without sign."""
    version = container.version
    parts = [TAG, struct.pack("<3I", version.value, 0, 0)]
    for block in (container.constant_dma, container.constant_control_unit):
        parts += [struct.pack("<I", len(block)), block]
    for kind in _KINDS:
        buffers: Buffers = getattr(container, kind)
        parts.append(struct.pack("<I", len(buffers)))
        parts += [_entry(buffer, version) for buffer in buffers]
    return b"".join(parts)


_KINDS = ("inputs", "outputs", "constants_control_unit", "constants_dma", "intermediates")


def _version(data: bytes) -> Version:
    said = f"has {len(data)} bytes"
    if len(data) >= len(TAG) + 12:
        major, minor, patch = struct.unpack_from("<3I", data, len(TAG))
        said = f"starts with {data[:4].hex(' ')} and version {major}.{minor}.{patch}"
        known = {version.value: version for version in Version}
        if data[:4] == TAG and major in known and minor == patch == 0:
            return known[major]
    raise fail(
        "E920",
        f"a compiled network must start with {TAG.decode()} and version 1.0.0 or 2.0.0; "
        f"this {said}",
        help="Mizzen reads networks of driver stack 23.02 and 25.03",
    )


def _entry(buffer: BufferInfo, version: Version) -> bytes:
    numbers = (buffer.id, buffer.offset, buffer.size)
    if any(not 0 <= number < 1 << 32 for number in numbers):
        raise fail("E924", f"buffer {buffer.id} must have numbers of 32 bits, not {numbers}")
    entry = struct.pack("<3I", *numbers)
    if version.value < NAMED_SINCE:
        return entry
    name = buffer.name.encode("utf-8")
    return entry + struct.pack("<I", len(name)) + name


class _Reader:
    """Takes parts of the bytes from front to back."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, count: int, what: str) -> bytes:
        if self._at + count > len(self._data):
            raise fail(
                "E921",
                f"{what} must have {count} bytes from byte {self._at} on, but the container ends "
                f"after {len(self._data)}",
            )
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "little")

    def block(self, what: str) -> bytes:
        return self.take(self.number(f"the length of {what}"), what)

    def buffers(self, kind: str, version: Version) -> Buffers:
        what = kind.replace("_", " ")
        count = self.number(f"the number of {what}")
        return tuple(self._buffer(f"{what}, {place}", version) for place in range(count))

    def _buffer(self, what: str, version: Version) -> BufferInfo:
        numbers = struct.unpack("<3I", self.take(12, what))
        if version.value < NAMED_SINCE:
            return BufferInfo(*numbers)
        name = self.block(f"the name of {what}")
        try:
            return BufferInfo(*numbers, name.decode("utf-8"))
        except UnicodeDecodeError:
            raise fail("E923", f"the name of {what} must be UTF-8, not {name.hex(' ')}") from None

    def require_end(self) -> None:
        if rest := len(self._data) - self._at:
            raise fail("E922", f"a container must end after its buffers, {rest} bytes follow")
