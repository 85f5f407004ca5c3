"""Which mistakes in a stream change an output, of very many random inputs.

What is right is executed once for all mistakes. A mistake leaves it at the first operation that is
another one, and comes back behind the last: only inferences go on where memory differs that is
still read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim.dma_kernel import transfers
from mizzen.targets.ethos_u.judge.sim.machine import Simulator
from mizzen.targets.ethos_u.judge.sim.memory import Memory, Run, Workspace, pieces
from mizzen.targets.ethos_u.judge.sim.operations import (
    AccumulatorInput,
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    MatrixProduct,
    Operation,
    Pooling,
    Resize,
    Space,
)
from mizzen.targets.ethos_u.judge.sim.plan import Computation, Encoded, Step
from mizzen.targets.ethos_u.machine.program import Program

Array = npt.NDArray[Any]

BATCHES = (1, 7, 56)
"""Inputs that are tried first; most mistakes show with the first one."""

LARGEST_BATCH = 256
MOST_BYTES = 1 << 40
SEED = 1000


@dataclass(frozen=True)
class Fork:
    """A program with a mistake beside the right one: their steps are the same but those between.

    first       the first step that may differ
    end, right  one past the last, of this program's steps and of the right one's
    """

    simulator: Simulator
    first: int
    end: int
    right: int


Live = dict[int, tuple[slice, Array]]
"""Bytes of each region that are still read: those of a part of it, by a mask."""


def first_differing(right: Simulator, wrong: Sequence[Simulator], most: int) -> list[int | None]:
    """Return the number of the first input for which each gives another output; None if none does.

    most  inputs to try
    """
    found_forks = ((place, _fork(right, row)) for place, row in enumerate(wrong))
    forks = {place: fork for place, fork in found_forks if fork is not None}
    found: list[int | None] = [None] * len(wrong)
    live = _live(right)
    for start, stop in _batches(most):
        if not forks:
            break
        inputs = _inputs(right.program, start, stop - start)
        differing = _Batch(right, inputs, stop - start).differing(forks, live)
        for place, row in differing.items():
            found[place] = start + row
            del forks[place]
    return found


def _batches(most: int) -> Iterator[tuple[int, int]]:
    start = 0
    for size in chain(BATCHES, repeat(LARGEST_BATCH)):
        if start >= most:
            return
        yield start, min(most, start + size)
        start += size


def _inputs(program: Program, start: int, count: int) -> list[Array]:
    """Return random inputs, the same for the same start and count."""
    rng = np.random.default_rng(SEED + start)
    limits = [np.iinfo(np.dtype(row.dtype.name)) for row in program.inputs]
    return [
        rng.integers(info.min, info.max, (count, *row.shape), info.dtype, endpoint=True)
        for row, info in zip(program.inputs, limits, strict=True)
    ]


class _Batch:
    """Some inputs, and what is right for them."""

    def __init__(self, right: Simulator, inputs: Sequence[Array], count: int) -> None:
        self._right = right
        self._count = count
        self._memory = _memory(right, count)
        for placement, array in zip(right.program.inputs, inputs, strict=True):
            flat = np.ascontiguousarray(array).view(np.uint8).reshape(count, -1)
            _bytes(self._memory, placement)[...] = flat

    def differing(self, forks: dict[int, Fork], live: Sequence[Live]) -> dict[int, int]:
        """Return the first input for which each fork differs; those without one left out.

        What the machine cannot execute exactly for one of the inputs differs.

        live  what is read from each step on
        """
        steps = self._right.plan.steps
        runs = _bound(steps, self._memory)
        apart: dict[int, _Apart] = {}
        found: dict[int, int] = {}
        for index in range(len(runs) + 1):
            for place, fork in forks.items():
                try:
                    if fork.first == index:
                        apart[place] = self._forked(fork)
                    if place in apart and fork.right <= index:
                        row = apart[place]
                        if index > fork.right:
                            _execute([steps[index - 1]], row.memory)
                        if not _is_continued(steps, index) and not self._keep(row, live[index]):
                            del apart[place]
                except MizzenError:
                    found[place] = 0
                    apart.pop(place, None)
            if index < len(runs):
                runs[index]()
        return found | {place: int(row.rows[0]) for place, row in apart.items()}

    def _forked(self, fork: Fork) -> _Apart:
        """Execute what is apart, from where the right program is."""
        rows = np.arange(self._count)
        memory = _memory(fork.simulator, self._count)
        _copy(self._memory, memory, rows)
        _execute(fork.simulator.plan.steps[fork.first : fork.end], memory)
        return _Apart(fork, rows, memory)

    def _keep(self, apart: _Apart, live: Live) -> bool:
        """Go on with the inferences whose memory differs only; return whether there are some."""
        differs = np.zeros(len(apart.rows), np.bool_)
        for region, (span, mask) in live.items():
            theirs = self._memory.regions[region][apart.rows, span]
            differs |= ((apart.memory.regions[region][:, span] != theirs) & mask).any(1)
        count = int(differs.sum())
        if count and count < len(differs):
            memory = _memory(apart.fork.simulator, count)
            _copy(apart.memory, memory, np.flatnonzero(differs))
            apart.rows, apart.memory = apart.rows[differs], memory
        return count > 0


@dataclass
class _Apart:
    """Inferences of a fork that differ from what is right, and their memory."""

    fork: Fork
    rows: Array
    memory: Memory


def _live(simulator: Simulator) -> list[Live]:
    """Return which bytes are read from each step on, and behind the last."""
    program = simulator.program
    sizes = {**program.region_bytes, **simulator.plan.chain_bytes}
    live = {
        region: np.zeros(size, np.bool_)
        for region, size in sizes.items()
        if region not in program.constants
    }
    for row in program.outputs:
        live[row.region][row.offset : row.offset + row.size_bytes] = True
    found = [_spans(live)]
    for step in reversed(simulator.plan.steps):
        if not isinstance(step.operation, Dma) and step.operation.output.fm.region in live:
            _mark(live, step.operation.output.fm, False)
        for region, low, high in _read(step.operation):
            if region in live:
                live[region][max(0, low) : high] = True
        found.append(_spans(live))
    return found[::-1]


def _spans(live: dict[int, Array]) -> Live:
    places = {region: np.flatnonzero(mask) for region, mask in live.items()}
    spans = {region: slice(row[0], row[-1] + 1) for region, row in places.items() if len(row)}
    return {region: (span, live[region][span].copy()) for region, span in spans.items()}


def _memory(simulator: Simulator, count: int) -> Memory:
    program = simulator.program
    sizes = {**program.region_bytes, **simulator.plan.chain_bytes}
    return Memory(count, sizes, program.constants)


def _copy(source: Memory, target: Memory, rows: Array) -> None:
    for region, held in target.regions.items():
        theirs = source.regions.get(region)
        if theirs is not None:
            size = min(held.shape[1], theirs.shape[1])
            held[:, :size] = theirs[rows, :size]


def _bytes(memory: Memory, placement: Any) -> Array:
    stop = placement.offset + placement.size_bytes
    return memory.regions[placement.region][:, placement.offset : stop]


def _bound(steps: Sequence[Step], memory: Memory) -> list[Run]:
    workspace = Workspace()
    return [step.kernel.bind(memory, workspace) for step in steps]


def _execute(steps: Sequence[Step], memory: Memory) -> None:
    for run in _bound(steps, memory):
        run()


def _fork(right: Simulator, wrong: Simulator) -> Fork | None:
    """Return where a program leaves the right one and comes back; None if it never does."""
    ours, theirs = right.plan.steps, wrong.plan.steps
    same = _Same(right, wrong)
    first, most = 0, min(len(ours), len(theirs))
    while first < most and same(ours[first].operation, theirs[first].operation):
        first += 1
    if first == len(ours) == len(theirs):
        return None
    last = 0
    while last < most - first and same(ours[-1 - last].operation, theirs[-1 - last].operation):
        last += 1
    while first and any(_is_continued(rows, first) for rows in (ours, theirs)):
        first -= 1
    while last and any(_is_continued(rows, len(rows) - last) for rows in (ours, theirs)):
        last -= 1
    return Fork(wrong, first, len(theirs) - last, len(ours) - last)


def _is_continued(steps: Sequence[Step], index: int) -> bool:
    """Whether a step takes what the one before left in the accumulators."""
    if index >= len(steps):
        return False
    operation = steps[index].operation
    if not isinstance(operation, Convolution | Pooling | MatrixProduct):
        return False
    return operation.accumulators.initial is AccumulatorInput.KEPT


class _Same:
    """Whether operations of two programs do the same, their constants included."""

    def __init__(self, right: Simulator, wrong: Simulator) -> None:
        self._right = right
        self._wrong = wrong
        self._changed = {
            region: np.flatnonzero(data != wrong.program.constants[region])
            for region, data in right.program.constants.items()
        }

    def __call__(self, ours: Operation, theirs: Operation) -> bool:
        if _placeless(ours) != _placeless(theirs):
            return False
        a, b = (4 * (row.where.origin.command or 0) for row in (ours, theirs))
        one, other = self._right.plan.encoded.get(a), self._wrong.plan.encoded.get(b)
        tables = self._right.plan.tables.get(a), self._wrong.plan.tables.get(b)
        held = zip(_constants(one, tables[0]), _constants(other, tables[1]), strict=True)
        return all(np.array_equal(x, y) for x, y in held) and not self._reads_changed(ours)

    def _reads_changed(self, operation: Operation) -> bool:
        """Whether an operation reads constants that are changed, but those that are decoded."""
        return any(
            ((self._changed[region] >= low) & (self._changed[region] < high)).any()
            for region, low, high in _read(operation)
            if region in self._changed
        )


def _constants(encoded: Encoded | None, table: Array | None) -> list[Array]:
    nothing = np.zeros(0)
    rows = [nothing if table is None else table]
    if encoded is None:
        return [*rows, *[nothing] * 4]
    scales = encoded.scales
    return [*rows, encoded.weights, scales.bias, scales.multiplier, scales.shift]


def _mark(live: dict[int, Array], fm: FeatureMap, value: bool) -> None:
    for piece in pieces(fm):
        cell = f"V{piece.cell_bytes}"
        held = live[fm.region]
        cells = np.ndarray(piece.counts, cell, held.data, piece.offset, piece.strides)
        cells[...] = np.full(piece.cell_bytes, value).view(cell)


def _placeless(operation: Operation) -> tuple[object, ...]:
    return type(operation), *(
        getattr(operation, row.name) for row in fields(operation) if row.name != "where"
    )


def _read(operation: Operation) -> Iterator[tuple[int, int, int]]:
    """Return what an operation reads from memory: region, first byte, one past the last.

    Weights and scales of convolutions, and tables, are left out: plans have them decoded.
    """
    if isinstance(operation, Dma):
        yield from _moved(operation)
        return
    for fm in _maps(operation):
        for piece in pieces(fm):
            yield fm.region, *piece.extent
    if isinstance(operation, Pooling):
        for row in operation.scales:
            yield row.region, row.offset, row.offset + row.length


def _moved(operation: Dma) -> Iterator[tuple[int, int, int]]:
    source = operation.source
    if operation.indices is not None:
        yield operation.indices.stream.region, 0, MOST_BYTES
        yield source.region, 0, MOST_BYTES
    elif source.space is Space.EXTERNAL:
        for start, _ in transfers(operation):
            yield source.region, start, start + operation.length


def _maps(operation: Computation) -> list[FeatureMap]:
    match operation:
        case Elementwise():
            return operation.maps
        case Resize():
            return [operation.ifm]
        case MatrixProduct():
            maps = [operation.ifm, operation.weights]
        case _:
            maps = [operation.ifm]
    added = operation.accumulators.map
    return maps if added is None else [*maps, added]
