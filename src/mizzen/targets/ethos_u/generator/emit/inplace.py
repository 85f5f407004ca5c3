"""Operations whose output lies over their own input."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.emit.blocks import block_at, block_counts, spans
from mizzen.targets.ethos_u.generator.emit.bytesets import part, whole
from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.emit.steps import KernelStep, QueuedStep
from mizzen.targets.ethos_u.generator.operations import AS_COMPUTED, BRICK
from mizzen.targets.ethos_u.machine.commands_values import Layout


def overwrites_unread(step: QueuedStep) -> bool:
    """Whether a block is written over bytes that a later block of the operation still reads.

    Jobs of later blocks may read before or after an earlier block is written, so that only what no
    later block needs may be written over. An output exactly where the input of an operation from
    point to point lies is safe: each block is written where it alone was read. All operations of a
    chain have done a block before its last one writes it.
    """
    (region, written), writer = step.writes[0], step.links[-1]
    return any(
        map_.region == region
        and whole(map_).touches(written)
        and not (map_.is_as(writer.ofm) and reader.is_point_by_point)
        and not _stays_behind(reader, place, writer)
        and _overlaps_exactly(reader, place, writer)
        for reader in step.links
        for place, map_ in enumerate(reader.maps)
    )


def _stays_behind(step: KernelStep, place: int, writer: KernelStep) -> bool:
    """Whether every block reads only above all that blocks before it have written.

    False where that takes more than the lowest and the highest byte of each block to tell.
    """
    map_, output = step.maps[place], writer.ofm
    as_computed = writer.operation.order == AS_COMPUTED
    if not (as_computed and _is_plain(map_) and _is_plain(output)):
        return False
    tall, wide, deep = spans(step)
    first_y, first_x, first_c = tall[0], wide[0], deep[0]
    reads = [
        [step.needed(place, (span, first_x, first_c))[0][0] for span in tall],
        [step.needed(place, (first_y, span, first_c))[1][0] for span in wide],
        [step.needed(place, (first_y, first_x, span))[2][0] for span in deep],
    ]
    writes = [[stop - 1 for _, stop in axis] for axis in (tall, wide, deep)]
    ends = np.maximum.accumulate(_addresses(output, writes) + output.element_bytes)
    return bool((ends[:-1] <= _addresses(map_, reads)[1:]).all())


def _is_plain(map_: Located) -> bool:
    """Whether addresses rise with every axis."""
    height, width, _ = map_.shape
    is_one_tile = height <= map_.height_0 and width <= map_.width_0
    return is_one_tile and min(map_.strides) >= 0


def _addresses(map_: Located, places: list[list[int]]) -> npt.NDArray[np.int64]:
    """Return where elements lie, for all rows with all columns with all channels."""
    y, x, c = (np.array(axis, np.int64) for axis in places)
    size, step = map_.element_bytes, map_.stride_x
    channels = c * size
    if map_.layout is Layout.NHCWB16:
        step = BRICK * size
        channels = c // BRICK * map_.stride_c + c % BRICK * size
    lines = y[:, None, None] * map_.stride_y + x[:, None] * step
    return (map_.bases[0] + lines + channels).ravel()


def _overlaps_exactly(step: KernelStep, place: int, writer: KernelStep) -> bool:
    height, width, depth = block_counts(step)
    _, output = writer.writes[0]
    written = np.zeros(output.end - output.first, np.bool_)
    for index in range(height * width * depth):
        block = block_at(step, index)
        needed = part(step.maps[place], step.needed(place, block))
        if needed.within(output.first, output.end, written).any():
            return True
        part(writer.ofm, writer.stored(block)).mark(output.first, written)
    return False
