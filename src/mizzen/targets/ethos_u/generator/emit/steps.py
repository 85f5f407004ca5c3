"""What the stream does, with all addresses: kernel operations and transfers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.emit.bytesets import ByteSet, Part, Span, run, whole
from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.operations import (
    Blocking,
    Computation,
    Convolution,
    Elementwise,
    Kernel,
    Pooling,
    Scalar,
    Shape,
)
from mizzen.targets.ethos_u.generator.shared_buffer import SLOT_BYTES, TABLE_SLOTS, Parts
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, UpscaleMode

INTERNAL = -1
"""Stands for the NPU's own memory among the regions; tables count from slot 0."""
ALL_TABLES = run(0, TABLE_SLOTS * SLOT_BYTES)
NO_BYTES = run(0, 0)

Access = tuple[int, ByteSet]
"""A region, and bytes of it."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes that a core reads: scale records, or weights."""

    region: int
    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class CoreConstants:
    """Constants of one core."""

    weights: Stream
    scales: Stream


@dataclass(frozen=True)
class KernelStep:
    """An operation on some channels, with its maps in memory.

    index      of the operation in the sequence
    job_depth  channels of the input that one job reads; None for those of the output's block
    ifm2       a map, a number, or None where there is one operand
    table      slot of the lookup table; None without
    clobbers   whether it has accumulators where tables were
    """

    index: int
    channels: tuple[int, int] | None
    operation: Computation
    blocking: Blocking
    parts: Parts
    ofm: Located
    ifm: Located
    ifm2: Located | Scalar | None
    job_depth: int | None
    constants: tuple[CoreConstants, ...]
    table: int | None
    clobbers: bool

    @property
    def origin(self) -> Origin:
        """Where the operation comes from in the user's model."""
        return self.operation.origin

    @property
    def maps(self) -> tuple[Located, ...]:
        """The feature maps that it reads."""
        return (self.ifm, self.ifm2) if isinstance(self.ifm2, Located) else (self.ifm,)

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What it reads."""
        accesses = [(map_.region, whole(map_)) for map_ in self.maps]
        for core in self.constants:
            for stream in (core.weights, core.scales):
                accesses.append((stream.region, run(stream.offset_bytes, stream.length_bytes)))
        if self.table is not None:
            accesses.append((INTERNAL, self.table_bytes))
        return tuple(accesses)

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What it writes, tables among it where it overwrites them."""
        output = (self.ofm.region, whole(self.ofm))
        return (output, (INTERNAL, ALL_TABLES)) if self.clobbers else (output,)

    @property
    def table_bytes(self) -> ByteSet:
        """Its table in the NPU's own memory."""
        table = self.operation.activation.table
        if self.table is None or table is None:
            return NO_BYTES
        return run(SLOT_BYTES * self.table, len(table.data))

    def needed(self, number: int, box: Part) -> Part:
        """Return what a block of the output needs of an input: of `ifm` if `number` is 0."""
        operation = self.operation
        if isinstance(operation, Elementwise):
            return _pointwise(box, self.maps[number].shape)
        factor = 1 if operation.upscale is UpscaleMode.NONE else 2
        tall, wide = _window(operation.kernel, factor, box, self.ifm.shape)
        return tall, wide, ((0, self.ifm.shape[2]) if self.needs_all else box[2])

    @property
    def is_point_by_point(self) -> bool:
        """Whether each element of the output needs the one at its place of inputs as large."""
        operation = self.operation
        if isinstance(operation, Elementwise):
            return True
        kernel = operation.kernel
        is_point = (kernel.dilated_height, kernel.dilated_width) == (1, 1)
        by_one = (kernel.stride_y, kernel.stride_x) == (1, 1) and not any(kernel.pads)
        plain = operation.upscale is UpscaleMode.NONE
        return is_point and by_one and plain and not self.needs_all

    @property
    def needs_all(self) -> bool:
        """Whether each output channel needs every channel of the input."""
        operation = self.operation
        if isinstance(operation, Pooling):
            return operation.mode is PoolingMode.REDUCE_SUM
        return isinstance(operation, Convolution) and not operation.depthwise


def _pointwise(box: Part, shape: Shape) -> Part:
    tall, wide, deep = (
        (0, 1) if size == 1 else (low, min(high, size))
        for (low, high), size in zip(box, shape, strict=True)
    )
    return tall, wide, deep


def _window(kernel: Kernel, factor: int, box: Part, shape: Shape) -> tuple[Span, Span]:
    """Return the rows and columns under the kernel, within the map."""
    (top, bottom), (left, right), _ = box
    tall = _covered(
        (top, bottom), kernel.stride_y, kernel.dilated_height, kernel.pad_top, factor, shape[0]
    )
    wide = _covered(
        (left, right), kernel.stride_x, kernel.dilated_width, kernel.pad_left, factor, shape[1]
    )
    return tall, wide


def _covered(outputs: Span, stride: int, extent: int, pad: int, factor: int, size: int) -> Span:
    low = outputs[0] * stride - pad
    high = (outputs[1] - 1) * stride + extent - pad
    return max(0, low // factor), min(size, -(-high // factor))


class Purpose(Enum):
    """What a transfer is for; the value is the word for people."""

    WEIGHTS = "weights"
    TABLE = "table"
    COPY = "copy"


@dataclass(frozen=True)
class TransferStep:
    """A transfer of bytes."""

    purpose: Purpose
    origin: Origin
    source: Stream
    destination: Stream

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What it reads."""
        return (_access(self.source),)

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What it writes."""
        return (_access(self.destination),)


def _access(stream: Stream) -> Access:
    return stream.region, run(stream.offset_bytes, stream.length_bytes)


Step = KernelStep | TransferStep
