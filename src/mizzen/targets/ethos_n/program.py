"""A compiled network, ready to list or execute: its commands, and what its buffers are."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n import container as containers
from mizzen.targets.ethos_n.codec import decode
from mizzen.targets.ethos_n.commands import Command, McePle
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.container import BufferInfo, Container

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
            known = sorted(row.id for row in self.buffers.values() if row.kind in _CONSTANT)
            raise fail("E928", f"buffer {buffer_id} must be one of constants, which are {known}")
        return block[buffer.offset : buffer.offset + buffer.size]

    def weight_stripes(self, command: McePle) -> tuple[StripePlace, ...]:
        """Return where the stripes of a pass's weights are in the buffer of its weights.

        E928 for a buffer that holds no constants, E929 for places that are none.
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

    E920 to E924 for a container that is none, E925 to E927 for buffers that cannot be, E930 to
    E932 and E501 to E504 for a stream that is none.
    """
    return program_of(containers.read(data), capabilities)


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
