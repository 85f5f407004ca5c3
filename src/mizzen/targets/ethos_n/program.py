"""A compiled network: the container "ENCN" that holds it, and the program that is read from it.

The container is little-endian. The tag "ENCN", the version as three 32-bit words, two blocks of
constants (length, bytes), and five lists of buffers (count; of each: id, offset, size). Version 2.0
adds a name to each buffer (length, UTF-8). A program is a container with its stream decoded and its
buffers checked, ready to list or execute.

Ref: Ethos-N driver stack 23.02 and 25.03, `CompiledNetworkImpl::Serialize`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands import decode
from mizzen.targets.ethos_n.commands_values import Command, McePle
from mizzen.targets.ethos_n.config import Capabilities

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


def read_container(data: bytes) -> Container:
    """Read a container.

    E920 for bytes that are not one or of an unknown version, E921 where they end too early, E922
    for bytes after the end, E923 for a name that is not UTF-8.
    """
    version = _version(data)
    reader = _Reader(data, len(TAG) + 12)
    blocks = reader.block("the constants for the DMA"), reader.block("those for the control unit")
    lists = [reader.buffers(kind, version) for kind in _KINDS]
    reader.require_end()
    return Container(version, *blocks, *lists)


def write_container(container: Container) -> bytes:
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


COMMAND_STREAM_ID = 0
"""The buffer that holds the command stream."""


class BufferKind(Enum):
    """What a buffer is for; the value is the attribute of `Container` that lists it."""

    INPUT = "inputs"
    OUTPUT = "outputs"
    CONSTANT_CONTROL_UNIT = "constants_control_unit"
    CONSTANT_DMA = "constants_dma"
    INTERMEDIATE = "intermediates"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of the binding table: what it is for, where in its block it lies, in bytes."""

    id: int
    kind: BufferKind
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class StripePlace:
    """Where a stripe of weights is in its buffer, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled network with its stream decoded and its buffers checked.

    capabilities  of the variant that it was compiled for; the container does not say
    buffers       by their ids, which are 0 to the number of buffers less one
    """

    container: Container
    capabilities: Capabilities
    commands: tuple[Command, ...]
    buffers: Mapping[int, Buffer]

    @property
    def stream(self) -> bytes:
        """The command stream."""
        return self.constant(COMMAND_STREAM_ID)

    def of_kind(self, kind: BufferKind) -> tuple[Buffer, ...]:
        """Return the buffers of a kind in the container's order."""
        infos: tuple[BufferInfo, ...] = getattr(self.container, kind.value)
        return tuple(self.buffers[info.id] for info in infos)

    def constant(self, buffer_id: int) -> bytes:
        """Return the contents of a buffer of constants; E928 for another one."""
        buffer = self.buffers.get(buffer_id)
        block = None if buffer is None else _constants(self.container, buffer.kind)
        if buffer is None or block is None:
            known = sorted(each.id for each in self.buffers.values() if each.kind in _CONSTANT)
            raise fail("E928", f"buffer {buffer_id} must be one of constants, which are {known}")
        return block[buffer.offset : buffer.offset + buffer.size]

    def weight_stripes(self, command: McePle) -> tuple[StripePlace, ...]:
        """Return where the stripes of a pass's weights are in the buffer of its weights.

        E928 for a buffer that holds no constants, E929 for places that are not in it.
        """
        data = self.constant(command.weight_metadata_buffer_id)
        size = len(self.constant(command.weights.dram_buffer_id))
        name = f"buffer {command.weight_metadata_buffer_id}"
        if len(data) % 8:
            raise fail("E929", f"{name} must hold places of 8 bytes each, not {len(data)} bytes")
        places = tuple(StripePlace(*pair) for pair in struct.iter_unpack("<2I", data))
        for place in places:
            if place.offset + place.size > size:
                raise fail(
                    "E929",
                    f"{name} must name stripes within the {size} bytes of buffer "
                    f"{command.weights.dram_buffer_id}, not "
                    f"{place.offset}..{place.offset + place.size}",
                )
        return places


_CONSTANT = (BufferKind.CONSTANT_CONTROL_UNIT, BufferKind.CONSTANT_DMA)


def read_program(data: bytes, capabilities: Capabilities) -> Program:
    """Read a container, decode its stream and check its buffers.

    E920 to E924 for bytes that are not a container, E925 to E927 for buffers that cannot be, E930
    to E932 and E501 to E504 for bytes that are not a stream.
    """
    return program_of(read_container(data), capabilities)


def program_of(container: Container, capabilities: Capabilities) -> Program:
    """Decode the stream of a container and check its buffers; errors as of `read_program`."""
    buffers = _resolve(container)
    first = buffers.get(COMMAND_STREAM_ID)
    if first is None or first.kind is not BufferKind.CONSTANT_CONTROL_UNIT:
        came = "there is no such buffer" if first is None else f"it is among the {first.kind.value}"
        raise fail(
            "E927",
            f"buffer {COMMAND_STREAM_ID} must hold the command stream, among the control unit's "
            f"constants; {came}",
        )
    stream = container.constant_control_unit[first.offset : first.offset + first.size]
    return Program(container, capabilities, tuple(decode(stream)), buffers)


def program_with(
    container: Container, capabilities: Capabilities, commands: tuple[Command, ...]
) -> Program:
    """Return the program of a container whose commands are known, and need not be decoded."""
    return Program(container, capabilities, commands, _resolve(container))


def _listed(container: Container) -> Iterator[Buffer]:
    for kind in BufferKind:
        infos: tuple[BufferInfo, ...] = getattr(container, kind.value)
        for info in infos:
            yield Buffer(info.id, kind, info.offset, info.size)


def _constants(container: Container, kind: BufferKind) -> bytes | None:
    match kind:
        case BufferKind.CONSTANT_CONTROL_UNIT:
            return container.constant_control_unit
        case BufferKind.CONSTANT_DMA:
            return container.constant_dma
        case _:
            return None


def _resolve(container: Container) -> dict[int, Buffer]:
    """Return the buffers by id; E925 unless ids count from 0, E926 for constants out of bounds."""
    buffers = sorted(_listed(container), key=lambda buffer: buffer.id)
    ids = [buffer.id for buffer in buffers]
    if ids != list(range(len(ids))):
        raise fail("E925", f"ids of buffers must count from 0 to {len(ids) - 1}, not be {ids}")
    for buffer in buffers:
        block = _constants(container, buffer.kind)
        if block is not None and buffer.offset + buffer.size > len(block):
            raise fail(
                "E926",
                f"buffer {buffer.id} must lie within the {len(block)} bytes of its constants, not "
                f"at {buffer.offset}..{buffer.offset + buffer.size}",
            )
    return {buffer.id: buffer for buffer in buffers}
