"""What the NPU operators of a network hand on in the memory that they share.

Vela plans one arena for a network. Beside the tensors that an NPU operator names it may read what
an earlier one left in scratch memory, and it works around what others need later. So its interface
is found anew, byte by byte: what it reads before it writes it, and of what it writes what someone
reads behind it. What is alive beside that is state of it which it never touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.artifact.steps import is_npu
from mizzen.compiler.ethos_u.generator.network import NpuPart
from mizzen.diagnostics import fail
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.model import ABSENT
from mizzen.targets.ethos_u.judge.hazards import (
    EMPTY,
    Intervals,
    Surroundings,
    Touched,
    merged,
    touched,
)
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex, TensorAddress

BYTE = np.dtype(np.int8)
Bytes = Mapping[int, Intervals]
"""Of each region, some bytes."""


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of a region from the first to the last that somebody means by them."""

    region: int
    start: int
    stop: int

    def meets(self, other: Run) -> bool:
        """Whether a byte is in both."""
        return self.region == other.region and self.start < other.stop and other.start < self.stop

    def over(self, other: Run) -> Run:
        """Return the run that both are in."""
        return Run(self.region, min(self.start, other.start), max(self.stop, other.stop))


@dataclass(frozen=True, slots=True, eq=False)
class Enclosed:
    """A program with an interface that leaves nothing out, and what it finds written.

    State is what goes on behind a program whatever it is: it is part of what a program takes, so
    that nothing else comes to lie there. Some of its bytes may hold nothing.

    kept  places, among what it takes, of state that it never writes to
    """

    program: Program
    held: Mapping[int, Sequence[tuple[int, int]]]
    kept: frozenset[int]

    @property
    def surroundings(self) -> Surroundings:
        """What code in the program's place finds in memory, and has to leave there."""
        return Surroundings(self.held, frozenset(range(len(self.program.outputs))), self.kept)


def enclosed(network: Model, parts: Sequence[NpuPart]) -> list[Enclosed]:
    """Return the programs of NPU operators, each with all that it takes, gives and keeps.

    Raises E581 where scratch memory is not all of the arena from its start, and as `touched` does.
    """
    return list(_Flow(network, parts).programs())


class _Flow:
    """What holds something, and what is read later, around each operator of a network."""

    def __init__(self, network: Model, parts: Sequence[NpuPart]) -> None:
        self._network = network
        self._offsets = ETHOS_U.arena_offsets(network)
        self._parts = {part.operator.index: part for part in parts}
        for part in parts:
            _require_start(network, part, self._offsets)
        self._touched = {index: list(touched(part.program)) for index, part in self._parts.items()}
        self._always = self._of(row.index for row in network.main.tensors if row.variable)
        self._held: dict[int, Bytes] = {}
        self._read: dict[int, Bytes] = {}
        self._needed: dict[int, Bytes] = {}
        self._go_on()
        self._go_back()

    def programs(self) -> Iterator[Enclosed]:
        for index, part in self._parts.items():
            found = _Interface(
                part.program, self._touched[index], self._held[index], self._needed[index]
            ).program()
            written = _written(self._touched[index])
            needed = _without(self._needed[index], written)
            held = _joined(_joined(needed, self._read[index]), self._named(part))
            runs = {region: list(bytes_.runs) for region, bytes_ in held.items()}
            kept = frozenset(
                at
                for at, row in enumerate(found.inputs)
                if row.variable and not _touches(written, _run_of(row))
            )
            yield Enclosed(found, runs, kept)

    def _named(self, part: NpuPart) -> Bytes:
        """Return all of the tensors that an operator names, whether or not its program reads it."""
        rows = [{row.region: _intervals(_run_of(row))} for row in part.program.inputs]
        return _both(_extent(rows), self._held[part.operator.index])

    def _go_on(self) -> None:
        held = _joined(self._always, self._of(self._network.main.inputs))
        for row in self._network.main.operators:
            if is_npu(row):
                self._held[row.index] = held
                found = _read_first(self._touched[row.index])
                self._read[row.index] = _both(_extent(found), held)
                held = _joined(held, _written(self._touched[row.index]))
            else:
                held = _joined(held, self._of(row.outputs))

    def _go_back(self) -> None:
        needed = _joined(self._always, self._of(self._network.main.outputs))
        for row in reversed(self._network.main.operators):
            if is_npu(row):
                self._needed[row.index] = needed
                needed = _without(needed, _written(self._touched[row.index]))
                needed = _joined(needed, self._read[row.index])
            else:
                needed = _without(needed, self._of(row.outputs))
                needed = _joined(needed, self._of(row.inputs))
            needed = _joined(needed, self._always)

    def _of(self, tensors: Iterable[int]) -> Bytes:
        """Return the bytes of tensors as far as they lie in the arena."""
        rows = [row for row in tensors if row != ABSENT and row in self._offsets]
        starts = np.array([self._offsets[row] for row in rows], np.int64)
        sizes = [self._network.main.tensors[row].size_bytes or 0 for row in rows]
        return {int(RegionIndex.SCRATCH): merged(starts, starts + np.array(sizes, np.int64))}


class _Interface:
    """The runs of bytes that a program takes, gives, and must keep."""

    def __init__(
        self, program: Program, steps: Sequence[Touched], held: Bytes, needed: Bytes
    ) -> None:
        self._program = program
        self._needed = needed
        written = _written(steps)
        self._written = written
        self._kept = _without(needed, written)
        named = [_run_of(row) for row in program.inputs]
        read = [run for rows in _read_first(steps) for run in _hulls(rows, held)]
        self._inputs = _grouped([*read, *(row for row in named if _any(row, read))])
        named = [_run_of(row) for row in program.outputs]
        self._outputs = _grouped(
            [*_left(steps, needed), *(row for row in named if _has(written, row))]
        )

    def program(self) -> Program:
        """Return the program with this interface."""
        states = self._states()
        inputs = [row for row in self._inputs if not _any(row, states)]
        outputs = [row for row in self._outputs if not _any(row, states)]
        own = self._program
        taken = [_row(row, own.inputs) for row in inputs]
        taken += [replace(_row(row, own.inputs), variable=True) for row in states]
        given = [_row(row, own.outputs) for row in outputs if self._is_needed(row)]
        sizes = dict(own.region_bytes)
        for row in (*inputs, *states, *outputs):
            sizes[row.region] = max(sizes.get(row.region, 0), row.stop)
        return replace(own, inputs=tuple(taken), outputs=tuple(given), region_bytes=sizes)

    def _is_needed(self, row: Run) -> bool:
        return _touches(self._needed, row)

    def _states(self) -> list[Run]:
        """Return what must be kept, and all that has a part in it."""
        runs = [
            Run(region, *pair)
            for region, rows in self._kept.items()
            for pair in rows.runs
            if region not in self._program.constants
        ]
        runs += [
            row for row in self._outputs if self._is_needed(row) and not _has(self._written, row)
        ]
        rest = [*self._inputs, *self._outputs]
        while True:
            runs = _grouped(runs)
            more = [row for row in rest if _any(row, runs) and row not in runs]
            rest = [row for row in rest if row not in more]
            if not more:
                return runs
            runs += more


def _row(run: Run, named: Iterable[TensorAddress]) -> TensorAddress:
    """Return the tensor that is just these bytes, else the bytes."""
    for row in named:
        if _run_of(row) == run:
            return replace(row, variable=False)
    name = f"bytes {run.start} to {run.stop}"
    return TensorAddress(name, (run.stop - run.start,), BYTE, run.region, run.start)


def _require_start(network: Model, part: NpuPart, offsets: Mapping[int, int]) -> None:
    scratch = part.operator.inputs[2]
    if offsets.get(scratch) != 0:
        raise fail(
            "E581",
            "scratch memory of an NPU operator must begin where the arena does, not at "
            f"{offsets.get(scratch)}",
            origin=network.origin(part.operator),
            help="nothing needs doing: the network has Vela's code",
        )


# Bytes


def _run_of(row: TensorAddress) -> Run:
    return Run(row.region, row.offset, row.offset + row.size_bytes)


def _intervals(run: Run) -> Intervals:
    return Intervals(np.array([run.start], np.int64), np.array([run.stop], np.int64))


def _joined(one: Bytes, other: Bytes) -> Bytes:
    return {row: one.get(row, EMPTY) | other.get(row, EMPTY) for row in {**one, **other}}


def _both(one: Bytes, other: Bytes) -> Bytes:
    return {row: one[row] & other[row] for row in one if row in other}


def _without(one: Bytes, other: Bytes) -> Bytes:
    return {row: bytes_ - other.get(row, EMPTY) for row, bytes_ in one.items()}


def _has(bytes_: Bytes, run: Run) -> bool:
    return not _intervals(run) - bytes_.get(run.region, EMPTY)


def _touches(bytes_: Bytes, run: Run) -> bool:
    return bool(_intervals(run) & bytes_.get(run.region, EMPTY))


def _any(run: Run, others: Iterable[Run]) -> bool:
    return any(run.meets(other) for other in others)


def _written(steps: Iterable[Touched]) -> Bytes:
    found: Bytes = {}
    for step in steps:
        for region, bytes_ in step.writes:
            found = _joined(found, {region: bytes_})
    return found


def _read_first(steps: Iterable[Touched]) -> list[Bytes]:
    """Return what is read before it is written, a row for each read of an operation."""
    found: list[Bytes] = []
    written: Bytes = {}
    for step in steps:
        for region, bytes_ in step.reads:
            found.append(_without({region: bytes_}, written))
        for region, bytes_ in step.writes:
            written = _joined(written, {region: bytes_})
    return found


def _extent(rows: Iterable[Bytes]) -> Bytes:
    found: Bytes = {}
    for row in rows:
        found = _joined(found, row)
    return found


def _hulls(rows: Bytes, held: Bytes) -> Iterator[Run]:
    for region, bytes_ in _both(rows, held).items():
        if bytes_:
            yield Run(region, bytes_.first, bytes_.end)


def _left(steps: Sequence[Touched], needed: Bytes) -> list[Run]:
    """Return what operations write that is needed behind all of them, a run for each."""
    found: list[Run] = []
    for step in reversed(steps):
        for region, bytes_ in step.writes:
            found += _hulls({region: bytes_}, needed)
            needed = _without(needed, {region: bytes_})
    return found


def _grouped(runs: Iterable[Run]) -> list[Run]:
    """Return runs, those that have bytes in common as one, in the order of their addresses."""
    found: list[Run] = []
    for run in sorted(runs, key=lambda row: (row.region, row.start, row.stop)):
        if found and found[-1].meets(run):
            found[-1] = found[-1].over(run)
        else:
            found.append(run)
    return found
