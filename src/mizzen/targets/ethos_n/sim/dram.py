"""Which bytes of DRAM hold what, command by command: every access is checked before any run.

For each byte that a program writes it is known which buffer it was last written through. A read
through a buffer of bytes that another one has overwritten since, or that nothing wrote, is a fault
of the stream, never a wrong number.

How a tensor lies in memory: DRAM buffers as the binding table has them, tensors in SRAM.

Buffers of inputs and of outputs are apart; intermediates share one block, as the allocator places
them, so that two that overlap overwrite each other. Constants are shared by the whole batch.

NHWCB: groups of 8 x 8 x 16 elements (H, W, C), their order Y, X, C. In a group four bricks of
4 x 4 x 16, first down, then across; in a brick the channels, of each its 4 x 4 elements by rows.

FCAF is compressed by the hardware in a way that is not public. A buffer of it has the full size,
and holds here what NHWCB would; that is smaller, so it fits.

Ref: Ethos-N driver stack 23.02 and 25.03, `Utils.hpp` (`TotalSizeBytesNHWCB`,
`TotalSizeBytesFCAF`), `Capabilities` (brick group, patch).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import DataTypeCode, Format, Location, TensorRecord
from mizzen.targets.ethos_n.program import Buffer, BufferKind, Program
from mizzen.targets.ethos_n.sim.geometry import Port

Array = npt.NDArray[Any]

INTERMEDIATES = -1
"""The block that all intermediates lie in, among the blocks that else have their buffer's id."""
CONSTANT_KINDS = (BufferKind.CONSTANT_DMA, BufferKind.CONSTANT_CONTROL_UNIT)


@dataclass(frozen=True, slots=True)
class BlockSlice:
    """Where a buffer lies: its block, and the bytes in it."""

    block: int
    offset: int
    size: int


def place_of(buffer: Buffer) -> BlockSlice:
    """Return where a buffer lies; offsets of inputs and outputs are the caller's affair."""
    if buffer.kind is BufferKind.INTERMEDIATE:
        return BlockSlice(INTERMEDIATES, buffer.offset, buffer.size)
    return BlockSlice(buffer.id, 0, buffer.size)


def block_sizes(program: Program) -> dict[int, int]:
    """Return the bytes of each block that is not constant."""
    sizes: dict[int, int] = {}
    for buffer in program.buffers.values():
        if buffer.kind not in CONSTANT_KINDS:
            place = place_of(buffer)
            sizes[place.block] = max(sizes.get(place.block, 0), place.offset + place.size)
    return sizes


class Memory:
    """The memory of `batch` images; every access was checked when the program was planned."""

    def __init__(self, batch: int, program: Program) -> None:
        self.batch = batch
        self._program = program
        self._blocks = {
            block: np.zeros((batch, size), np.uint8) for block, size in block_sizes(program).items()
        }
        self._sram: dict[int, Array] = {}

    def bytes(self, buffer_id: int) -> npt.NDArray[np.uint8]:
        """Return a buffer as `[batch, size]`, a view."""
        buffer = self._program.buffers[buffer_id]
        if buffer.kind in CONSTANT_KINDS:
            contents = np.frombuffer(self._program.constant(buffer_id), np.uint8)
            return np.broadcast_to(contents, (self.batch, len(contents)))
        place = place_of(buffer)
        return self._blocks[place.block][:, place.offset : place.offset + place.size]

    def load(self, record: TensorRecord) -> Array:
        """Return a tensor as `[batch, H, W, C]`; it may be a view of memory, so do not write."""
        if record.location is Location.SRAM:
            return self._sram[record.sram_offset_bytes]
        return read(self.bytes(record.dram_buffer_id), record)

    def store(self, record: TensorRecord, values: Array) -> None:
        """Put a tensor, `[batch, H, W, C]`, where its record says."""
        if record.location is Location.SRAM:
            self._sram[record.sram_offset_bytes] = values
        else:
            write(self.bytes(record.dram_buffer_id), record, values)


GROUP = (8, 8, 16)
"""Extents of a brick group along H, W, C."""
BRICK = 4
"""Extent of a brick along H and W."""
FCAF_CELL_BYTES = 2112
"""Bytes of a compressed cell: its elements, and what an incompressible one needs besides."""
DTYPES: dict[DataTypeCode, np.dtype[Any]] = {
    DataTypeCode.U8: np.dtype(np.uint8),
    DataTypeCode.S8: np.dtype(np.int8),
}


@dataclass(frozen=True, slots=True)
class FormatRow:
    """A layout: the cells that a transfer moves as a whole (H, W, C), and the bytes of each.

    cell_bytes  of a compressed cell; None where a byte is an element
    """

    cell: tuple[int, int, int]
    bricks: bool
    cell_bytes: int | None = None


FORMATS: dict[Format, FormatRow] = {
    Format.NHWC: FormatRow((1, 1, 1), bricks=False),
    Format.NCHW: FormatRow((1, 1, 1), bricks=False),
    Format.NHWCB: FormatRow(GROUP, bricks=True),
    Format.FCAF_DEEP: FormatRow((8, 8, 32), bricks=True, cell_bytes=FCAF_CELL_BYTES),
    Format.FCAF_WIDE: FormatRow((8, 16, 16), bricks=True, cell_bytes=FCAF_CELL_BYTES),
}
"""The layouts of feature maps; NHWCB_COMPRESSED is of an older machine."""


def is_compressed(format_: Format) -> bool:
    """Tell whether only the same layout reads what was written in this one."""
    form = FORMATS.get(format_)
    return form is not None and form.cell_bytes is not None


def required_bytes(record: TensorRecord) -> int:
    """Return the bytes of the whole tensor (the supertensor) in its layout."""
    form = FORMATS[record.format]
    cells = [-(-n // c) for n, c in zip(record.supertensor_shape[1:], form.cell, strict=True)]
    return math.prod(cells) * (form.cell_bytes or math.prod(form.cell))


def cells_view(buffer: Array, record: TensorRecord) -> Array:
    """View the elements of a tensor in a buffer `[n, bytes]`, whole brick groups of it.

    `[n, H, W, C]`, or `[n, H/8, W/8, C/16, 2 across, 2 down, 16, 4, 4]` where there are bricks.
    """
    images = len(buffer)
    _, height, width, depth = record.supertensor_shape
    starts = record.supertensor_offset[1:]
    parts = [slice(a, a + n) for a, n in zip(starts, record.shape[1:], strict=True)]
    if FORMATS[record.format].bricks:
        counts = [-(-n // c) for n, c in zip((height, width, depth), GROUP, strict=True)]
        shape = (images, *counts, 2, 2, GROUP[2], BRICK, BRICK)
        groups = tuple(_grouped(part, c) for part, c in zip(parts, GROUP, strict=True))
        return buffer[:, : math.prod(shape[1:])].reshape(shape)[:, *groups]
    payload = buffer[:, : height * width * depth]
    if record.format is Format.NCHW:
        whole = payload.reshape(images, depth, height, width).transpose(0, 2, 3, 1)
    else:
        whole = payload.reshape(images, height, width, depth)
    return whole[:, *parts]


def _grouped(part: slice, extent: int) -> slice:
    return slice(part.start // extent, -(-part.stop // extent))


# [n, gy, gx, gc, bx, by, c, y, x] -> [n, gy, by, y, gx, bx, x, gc, c], and back.
_TO_DENSE = (0, 1, 5, 7, 2, 4, 8, 3, 6)
_TO_BRICKS = tuple(int(axis) for axis in np.argsort(_TO_DENSE))


def read(buffer: Array, record: TensorRecord) -> Array:
    """Return a tensor in a buffer, uint8 `[n, bytes]`, as `[n, H, W, C]`; it may be a view."""
    cells = cells_view(buffer, record)
    _, height, width, depth = record.shape
    if FORMATS[record.format].bricks:
        n, gy, gx, gc = cells.shape[:4]
        dense = cells.transpose(_TO_DENSE).reshape(n, 8 * gy, 8 * gx, 16 * gc)
        cells = dense[:, :height, :width, :depth]
    return cells.view(DTYPES[record.data_type])


def write(buffer: Array, record: TensorRecord, values: Array) -> None:
    """Put a tensor, `[n, H, W, C]`, into a buffer, uint8 `[n, bytes]`.

    What its brick groups have beyond the tensor becomes zero.
    """
    cells = cells_view(buffer, record)
    raw = values.view(np.uint8)
    if not FORMATS[record.format].bricks:
        cells[...] = raw
        return
    n, gy, gx, gc = cells.shape[:4]
    _, height, width, depth = record.shape
    whole = (n, 8 * gy, 8 * gx, 16 * gc)
    if raw.shape != whole:
        padded = np.zeros(whole, np.uint8)
        padded[:, :height, :width, :depth] = raw
        raw = padded
    cells[...] = raw.reshape(n, gy, 2, 4, gx, 2, 4, gc, 16).transpose(_TO_BRICKS)


def flattened(values: Array, count: int) -> Array:
    """Return the first `count` elements `[n, count]` of `[n, H, W, C]` in the order of NHWCB."""
    n, height, width, depth = values.shape
    groups = [-(-extent // c) for extent, c in zip((height, width, depth), GROUP, strict=True)]
    gy, gx, gc = groups
    padded = np.zeros((n, 8 * gy, 8 * gx, 16 * gc), values.dtype)
    padded[:, :height, :width, :depth] = values
    bricks = padded.reshape(n, gy, 2, 4, gx, 2, 4, gc, 16).transpose(_TO_BRICKS)
    return bricks.reshape(n, -1)[:, :count]


Owners = npt.NDArray[np.int32]

NOBODY = -1
GROUP_BYTES = math.prod(GROUP)
LARGEST_BYTES = 1 << 30
"""Memory per image beyond which a program is not simulated."""


class DramTracker:
    """Follows the contents of DRAM while a program is planned."""

    def __init__(self, program: Program) -> None:
        sizes = block_sizes(program)
        if sum(sizes.values()) > LARGEST_BYTES:
            raise fail(
                "E968",
                f"a program's buffers must have at most {LARGEST_BYTES} bytes to be executed "
                f"here, not {sum(sizes.values())}",
            )
        self._buffers = program.buffers
        self._owners = {
            block: np.full((1, size), NOBODY, np.int32) for block, size in sizes.items()
        }
        self.needed: dict[int, int] = {}
        """Bytes of each input buffer, from its start, that any command may read."""
        self._layouts: dict[int, TensorRecord] = {}
        """The tensor last written to a buffer in a compressed layout."""
        self._written: dict[int, int] = {}
        """Bytes of each buffer, from its start, that the tensors written to it have."""

    def read(self, port: Port) -> None:
        """Check that a tensor can be read; E950 to E955 if not."""
        buffer = self._checked(port)
        if buffer.kind in (BufferKind.INPUT, *CONSTANT_KINDS):
            self._need(buffer, required_bytes(port.record))
            return
        seen = cells_view(self._owned(buffer), port.record)
        self._require_owner(port, buffer, seen)
        self._require_layout(port)

    def read_bytes(self, port: Port, count: int) -> None:
        """Check that the first `count` bytes of a tensor's buffer can be read, in any layout."""
        buffer = self._found(port)
        if count > buffer.size:
            raise port.fault(
                "E950", f"must lie in buffer {buffer.id} of {buffer.size} bytes, and needs {count}"
            )
        if buffer.kind in (BufferKind.INPUT, *CONSTANT_KINDS):
            self._need(buffer, count)
            return
        self._require_owner(port, buffer, self._owned(buffer)[:, :count])
        self._require_layout(port)

    def write(self, port: Port) -> None:
        """Note that a tensor is written; E950, E951, E954, E955 if it cannot be."""
        buffer = self._checked(port)
        record = port.record
        if buffer.kind not in (BufferKind.OUTPUT, BufferKind.INTERMEDIATE):
            raise port.fault(
                "E951", f"must be an output or an intermediate, and buffer {buffer.id} is among "
                f"the {buffer.kind.value}"
            )  # fmt: skip
        cells_view(self._owned(buffer), record)[...] = buffer.id
        self._written[buffer.id] = max(required_bytes(record), self._written.get(buffer.id, 0))
        if is_compressed(record.format):
            self._layouts[buffer.id] = record
        else:
            self._layouts.pop(buffer.id, None)

    def require_outputs(self) -> None:
        """Check at the end that each byte of each output was written; E967 if not.

        What is also read as bricks has a buffer of whole brick groups, the last not all written.
        """
        for buffer in self._buffers.values():
            if buffer.kind is BufferKind.OUTPUT:
                written = self._written.get(buffer.id, 0)
                is_filled_up = -(-written // GROUP_BYTES) * GROUP_BYTES == buffer.size
                wanted = self._owned(buffer)[:, : written if is_filled_up else buffer.size]
                missing = int((wanted != buffer.id).sum())
                if missing:
                    raise fail(
                        "E967",
                        f"every byte of output buffer {buffer.id} must be written, {missing} of "
                        f"{buffer.size} are not",
                    )

    def _need(self, buffer: Buffer, count: int) -> None:
        self.needed[buffer.id] = max(count, self.needed.get(buffer.id, 0))

    def _found(self, port: Port) -> Buffer:
        buffer = self._buffers.get(port.record.dram_buffer_id)
        if buffer is None:
            raise port.fault(
                "E950",
                f"must be in a buffer of the table, which has {len(self._buffers)}, not in buffer "
                f"{port.record.dram_buffer_id}",
            )
        return buffer

    def _checked(self, port: Port) -> Buffer:
        buffer = self._found(port)
        record = port.record
        _require_whole_cells(port)
        needed = required_bytes(record)
        if needed > buffer.size:
            raise port.fault(
                "E950",
                f"must lie in buffer {buffer.id} of {buffer.size} bytes, and needs {needed}",
                help="the command stream is damaged or belongs to another container",
            )
        return buffer

    def _owned(self, buffer: Buffer) -> Owners:
        place = place_of(buffer)
        return self._owners[place.block][:, place.offset : place.offset + place.size]

    def _require_layout(self, port: Port) -> None:
        """A compressed tensor is read only as it was written, and nothing else as compressed."""
        record = port.record
        written = self._layouts.get(record.dram_buffer_id)
        came = None if written is None else (written.format, written.supertensor_shape)
        is_same = came == (record.format, record.supertensor_shape)
        if (written is None and is_compressed(record.format)) or (written and not is_same):
            held = "uncompressed data" if written is None else _spoken(written)
            raise port.fault(
                "E953", f"must be read as it was compressed: it is {_spoken(record)}, and buffer "
                f"{record.dram_buffer_id} holds {held}"
            )  # fmt: skip

    def _require_owner(self, port: Port, buffer: Buffer, seen: npt.NDArray[Any]) -> None:
        wrong = seen != buffer.id
        if wrong.any():
            other = int(seen[wrong][0])
            came = "nothing wrote" if other == NOBODY else f"buffer {other} overwrote since"
            raise port.fault(
                "E952",
                f"must read what was written to buffer {buffer.id}, and reads {int(wrong.sum())} "
                f"bytes that {came}",
            )


def _spoken(record: TensorRecord) -> str:
    return f"{record.format.name} of {'x'.join(map(str, record.supertensor_shape))}"


def _require_whole_cells(port: Port) -> None:
    """E954 unless the tensor is a part of its supertensor that can be transferred."""
    record = port.record
    if record.format not in FORMATS:
        names = ", ".join(form.name for form in FORMATS)
        raise port.fault("E954", f"must be in one of {names}, not {record.format.name}")
    if record.shape[0] != 1 or record.supertensor_shape[0] != 1:
        raise port.fault("E955", f"must have N 1, not {record.shape[0]}")
    axes = zip(
        "NHWC",
        (1, *_cell(record.format)),
        record.shape,
        record.supertensor_offset,
        record.supertensor_shape,
        strict=True,
    )
    for axis, cell, extent, offset, whole in axes:
        if extent == 0 or offset + extent > whole:
            raise port.fault(
                "E955",
                f"must be a part of its supertensor, which has {axis} {whole}, not "
                f"{offset}..{offset + extent}",
            )
        if offset % cell or (extent % cell and offset + extent != whole):
            raise port.fault(
                "E954",
                f"must be whole cells of {cell} along {axis} in {record.format.name}, not "
                f"{offset}..{offset + extent}",
            )


def _cell(format_: Format) -> tuple[int, int, int]:
    return FORMATS[format_].cell
