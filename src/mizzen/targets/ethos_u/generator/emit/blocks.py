"""The blocks of what an operation computes: along depth first, then width, then height."""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.emit.bytesets import Part, Span
from mizzen.targets.ethos_u.generator.emit.steps import KernelStep
from mizzen.targets.ethos_u.generator.operations import Shape


def spans(step: KernelStep) -> tuple[list[Span], list[Span], list[Span]]:
    """Return the blocks along each axis: the first element, and one past the last."""
    rows, columns, channels = (
        [(start, min(extent, start + size)) for start in range(0, extent, size)]
        for extent, size in zip(step.shape, step.blocking.block, strict=True)
    )
    return rows, columns, channels


def block_counts(step: KernelStep) -> Shape:
    """Return how many blocks there are along each axis."""
    height, width, depth = (
        -(-extent // size) for extent, size in zip(step.shape, step.blocking.block, strict=True)
    )
    return height, width, depth


def block_at(step: KernelStep, index: int) -> Part:
    """Return the elements of the output's block of a number."""
    _, columns, slices = block_counts(step)
    index, slice_ = divmod(index, slices)
    down, across = divmod(index, columns)
    rows, columns_, channels = (
        (place * size, min(extent, (place + 1) * size))
        for place, size, extent in zip(
            (down, across, slice_), step.blocking.block, step.shape, strict=True
        )
    )
    return rows, columns_, channels
