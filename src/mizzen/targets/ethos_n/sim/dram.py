"""Which bytes of DRAM hold what, command by command: every access is checked before any run.

For each byte that a program writes it is known which buffer it was last written through. A read
through a buffer of bytes that another one has overwritten since, or that nobody wrote, is a fault
of the stream, never a wrong number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Format, TensorRecord
from mizzen.targets.ethos_n.program import Buffer, BufferKind, Program
from mizzen.targets.ethos_n.sim.formats import (
    CONSTANT_KINDS,
    FORMATS,
    GROUP,
    block_sizes,
    cells_view,
    is_compressed,
    place_of,
    required_bytes,
)
from mizzen.targets.ethos_n.sim.geometry import Port

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
            said = "not compressed" if written is None else _spoken(written)
            raise port.fault(
                "E953", f"must be read as it was compressed: it is {_spoken(record)}, and buffer "
                f"{record.dram_buffer_id} holds what is {said}"
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
        names = ", ".join(row.name for row in FORMATS)
        raise port.fault("E954", f"must be in one of {names}, not {record.format.name}")
    if record.shape[0] != 1 or record.supertensor_shape[0] != 1:
        raise port.fault("E955", f"must have N 1, not {record.shape[0]}")
    rows = zip(
        "NHWC",
        (1, *_cell(record.format)),
        record.shape,
        record.supertensor_offset,
        record.supertensor_shape,
        strict=True,
    )
    for axis, cell, extent, offset, whole in rows:
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
