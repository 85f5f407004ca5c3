"""All rewrites of one operation, or of several that are next to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.arrange.columns import Pixels, columns_as_channels
from mizzen.targets.ethos_u.generator.arrange.copies import without_copy
from mizzen.targets.ethos_u.generator.arrange.gather import gather_columns
from mizzen.targets.ethos_u.generator.arrange.strided import HEIGHT, WIDTH
from mizzen.targets.ethos_u.generator.arrange.swap import regions, swap
from mizzen.targets.ethos_u.generator.arrange.views import (
    elements_view,
    pool_view,
    positions_view,
    view_shapes,
)
from mizzen.targets.ethos_u.generator.arrange.widen import without_constant
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Chain,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Sequence,
)
from mizzen.targets.ethos_u.generator.tuned import POOL_COLUMNS
from mizzen.targets.ethos_u.machine.config import Accelerator

EXCHANGE = "exchange height and width"


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """Another sequence that computes the same.

    what        is done, in words
    operations  indices of those that are changed, in the sequence that it was made of
    sequence    with others in their place
    """

    what: str
    operations: tuple[int, ...]
    sequence: Sequence


def variants(sequence: Sequence, accelerator: Accelerator) -> Iterator[Variant]:
    """Return every rewrite of one step of a sequence."""
    for index in range(len(sequence.operations)):
        yield from variants_of(sequence, index, accelerator)
    for region in regions(sequence):
        swapped = swap(sequence, region)
        if swapped is not None:
            yield Variant(EXCHANGE, tuple(region), swapped)


def variants_of(sequence: Sequence, index: int, accelerator: Accelerator) -> Iterator[Variant]:
    """Return every rewrite of one operation by itself; none exchanges height and width."""
    yield from without(sequence, index)
    operation = sequence.operations[index]
    if isinstance(operation, Copy | Chain) or operation.order != AS_COMPUTED:
        return
    for rewrite in (_columns, _gathered, _pools):
        yield from rewrite(sequence, index)
    yield from _shapes(sequence, operation, index, accelerator)


def without(sequence: Sequence, index: int) -> Iterator[Variant]:
    """Return sequences without an operation that only moves numbers or writes constant ones."""
    rest = without_copy(sequence, index)
    if rest is not None:
        yield Variant("leave out a copy", (index,), rest)
    rest = without_constant(sequence, index)
    if rest is not None:
        yield Variant("write constant channels instead of copying them", (index,), rest)


def _columns(sequence: Sequence, index: int) -> Iterator[Variant]:
    for axis, what in ((WIDTH, "columns"), (HEIGHT, "rows")):
        for pixels in (Pixels.APART, Pixels.CONTIGUOUS):
            changed = columns_as_channels(sequence, index, axis, pixels)
            if changed is not None:
                yield Variant(f"read {what} as channels, {pixels.value}", (index,), changed)


def _gathered(sequence: Sequence, index: int) -> Iterator[Variant]:
    operation = sequence.operations[index]
    if not isinstance(operation, Convolution):
        return
    for together in sorted({1, operation.kernel.stride_y}):
        changed = gather_columns(sequence, index, together)
        if changed is not None:
            what = "a row" if together == 1 else f"{together} rows"
            yield Variant(f"gather what windows cover of {what}", (index,), changed)


def _pools(sequence: Sequence, index: int) -> Iterator[Variant]:
    for columns in POOL_COLUMNS:
        changed = pool_view(sequence, index, columns)
        if changed is not None:
            yield Variant(f"pool {columns} columns of rows", (index,), changed)


def _shapes(
    sequence: Sequence, operation: Computation, index: int, accelerator: Accelerator
) -> Iterator[Variant]:
    for shape in dict.fromkeys(view_shapes(operation, accelerator)):
        if isinstance(operation, Elementwise):
            changed = elements_view(sequence, index, shape)
        else:
            changed = positions_view(sequence, index, shape[:2])
        if changed is not None:
            extents = " x ".join(map(str, shape))
            yield Variant(f"see the output as {extents}", (index,), changed)
