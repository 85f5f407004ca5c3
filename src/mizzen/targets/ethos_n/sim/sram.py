"""Which part of SRAM holds which tensor, command by command.

Offsets count bytes in each bank; the channels of a tensor are spread over all banks, so that a tile
takes the same part of each. A tensor that one pass leaves for the next is gone as soon as another
tile touches its part; several inputs of a pass may be that one tensor.

Ref: Ethos-N driver stack 23.02, `SramAllocator.hpp`, `Utils.hpp` (`GetSramOffset`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mizzen.targets.ethos_n.commands_values import Location, PleRecord, TensorRecord
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.sim.geometry import Port, Where
from mizzen.targets.ethos_n.tensors import Shape

BRICK_GROUP_SIDE = 8
PATCH_SIDE = 4
"""A stripe may be as wide as a patch; it takes a brick group's width in SRAM."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of each bank, and what has them."""

    name: str
    start: int
    stop: int

    def meets(self, other: Span) -> bool:
        """Tell whether both have a byte."""
        return self.start < other.stop and other.start < self.stop

    def __str__(self) -> str:
        return f"{self.name} at {self.start}..{self.stop}"


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that a pass left in SRAM, and what has overwritten it, if anything has."""

    record: TensorRecord
    span: Span
    gone: Span | None = None


class SramTracker:
    """Follows the contents of SRAM while a program is planned."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._bank_bytes = capabilities.sram_bytes // capabilities.srams
        self._kept: dict[int, Kept] = {}

    def check_source(self, port: Port) -> Span:
        """Return the part of the banks that an input has; E956 beyond them, E959 for a wrong tile.

        What a pass left in SRAM is as large as it is, whatever the tile that another reads it as,
        and is read as it lies, in whatever stripes.
        """
        self._check_stripe(port)
        if port.record.location is Location.SRAM:
            whole = math.prod(self._rounded(port.record.shape))
            if port.record.tile_bytes < whole:
                raise port.fault(
                    "E959",
                    f"must be in SRAM as a whole, {whole} bytes, and has a tile of "
                    f"{port.record.tile_bytes}",
                )
            return self._span(port, whole)
        return self._span(port, port.record.tile_bytes)

    def check_moved(self, port: Port) -> Span:
        """Return the part of the banks that a tensor has which is moved within SRAM; E956 beyond.

        It is moved at once: the stripe and the tile that are named for it are those of the output.
        """
        return self._span(port, math.prod(self._rounded(port.record.shape)))

    def check_output(self, port: Port) -> Span:
        """Return the part of the banks that an output has; E956 and E959 as of an input.

        What stays in SRAM is written so that it lies there as one stripe would.
        """
        self._check_stripe(port)
        if port.record.location is Location.SRAM:
            self._check_whole(port)
        return self._span(port, port.record.tile_bytes)

    def check_weights(self, port: Port, largest_bytes: int) -> Span:
        """Return the part of the banks that weights have; E959 if a stripe is larger."""
        size = port.record.tile_bytes
        if largest_bytes > size:
            raise port.fault(
                "E959",
                f"must have a tile of at least one stripe, {largest_bytes} bytes, not of {size}",
            )
        return self._span(port, size)

    def _span(self, port: Port, size_bytes: int) -> Span:
        start = port.record.sram_offset_bytes
        stop = start + -(-size_bytes // self._capabilities.srams)
        if stop > self._bank_bytes:
            raise port.fault(
                "E956",
                f"must lie within the {self._bank_bytes} bytes of a bank of SRAM, not at "
                f"{start}..{stop}",
            )
        return Span(port.role, start, stop)

    def kernel_span(self, ple: PleRecord) -> Span:
        """Return the part of the banks that the engine's kernel is loaded through."""
        size = self._capabilities.max_ple_bytes
        return Span("kernel", ple.ce_sram, ple.ce_sram + size)

    def run(self, where: Where, inputs: Sequence[Port], output: Port, spans: list[Span]) -> None:
        """Check what a pass reads from SRAM, and note what it overwrites and leaves.

        E957 for tiles over each other, E958 for a tensor that is not there.
        """
        ordered = sorted(_apart(inputs, spans), key=lambda span: (span.start, span.stop))
        for first, second in pairwise(ordered):
            if first.meets(second):
                raise where.fault("E957", f"tiles must not overlap, and {first} meets {second}")
        read = {port.record.sram_offset_bytes for port in inputs if self._require(port)}
        self._overwrite(where, [span for span in spans if span.start not in read])
        if output.record.location is Location.SRAM:
            span = next(span for span in spans if span.name == output.role)
            named = Span(f"the {output.role} of {where}", span.start, span.stop)
            self._kept[output.record.sram_offset_bytes] = Kept(output.record, named)

    def _require(self, port: Port) -> bool:
        """Check a tensor that is read from SRAM, if it is; E958 unless it is there as it says."""
        record = port.record
        if record.location is not Location.SRAM:
            return False
        kept = self._kept.get(record.sram_offset_bytes)
        if kept is None:
            raise port.fault(
                "E958",
                f"must have been left in SRAM at {record.sram_offset_bytes} by a pass before it, "
                "and nothing was",
            )
        if kept.gone is not None:
            raise port.fault(
                "E958",
                f"must still be in SRAM, and {kept.span.name} was overwritten by {kept.gone}",
            )
        if (kept.record.data_type, kept.record.shape) != (record.data_type, record.shape):
            raise port.fault(
                "E958",
                f"must be as it was left in SRAM: {_spoken(record)}, and {kept.span.name} is "
                f"{_spoken(kept.record)}",
            )
        return True

    def _overwrite(self, where: Where, spans: list[Span]) -> None:
        for offset, kept in self._kept.items():
            for span in spans:
                if kept.gone is None and span.meets(kept.span):
                    by = Span(f"the {span.name} of {where}", span.start, span.stop)
                    self._kept[offset] = Kept(kept.record, kept.span, by)
                    break

    def _check_stripe(self, port: Port) -> None:
        record = port.record
        steps = (BRICK_GROUP_SIDE, BRICK_GROUP_SIDE, self._capabilities.srams)
        # A copy within SRAM names the tensor's own extents.
        is_itself = record.location is Location.SRAM and record.stripe_shape == record.shape
        sides = zip("HWC", record.stripe_shape[1:], steps, strict=True)
        for axis, extent, step in sides:
            is_patch = axis == "W" and extent == PATCH_SIDE
            if not (is_patch or is_itself) and (extent == 0 or extent % step):
                raise port.fault(
                    "E959", f"must have stripes of a multiple of {step} along {axis}, not {extent}"
                )
        whole = self._rounded(record.shape)
        stripe = tuple(map(min, self._rounded(record.stripe_shape), whole))
        if record.tile_bytes < math.prod(stripe):
            raise port.fault(
                "E959",
                f"must have a tile of at least one stripe, {math.prod(stripe)} bytes, not of "
                f"{record.tile_bytes}",
            )

    def _check_whole(self, port: Port) -> None:
        """E959 unless a tensor is in SRAM as a whole, in stripes that lie as one would.

        Brick groups lie by rows, then columns, then channels: stripes of one another's rows do, and
        those of columns where there is one row of brick groups.
        """
        steps = (BRICK_GROUP_SIDE, BRICK_GROUP_SIDE, self._capabilities.srams)
        whole = self._rounded(port.record.shape)
        stripe = tuple(map(min, self._rounded(port.record.stripe_shape), whole))
        several = [axis for axis in range(3) if whole[axis] > steps[axis]]
        outermost = several[:1]
        is_cut = [axis for axis in range(3) if stripe[axis] < whole[axis]]
        if port.record.tile_bytes < math.prod(whole) or is_cut not in ([], outermost):
            raise port.fault(
                "E959",
                f"must be in SRAM as a whole, {math.prod(whole)} bytes in stripes that follow "
                f"one another: its shape is {_extents(port.record.shape)}, its stripes "
                f"{_extents(port.record.stripe_shape)}, its tile {port.record.tile_bytes} bytes",
            )

    def _rounded(self, shape: Shape) -> tuple[int, ...]:
        """Return H, W, C in whole brick groups over all banks."""
        steps = (BRICK_GROUP_SIDE, BRICK_GROUP_SIDE, self._capabilities.srams)
        return tuple(-(-n // step) * step for n, step in zip(shape[1:], steps, strict=True))


def _apart(inputs: Sequence[Port], spans: Sequence[Span]) -> list[Span]:
    """Leave out the spans of inputs that are the same tensor in SRAM as one before them."""
    first: dict[int, str] = {}
    for port in inputs:
        if port.record.location is Location.SRAM:
            first.setdefault(port.record.sram_offset_bytes, port.role)
    again = {
        port.role
        for port in inputs
        if port.record.location is Location.SRAM
        and first[port.record.sram_offset_bytes] != port.role
    }
    return [span for span in spans if span.name not in again]


def _extents(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _spoken(record: TensorRecord) -> str:
    return f"{record.data_type.name} {_extents(record.shape)}"
