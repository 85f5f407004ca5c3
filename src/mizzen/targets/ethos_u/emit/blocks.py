"""The blocks of an operation's output: along depth first, then width, then height."""

from __future__ import annotations

from mizzen.targets.ethos_u.emit.bytesets import Part
from mizzen.targets.ethos_u.emit.steps import KernelStep
from mizzen.targets.ethos_u.operations import Shape


def block_counts(step: KernelStep) -> Shape:
    """Return how many blocks there are along each axis."""
    height, width, depth = (
        -(-extent // size) for extent, size in zip(step.ofm.shape, step.blocking.block, strict=True)
    )
    return height, width, depth


def block_at(step: KernelStep, index: int) -> Part:
    """Return the elements of the output's block of a number."""
    _, columns, slices = block_counts(step)
    index, slice_ = divmod(index, slices)
    row, column = divmod(index, columns)
    rows, columns_, channels = (
        (place * size, min(extent, (place + 1) * size))
        for place, size, extent in zip(
            (row, column, slice_), step.blocking.block, step.ofm.shape, strict=True
        )
    )
    return rows, columns_, channels
