"""What U85 reads of an input of which each output channel needs all channels.

Its input memory takes the slabs of channels back and forth, so that those that a block ends with
are there when the next one in depth begins with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import BRICK
from mizzen.targets.ethos_u.generator.schedule.blocks import Blocks, rounded, slab, up
from mizzen.targets.ethos_u.generator.schedule.facts import SUBKERNEL, Facts
from mizzen.targets.ethos_u.generator.shared_buffer import input_memory
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode
from mizzen.targets.ethos_u.machine.config import Accelerator

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slabs:
    """The slabs that all blocks in depth read at one place, each as often as it is read.

    number  that there are
    longest of them, in channels
    bricks, beats  of all that is read: bricks, and bytes where each slab is whole beats
    """

    number: int
    longest: int
    bricks: Ints
    beats: Ints


def slabs_read(
    facts: Facts,
    blocks: Blocks,
    part_kernel: bool,
    element_bytes: int,
    accelerator: Accelerator,
    beat_bytes: int,
) -> Slabs:
    """Return the slabs that blocks of each size read."""
    depth, most = facts.channels, slab(facts, part_kernel)
    number, longest = up(depth, most), min(depth, most)
    missing = np.maximum(0, number - _kept(facts, blocks, longest, most, accelerator))
    again = -(-facts.shape[2] // blocks[:, 2]) - 1
    there, back = -(-again // 2), again // 2

    def total(whole: int, last: int) -> Ints:
        """Return the sum of what is read, of so many units a whole slab and the last one."""
        every = whole * (number - 1) + last
        first = np.where(missing == number, every, missing * whole)
        end = np.where(missing > 0, (missing - 1) * whole + last, 0)
        return every + there * first + back * end

    last = depth - (number - 1) * most
    return Slabs(
        number,
        longest,
        total(up(most, BRICK), up(last, BRICK)),
        total(rounded(most * element_bytes, beat_bytes), rounded(last * element_bytes, beat_bytes)),
    )


def _kept(facts: Facts, blocks: Blocks, channels: int, most: int, accelerator: Accelerator) -> Ints:
    """Return of how many jobs the input memory keeps what they read."""
    memory, size = input_memory(facts.microblock, accelerator), facts.input_bits // 8
    tall, wide, bytes_ = memory.unit.granule(most * size)
    factor = 1 if facts.upscale is UpscaleMode.NONE else 2
    area = np.ones(len(blocks), np.int64)
    for axis, unit in enumerate((tall, wide)):
        needed = (blocks[:, axis] - 1) * facts.strides[axis] + min(facts.kernel[axis], SUBKERNEL)
        area *= rounded(up(needed, factor), unit)
    return memory.bytes_ // (area * rounded(channels * size, bytes_))
