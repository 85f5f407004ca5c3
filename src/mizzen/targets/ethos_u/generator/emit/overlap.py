"""How far an operation may begin before the one before it ends: BLOCKDEP.

An operation writes its output block by block, along depth first, then width, then height. The next
one begins with jobs, each the input of one block, or some channels of it. With BLOCKDEP d its job f
may read before block b from the end of the operation before is written, if f + b < d; it never
overtakes what the other reads, nor its writes.

Ref: Ethos-U55, Ethos-U65 and Ethos-U85 technical reference manuals, BLOCKDEP.
"""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.emit.blocks import block_at, block_counts
from mizzen.targets.ethos_u.generator.emit.bytesets import Part, part
from mizzen.targets.ethos_u.generator.emit.steps import KernelStep, QueuedStep
from mizzen.targets.ethos_u.generator.operations import AS_COMPUTED
from mizzen.targets.ethos_u.machine.commands_values import Arch

GREATEST = {Arch.U55: 3, Arch.U65: 3, Arch.U85: 7}
"""The greatest BLOCKDEP there is."""


def greatest_overlap(before: QueuedStep, after: QueuedStep, most: int) -> int:
    """Return the greatest BLOCKDEP of `after`, up to `most`, that lets it read nothing too early.

    What reads a result that is stored in another order than it is computed waits for all of it.
    Operations of a chain do a block one after the other, so that all have what suits each.
    """
    return min(_overlap(before.links[-1], link, most) for link in after.links)


def _overlap(before: KernelStep, after: KernelStep, most: int) -> int:
    if before.table is not None and after.clobbers:
        return 0
    region, written = before.writes[0]
    touched = [
        place
        for place, (other, read) in enumerate(after.reads)
        if other == region and read.touches(written)
    ]
    if not touched:
        return most
    maps = len(after.maps)
    if any(place >= maps for place in touched) or before.operation.order != AS_COMPUTED:
        return 0
    blocks = [part(before.ofm, box) for box in last_blocks(before, most)]
    for place in touched:
        for job, box in enumerate(first_jobs(after, place, most)):
            if job >= most:
                break
            needed = part(after.maps[place], box)
            for block, output in enumerate(blocks[: most - job]):
                if needed.touches(output):
                    most = job + block
                    break
    return most


def last_blocks(step: KernelStep, number: int) -> list[Part]:
    """Return up to `number` blocks from the last one back."""
    height, width, depth = block_counts(step)
    total = height * width * depth
    return [block_at(step, total - 1 - back) for back in range(min(number, total))]


def first_jobs(step: KernelStep, place: int, number: int) -> list[Part]:
    """Return what each of up to `number` first jobs reads of the input at a place."""
    height, width, depth = block_counts(step)
    parts: list[Part] = []
    for index in range(min(number, height * width * depth)):
        box = step.needed(place, block_at(step, index))
        if place or step.job_depth is None or not step.needs_all:
            parts.append(box)
        else:
            tall, wide, (low, high) = box
            parts += [
                (tall, wide, (first, min(high, first + step.job_depth)))
                for first in range(low, high, step.job_depth)
            ]
        if len(parts) >= number:
            break
    return parts[:number]
