"""Which rows each operation of a run does for each stripe, and how many rows are alive."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Map,
    MatrixProduct,
    Operation,
    Pooling,
    Resize,
    Role,
    Sequence,
    links_of,
    maps_read,
    tensor_written,
    views_read,
)
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode


@dataclass(frozen=True, slots=True)
class Run:
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
    """A run divided: steps in their order, and of tensors inside it the rows that they keep."""

    steps: tuple[Step, ...]
    rows_kept: dict[int, int]


Spans = Several[tuple[int, int]]
"""Of tensors, as a sequence's `lifetimes`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Which rows of a tensor rows of an output need, of those that are not padding.

    stride         rows of the input from one row of the output to the next
    above, beyond  rows above the first one's place that its window begins, and after that of the
                   last one that its window ends
    height         rows that are not padding
    """

    tensor: int
    stride: int
    above: int
    beyond: int
    height: int

    def first(self, start: int) -> int:
        """Return the first row that row `start` and those below it need."""
        return max(0, start * self.stride - self.above)

    def end(self, stop: int) -> int:
        """Return the row after the last one that rows before `stop` need."""
        return min(self.height, (stop - 1) * self.stride + self.beyond)


Readings = tuple[Reading, ...] | None
"""Of what an operation reads; None of one that cannot be done some rows at a time."""


def divide(sequence: Sequence, run: Run) -> Division | None:
    """Return a run divided into stripes; None where operations do not permit it."""
    operations = sequence.operations[run.first : run.last + 1]
    readings_of = dict(
        enumerate((readings(sequence, operation) for operation in operations), run.first)
    )
    return divided(sequence, run, sequence.lifetimes(), readings_of)


def divided(
    sequence: Sequence, run: Run, spans: Spans, readings_of: Mapping[int, Readings]
) -> Division | None:
    """Return a run divided into stripes, what follows from the sequence being known.

    rows  `readings` of each of the run's operations
    """
    operations = range(run.first, run.last + 1)
    if any(readings_of[index] is None for index in operations):
        return None
    inside = inner_tensors(sequence, run, spans)
    ends = _ends(sequence, run, inside, readings_of)
    if ends is None:
        return None
    written = [(index, ends[tensor_written(sequence.operations[index])]) for index in operations]
    steps: list[Step] = []
    for stripe in range(run.stripes):
        for index, stops in written:
            start = stops[stripe - 1] if stripe else 0
            if stops[stripe] > start:
                steps.append(Step(index, start, stops[stripe]))
    return Division(tuple(steps), _rows_kept(sequence, steps, inside, readings_of))


def readings(sequence: Sequence, operation: Operation) -> Readings:
    """Return which rows an operation reads; None where it cannot be done some rows at a time."""
    if not is_by_rows(sequence, operation):
        return None
    return tuple(reading(link, view) for link, view in views_read(operation))


def is_by_rows(sequence: Sequence, operation: Operation) -> bool:
    """Return whether an operation can be done some rows at a time."""
    if isinstance(operation, Copy) or not all(map(_gives_rows, links_of(operation))):
        return False
    return all(_is_all_rows(sequence, view) for view in (*maps_read(operation), operation.ofm))


def _gives_rows(link: Computation) -> bool:
    """Whether each row of the result follows from some rows of the inputs."""
    match link:
        case Resize():
            return False
        case Convolution() | Pooling():
            return link.upscale is UpscaleMode.NONE and link.order == AS_COMPUTED
        case _:
            return link.order == AS_COMPUTED


def _is_all_rows(sequence: Sequence, fm: Map) -> bool:
    view = fm.view
    tensor = sequence.tensors[fm.tensor]
    return (
        isinstance(view, Box)
        and view.steps == (1, 1)
        and view.start[0] == 0
        and view.shape[0] == tensor.shape[0]
        and fm.dtype.itemsize == tensor.dtype.itemsize
    )


def inner_tensors(sequence: Sequence, run: Run, spans: Spans) -> frozenset[int]:
    """Return the tensors that one operation of a run writes and only later ones of it read."""
    inner: set[int] = set()
    written: set[int] = set()
    for index in range(run.first, run.last):
        tensor = tensor_written(sequence.operations[index])
        first, last = spans[tensor]
        if sequence.tensors[tensor].role is Role.SCRATCH and first == index < last <= run.last:
            inner.add(tensor)
        if tensor in written:
            inner.discard(tensor)
        written.add(tensor)
    return frozenset(inner - {tensor_written(sequence.operations[run.last])}) - frozenset(
        sequence.outputs
    )


def rows_read(operation: Computation, view: Map, start: int, stop: int) -> tuple[int, int]:
    """Return the rows of an input that some rows of the output need."""
    needs = reading(operation, view)
    return needs.first(start), needs.end(stop)


def reading(operation: Computation, view: Map) -> Reading:
    """Return which rows of an input an operation reads."""
    if isinstance(operation, Elementwise | MatrixProduct | Resize):
        stride = 0 if view.shape[0] == 1 else 1
        return Reading(view.tensor, stride, 0, 1, operation.ofm.shape[0])
    kernel = operation.kernel
    beyond = kernel.dilated_height - kernel.pad_top
    height = input_height(operation)
    return Reading(view.tensor, kernel.stride_y, kernel.pad_top, beyond, height)


def window_rows(operation: Convolution | Pooling, start: int, stop: int) -> tuple[int, int]:
    """Return the rows under the windows of some rows of the output, padding counted."""
    kernel = operation.kernel
    first = start * kernel.stride_y - kernel.pad_top
    return first, (stop - 1) * kernel.stride_y - kernel.pad_top + kernel.dilated_height


def input_height(operation: Convolution | Pooling) -> int:
    """Return the rows of the input that are not padding: what padding leaves of all windows."""
    _, last = window_rows(operation, 0, operation.ofm.shape[0])
    return last - operation.kernel.pad_bottom


def _ends(
    sequence: Sequence, run: Run, inside: frozenset[int], readings_of: Mapping[int, Readings]
) -> dict[int, list[int]] | None:
    """Return of each tensor that a run writes how many rows are there after each stripe."""
    count = run.stripes
    ends_of: dict[int, list[int]] = {}
    written: set[int] = set()
    for index in range(run.last, run.first - 1, -1):
        operation = sequence.operations[index]
        assert not isinstance(operation, Copy)
        output, height = operation.ofm.tensor, operation.ofm.shape[0]
        if output in written:
            return None
        written.add(output)
        ends = ends_of.setdefault(output, [0] * count)
        if index == run.last:
            ends[:] = [-(-height * (stripe + 1) // count) for stripe in range(count)]
        elif output not in inside:
            ends[-1] = height
        for need in readings_of[index] or ():
            if not _raise(ends_of.setdefault(need.tensor, [0] * count), ends, need):
                return None
    return ends_of


def _raise(needed: list[int], ends: list[int], need: Reading) -> bool:
    """Raise the rows of an input to what stripes of an output need; False if one needs none."""
    start = before = 0
    for stripe, stop in enumerate(ends):
        least = needed[stripe]
        if stop > start:
            last = need.end(stop)
            if last <= need.first(start):
                return False
            if last > least:
                needed[stripe] = least = last
        elif before > least:
            needed[stripe] = least = before
        start, before = stop, least
    return True


def _rows_kept(
    sequence: Sequence,
    steps: list[Step],
    inside: frozenset[int],
    readings_of: Mapping[int, Readings],
) -> dict[int, int]:
    """Return how many rows of each tensor inside a run are alive at once at most."""
    alive: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for step in reversed(steps):
        index, start = step.operation, step.start
        for need in readings_of[index] or ():
            if need.tensor in inside:
                first = need.first(start)
                if lowest.get(need.tensor, first) >= first:
                    lowest[need.tensor] = first
        output = tensor_written(sequence.operations[index])
        if output in inside:
            kept = step.stop - min(start, lowest.get(output, start))
            if alive.get(output, 0) <= kept:
                alive[output] = kept
    return alive
