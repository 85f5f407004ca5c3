"""A schedule that is right and asks for nothing: what a better one is compared with."""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.operations import (
    Blob,
    Copy,
    Issue,
    Place,
    Role,
    Schedule,
    Sequence,
    convolution_of,
)
from mizzen.targets.ethos_u.generator.schedule.blocks import usual
from mizzen.targets.ethos_u.generator.schedule.facts import facts_of
from mizzen.targets.ethos_u.generator.weights import encode
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.config import Accelerator, EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import RegionIndex

ALIGNMENT_BYTES = 16
"""Of whatever has an address: what NHCWB16 and the DMA ask for."""


def plain(sequence: Sequence, configuration: EthosUConfiguration) -> Schedule:
    """Return a schedule without transfers: constants are read where they lie.

    Tensors are row major unless they have to be something else, and lie first-fit by lifetime.
    """
    layouts = _layouts(sequence)
    places, size = _first_fit(sequence, layouts)
    blobs: list[Blob] = []
    items = [_issue(sequence, index, configuration.accelerator, blobs)
             for index in range(len(sequence.operations))]  # fmt: skip
    return Schedule(
        sequence=sequence,
        layouts=layouts,
        places=places,
        stagings=(),
        blobs=tuple(blobs),
        items=tuple(items),
        region_bytes={int(RegionIndex.SCRATCH): size},
    )


def plain_bytes(sequence: Sequence) -> int:
    """Return the memory that tensors take in the schedule that `plain` gives."""
    return _first_fit(sequence, _layouts(sequence))[1]


def _layouts(sequence: Sequence) -> tuple[Layout, ...]:
    return tuple(tensor.layout or Layout.NHWC for tensor in sequence.tensors)


def _issue(sequence: Sequence, index: int, accelerator: Accelerator, blobs: list[Blob]) -> Issue:
    operation = sequence.operations[index]
    if isinstance(operation, Copy):
        return Issue(index, None)
    blocking = usual(operation, facts_of(operation, accelerator), accelerator)
    convolution = convolution_of(operation)
    if convolution is None:
        return Issue(index, blocking)
    channels = 0, len(convolution.weights)
    depth, part_kernel = blocking.block[2], blocking.part_kernel
    blobs.append(encode(convolution, channels, depth, part_kernel, accelerator))
    return Issue(index, blocking, blob=len(blobs) - 1)


def _first_fit(
    sequence: Sequence, layouts: tuple[Layout, ...]
) -> tuple[tuple[Place | None, ...], int]:
    """Return a place for each tensor, the largest first, and how much they take in all."""
    sizes = [
        aligned(tensor.size_bytes(layout))
        for tensor, layout in zip(sequence.tensors, layouts, strict=True)
    ]
    lifetimes = sequence.lifetimes()
    offsets: dict[int, int] = {}
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        first, last = lifetimes[index]
        if sequence.tensors[index].role is Role.CONSTANT or last < first:
            continue
        taken = sorted(
            (offset, offset + sizes[other])
            for other, offset in offsets.items()
            if lifetimes[other][0] <= last and first <= lifetimes[other][1]
        )
        at = 0
        for start, end in taken:
            if start - at >= sizes[index]:
                break
            at = max(at, end)
        offsets[index] = at
    region = int(RegionIndex.SCRATCH)
    places = tuple(
        Place(region, offsets[index]) if index in offsets else None for index in range(len(sizes))
    )
    return places, max((at + sizes[index] for index, at in offsets.items()), default=0)


def aligned(size_bytes: int) -> int:
    """Return a size as it takes room."""
    return ALIGNMENT_BYTES * -(-size_bytes // ALIGNMENT_BYTES)
