"""What the stream does, with all addresses: kernel operations and transfers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.emit.bytesets import ByteSet, Part, Span, run, whole
from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    PERMUTATIONS,
    Blocking,
    Computation,
    Convolution,
    Elementwise,
    Kernel,
    Lines,
    MatrixProduct,
    Pooling,
    Resize,
    Scalar,
    Shape,
    Steps,
)
from mizzen.targets.ethos_u.generator.shared_buffer import SLOT_BYTES, TABLE_SLOTS, Parts
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, ReverseU85, UpscaleMode

INTERNAL = -1
"""Stands for the NPU's own memory among the regions; tables count from slot 0. See FIRST_CHAIN."""
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
    parts      of the shared buffer; None on U85, which has none
    ifm2       a map, a number, or None where there is one operand
    job_depth  channels of the input that one job reads; None for those of the output's block
    table      slot of the lookup table; None without
    clobbers   whether it has accumulators where tables were
    fast       whether U85 has its weights in the format that is decoded fast
    sparse     whether of four of them at most two are sent
    """

    index: int
    channels: tuple[int, int] | None
    operation: Computation
    blocking: Blocking
    parts: Parts | None
    microblock: Shape
    ofm: Located
    ifm: Located
    ifm2: Located | Scalar | None
    job_depth: int | None
    constants: tuple[CoreConstants, ...]
    table: int | None
    clobbers: bool
    fast: bool = False
    sparse: bool = False

    @property
    def origin(self) -> Origin:
        """Where the operation comes from in the user's model."""
        return self.operation.origin

    @property
    def links(self) -> tuple[KernelStep, ...]:
        """Itself, as if it was a chain of one."""
        return (self,)

    @property
    def maps(self) -> tuple[Located, ...]:
        """The feature maps that it reads."""
        return (self.ifm, self.ifm2) if isinstance(self.ifm2, Located) else (self.ifm,)

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What it reads."""
        return (*(_access_to(map_) for map_ in self.maps), *self.streams)

    @cached_property
    def streams(self) -> tuple[Access, ...]:
        """What it reads beside feature maps: constants, and a table."""
        streams = (stream for core in self.constants for stream in (core.weights, core.scales))
        accesses = tuple(map(_access, streams))
        return accesses if self.table is None else (*accesses, (INTERNAL, self.table_bytes))

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What it writes, tables among it where it overwrites them."""
        output = _access_to(self.ofm)
        return (output, (INTERNAL, ALL_TABLES)) if self.clobbers else (output,)

    @property
    def table_bytes(self) -> ByteSet:
        """Its table in the NPU's own memory."""
        table = self.operation.activation.table
        if self.table is None or table is None:
            return NO_BYTES
        return run(SLOT_BYTES * self.table, len(table.data))

    @property
    def shape(self) -> Shape:
        """Height, width and depth of what it computes; what is stored may be permuted."""
        return self.operation.order.computed(self.ofm.shape)

    def stored(self, box: Part) -> Part:
        """Return where the output has a part of what is computed."""
        order, spans = self.operation.order, list(box)
        if order.reverse is not ReverseU85.NONE:
            axis = order.reverse - ReverseU85.H
            low, high = spans[axis]
            spans[axis] = self.shape[axis] - high, self.shape[axis] - low
        height, width, depth = (spans[axis] for axis in PERMUTATIONS[order.transpose])
        return height, width, depth

    def needed(self, number: int, box: Part) -> Part:
        """Return what a block of the output needs of an input: of `ifm` if `number` is 0."""
        operation, (height, width, depth) = self.operation, self.maps[number].shape
        match operation:
            case Elementwise():
                return _pointwise(box, self.maps[number].shape)
            case MatrixProduct() if number == 1:
                return (0, height), (0, width), (0, depth)
            case MatrixProduct():
                return box[0], box[1], (0, depth)
            case Resize():
                rows, columns = operation.rows, operation.columns
                return _sampled(rows, box[0], height), _sampled(columns, box[1], width), box[2]
            case Convolution() | Pooling():
                factor = 1 if operation.upscale is UpscaleMode.NONE else 2
                tall, wide = _window(operation.kernel, factor, box, self.ifm.shape)
                return tall, wide, ((0, depth) if self.needs_all else box[2])

    @property
    def is_point_by_point(self) -> bool:
        """Whether each element of the output needs the one at its place of inputs as large."""
        operation = self.operation
        if operation.order != AS_COMPUTED or isinstance(operation, MatrixProduct | Resize):
            return False
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
            # One number on U55 and on U85.
            return operation.mode == PoolingMode.REDUCE_SUM
        is_convolution = isinstance(operation, Convolution) and not operation.depthwise
        return is_convolution or isinstance(operation, MatrixProduct)


@dataclass(frozen=True)
class ChainStep:
    """Operations of a chain, which the kernel queue of U85 has as one."""

    links: tuple[KernelStep, ...]

    @property
    def origin(self) -> Origin:
        """Where its first operation comes from in the user's model."""
        return self.links[0].origin

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What it reads."""
        return tuple(access for link in self.links for access in link.reads)

    @cached_property
    def streams(self) -> tuple[Access, ...]:
        """What it reads beside feature maps."""
        return tuple(access for link in self.links for access in link.streams)

    @property
    def writes(self) -> tuple[Access, ...]:
        """What it writes."""
        return self.links[-1].writes


def _access_to(map_: Located) -> Access:
    return map_.region, NO_BYTES if map_.chain is not None else whole(map_)


def _pointwise(box: Part, shape: Shape) -> Part:
    tall, wide, deep = (
        (0, 1) if size == 1 else (low, min(high, size))
        for (low, high), size in zip(box, shape, strict=True)
    )
    return tall, wide, deep


def _sampled(steps: Steps, outputs: Span, size: int) -> Span:
    """Return the elements between which a part of a resized axis is drawn."""
    low, high = (
        (place * steps.step + steps.offset) // steps.scale for place in (outputs[0], outputs[1] - 1)
    )
    return max(0, min(low, size - 1)), max(0, min(high + 1, size - 1)) + 1


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


@dataclass(frozen=True, slots=True)
class NamedLines:
    """Lines of a transfer of which those of one side are named by indices, which lie somewhere."""

    indices: Stream
    length_bytes: int
    lines: Lines


@dataclass(frozen=True)
class TransferStep:
    """A transfer of bytes.

    source, destination  all bytes that it may touch
    named                the lines that it moves; None for one piece
    """

    purpose: Purpose
    origin: Origin
    source: Stream
    destination: Stream
    named: NamedLines | None = None

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What it reads."""
        source = _access(self.source)
        return (source,) if self.named is None else (source, _access(self.named.indices))

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What it writes."""
        return (_access(self.destination),)


def _access(stream: Stream) -> Access:
    return stream.region, run(stream.offset_bytes, stream.length_bytes)


QueuedStep = KernelStep | ChainStep
Step = QueuedStep | TransferStep
