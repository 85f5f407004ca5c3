"""Operations whose output lies over their own input."""

from __future__ import annotations

import numpy as np

from mizzen.targets.ethos_u.emit.blocks import block_at, block_counts
from mizzen.targets.ethos_u.emit.bytesets import part, whole
from mizzen.targets.ethos_u.emit.steps import KernelStep


def overwrites_unread(step: KernelStep) -> bool:
    """Whether a block is written over bytes that a later block of the operation still reads.

    Jobs of later blocks may read before or after an earlier block is written, so that only what no
    later block needs may be written over. An output exactly where the input of an operation from
    point to point lies is safe: each block is written where it alone was read.
    """
    region, written = step.writes[0]
    return any(
        map_.region == region
        and whole(map_).touches(written)
        and not (map_.is_as(step.ofm) and step.is_point_by_point)
        and _reads_what_is_written(step, place)
        for place, map_ in enumerate(step.maps)
    )


def _reads_what_is_written(step: KernelStep, place: int) -> bool:
    height, width, depth = block_counts(step)
    _, output = step.writes[0]
    written = np.zeros(output.end - output.first, np.bool_)
    for index in range(height * width * depth):
        block = block_at(step, index)
        needed = part(step.maps[place], step.needed(place, block))
        if needed.within(output.first, output.end, written).any():
            return True
        part(step.ofm, block).mark(output.first, written)
    return False
