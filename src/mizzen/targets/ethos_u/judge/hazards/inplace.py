"""Operations that write over their own inputs: each block only over what is read by then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.hazards.blocks import Axis, Input, Pointwise, Result, Sliding
from mizzen.targets.ethos_u.judge.hazards.intervals import EMPTY, Intervals
from mizzen.targets.ethos_u.judge.hazards.maps import Box, Kind, are_alike, bytes_of
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.written import Written

LOOKED_AT = 4096
"""Blocks that are looked at one by one, of more the first and the last; between, lines of blocks.

From line to line distances of outputs and inputs grow evenly.
"""
LOOKED_AT_IN_ALL, LOOKED_AT_FOR_EACH = 1 << 15, 128
"""Blocks that are looked at in a stream, and for each of its operations besides. The networks of
the tests need 17 for an operation at most; where sizes are wrong there are millions."""
LOOKED_AT_AFTER_A_RACE = 1 << 11
ENOUGH = 64
"""Blocks after which nothing more is looked for once one was in danger."""
POINT = Axis(stride=1, extent=1, pad=0, upscale=1)


@dataclass(slots=True)
class Patience:
    """How many blocks may still be looked at in a stream, and whether one was in danger."""

    blocks: int = LOOKED_AT_IN_ALL
    found: bool = False

    def found_one(self) -> None:
        """Note a block in danger: the stream is wrong, and little more has to be looked at."""
        self.found = True
        self.blocks = min(self.blocks, LOOKED_AT_AFTER_A_RACE)

    def take(self, needed: int, writer: Kernel) -> bool:
        """Tell whether as many may be looked at. E645 where not, and nothing was found before."""
        if needed > self.blocks and not self.found:
            raise fail(
                "E645",
                f"{writer.name}: an operation that writes over its own input must have few blocks: "
                f"this one has {needed:,}, and {self.blocks:,} more of the stream can be looked at",
                origin=writer.origin,
                help="write the output elsewhere, or take larger blocks; where it should have few, "
                "a size or a stride is wrong",
            )
        if needed > self.blocks:
            return False
        self.blocks -= needed
        return True


def overwritten(
    entry: Sequence[Kernel], writer: Kernel, patience: Patience
) -> Iterator[tuple[Kernel, Input, Intervals]]:
    """Return the inputs of an operation, or of its chain so far, that `writer` writes too early.

    Jobs of later blocks may read before or after an earlier block is written. With each input
    come bytes that are in danger, all of them where blocks are few. Nothing more is returned where
    patience ends.
    """
    patience.blocks += LOOKED_AT_FOR_EACH
    result = writer.blocks.result
    if result is None or result.map.place.kind is Kind.CHAIN:
        return
    for reader in entry:
        for item in reader.blocks.inputs:
            apart = item.map.place != result.map.place
            if apart or _is_element_by_element(item, result):
                continue
            if not item.map.bytes.touches(result.map.bytes):
                continue
            if not patience.take(_looked_at(reader, writer), writer):
                return
            if early := _early(reader, item, writer):
                patience.found_one()
                yield reader, item, early


def _is_element_by_element(item: Input, result: Result) -> bool:
    """Whether each block is written exactly where its own input lies."""
    match item.window:
        case Pointwise():
            at_point = True
        case Sliding(every_channel=False) as window:
            at_point = window.x == POINT == window.y
        case _:
            at_point = False
    straight = result.axes == (0, 1, 2) and result.reversed is None
    same = item.map == result.map and are_alike(item.map, result.map)
    return at_point and straight and same


def _looked_at(reader: Kernel, writer: Kernel) -> int:
    """Return how many blocks, or lines of blocks, `_early` looks at."""
    total = min(reader.blocks.total, writer.blocks.total)
    if total <= LOOKED_AT:
        return total
    lines = min(reader.blocks.counts[0], writer.blocks.counts[0])
    return LOOKED_AT // 2 + min(lines, LOOKED_AT) + max(LOOKED_AT // 2, total // lines)


def _early(reader: Kernel, item: Input, writer: Kernel) -> Intervals:
    total = min(reader.blocks.total, writer.blocks.total)
    if total <= LOOKED_AT:
        return _endangered(reader, item, writer, range(total), Written())
    half, lines = LOOKED_AT // 2, min(reader.blocks.counts[0], writer.blocks.counts[0])
    if early := _endangered(reader, item, writer, range(half), Written()):
        return early
    written, last = Written(), (total - half) // (total // lines)
    for number in range(lines if lines <= LOOKED_AT else 0):
        if number == last:
            begun = range(number * (total // lines), total)
            early = early | _endangered(reader, item, writer, begun, written)
            break
        needed = item.window.of(_line(reader, number), item.map.shape)
        early = early | written.shared(bytes_of(item.map, needed))
        written.add(writer.blocks.written(_line(writer, number)))
    return early


def _endangered(
    reader: Kernel, item: Input, writer: Kernel, blocks: range, written: Written
) -> Intervals:
    """Return what some blocks need that blocks before them, or `written`, have written over."""
    early = EMPTY
    for index in blocks:
        needed = bytes_of(item.map, item.window.of(reader.blocks.at(index), item.map.shape))
        early = early | written.shared(needed)
        if early and index >= ENOUGH:
            break
        written.add(writer.blocks.written(writer.blocks.at(index)))
    return early


def _line(kernel: Kernel, number: int) -> Box:
    """Return all blocks of one line, which follow each other."""
    (height, width, depth), tall = kernel.blocks.shape, kernel.blocks.block[0]
    return Box((number * tall, 0, 0), (min(height, (number + 1) * tall), width, depth))
