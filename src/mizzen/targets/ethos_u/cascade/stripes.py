"""Which rows each operation of a chain does for each stripe, and how many rows are alive."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass

from mizzen.targets.ethos_u.commands_values import UpscaleMode
from mizzen.targets.ethos_u.operations import (
    Box,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Map,
    Operation,
    Pooling,
    Role,
    Sequence,
    maps_read,
    tensor_written,
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Operations `first .. last` of a sequence, done in so many stripes."""

    first: int
    last: int
    stripes: int


@dataclass(frozen=True, slots=True)
class Step:
    """Rows `start .. stop` of the output of an operation."""

    operation: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Division:
    """A chain divided: steps in their order, and of tensors inside it the rows that they keep."""

    steps: tuple[Step, ...]
    rows_kept: dict[int, int]


Spans = Several[tuple[int, int]]
"""Of tensors, as a sequence's `lifetimes`."""


def divide(sequence: Sequence, chain: Chain, spans: Spans | None = None) -> Division | None:
    """Return a chain divided into stripes; None where operations do not permit it.

    spans  the sequence's, where they are known already
    """
    operations = range(chain.first, chain.last + 1)
    if not all(is_by_rows(sequence, sequence.operations[index]) for index in operations):
        return None
    inside = inner_tensors(sequence, chain, spans or sequence.lifetimes())
    ends = _ends(sequence, chain, inside)
    if ends is None:
        return None
    steps: list[Step] = []
    for stripe in range(chain.stripes):
        for index in operations:
            rows = ends[tensor_written(sequence.operations[index])]
            start = rows[stripe - 1] if stripe else 0
            if rows[stripe] > start:
                steps.append(Step(index, start, rows[stripe]))
    return Division(tuple(steps), _rows_kept(sequence, steps, inside))


def is_by_rows(sequence: Sequence, operation: Operation) -> bool:
    """Return whether an operation can be done some rows at a time."""
    if isinstance(operation, Copy):
        return False
    if not isinstance(operation, Elementwise) and operation.upscale is not UpscaleMode.NONE:
        return False
    return all(_is_all_rows(sequence, row) for row in (*maps_read(operation), operation.ofm))


def _is_all_rows(sequence: Sequence, row: Map) -> bool:
    view = row.view
    tensor = sequence.tensors[row.tensor]
    return (
        isinstance(view, Box)
        and view.steps == (1, 1)
        and view.start[0] == 0
        and view.shape[0] == tensor.shape[0]
        and row.dtype.itemsize == tensor.dtype.itemsize
    )


def inner_tensors(sequence: Sequence, chain: Chain, spans: Spans) -> frozenset[int]:
    """Return the tensors that one operation of a chain writes and only later ones of it read."""
    found: set[int] = set()
    written: set[int] = set()
    for index in range(chain.first, chain.last):
        tensor = tensor_written(sequence.operations[index])
        first, last = spans[tensor]
        if sequence.tensors[tensor].role is Role.SCRATCH and first == index < last <= chain.last:
            found.add(tensor)
        if tensor in written:
            found.discard(tensor)
        written.add(tensor)
    return frozenset(found - {tensor_written(sequence.operations[chain.last])}) - frozenset(
        sequence.outputs
    )


def rows_read(operation: Computation, view: Map, start: int, stop: int) -> tuple[int, int]:
    """Return the rows of an input that some rows of the output need."""
    if isinstance(operation, Elementwise):
        return (0, 1) if view.shape[0] == 1 else (start, stop)
    first, last = window_rows(operation, start, stop)
    return max(0, first), min(input_height(operation), last)


def window_rows(operation: Convolution | Pooling, start: int, stop: int) -> tuple[int, int]:
    """Return the rows under the windows of some rows of the output, padding counted."""
    kernel = operation.kernel
    first = start * kernel.stride_y - kernel.pad_top
    return first, (stop - 1) * kernel.stride_y - kernel.pad_top + kernel.dilated_height


def input_height(operation: Convolution | Pooling) -> int:
    """Return the rows of the input that are not padding: what padding leaves of all windows."""
    _, last = window_rows(operation, 0, operation.ofm.shape[0])
    return last - operation.kernel.pad_bottom


def _ends(sequence: Sequence, chain: Chain, inside: frozenset[int]) -> dict[int, list[int]] | None:
    """Return of each tensor that a chain writes how many rows are there after each stripe."""
    count = chain.stripes
    found: dict[int, list[int]] = {}
    written: set[int] = set()
    for index in range(chain.last, chain.first - 1, -1):
        operation = sequence.operations[index]
        assert not isinstance(operation, Copy)
        output, height = operation.ofm.tensor, operation.ofm.shape[0]
        if output in written:
            return None
        written.add(output)
        ends = found.setdefault(output, [0] * count)
        if index == chain.last:
            ends[:] = [-(-height * (stripe + 1) // count) for stripe in range(count)]
        elif output not in inside:
            ends[-1] = height
        for view in maps_read(operation):
            needed = found.setdefault(view.tensor, [0] * count)
            for stripe, stop in enumerate(ends):
                start = ends[stripe - 1] if stripe else 0
                if stop > start:
                    first, last = rows_read(operation, view, start, stop)
                    if last <= first:
                        return None
                    needed[stripe] = max(needed[stripe], last)
                elif stripe:
                    needed[stripe] = max(needed[stripe], needed[stripe - 1])
    return found


def _rows_kept(sequence: Sequence, steps: list[Step], inside: frozenset[int]) -> dict[int, int]:
    """Return how many rows of each tensor inside a chain are alive at once at most."""
    found: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for step in reversed(steps):
        operation = sequence.operations[step.operation]
        assert not isinstance(operation, Copy)
        for view in maps_read(operation):
            if view.tensor in inside:
                first, _ = rows_read(operation, view, step.start, step.stop)
                lowest[view.tensor] = min(lowest.get(view.tensor, first), first)
        output = operation.ofm.tensor
        if output in inside:
            low = min(step.start, lowest.get(output, step.start))
            found[output] = max(found.get(output, 0), step.stop - low)
    return found
