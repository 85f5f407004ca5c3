"""Who made what the operations of an Ethos-U program take, and where their results lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mizzen.artifact.program import CONSTANT, INPUT, NOBODY, Extent, Taken, TracedOperation
from mizzen.diagnostics import Origin
from mizzen.isa import Kind
from mizzen.targets.ethos_u.judge.sim import makers
from mizzen.targets.ethos_u.judge.sim.dma_kernel import transfers
from mizzen.targets.ethos_u.judge.sim.makers import Named, Names, operands_of
from mizzen.targets.ethos_u.judge.sim.memory import pieces
from mizzen.targets.ethos_u.judge.sim.operations import (
    FIRST_CHAIN,
    INTERNAL,
    NOWHERE,
    AccumulatorInput,
    Convolution,
    Dma,
    FeatureMap,
    MatrixProduct,
    Operation,
    Pooling,
    Space,
    Stream,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.plan import Plan
from mizzen.targets.ethos_u.machine.program import Program

EVERYTHING = 1 << 62
"""Up to where indices may read."""

PLACE = np.uint64((1 << makers.PLACE_BITS) - 1)
INPUT_PLACE = np.uint64((makers.INPUT >> makers.PLACE_BITS) - 1)
"""Bits of a maker's number that have the place of an input, below the mark that it is one."""


def traced(program: Program, plan: Plan) -> Iterator[TracedOperation]:
    """Yield the operations of a stream in their order, and the end of the program."""
    tracer = _Tracer(_indices(program), frozenset(program.constants))
    loads = list(plan.loads)
    for each in makers.named(program, plan):
        while loads and (each.operation is None or _offset(loads[0]) < _offset(each.operation)):
            yield tracer.traced(Named(loads.pop(0), 0, ()))
        yield tracer.traced(each)


def _offset(operation: Operation) -> int:
    return 4 * (operation.where.origin.command or 0)


def _indices(program: Program) -> dict[int, int]:
    """Return the index of each operation by the byte offset of its command."""
    operations = (row for row in program.instructions if row.command.kind is Kind.OPERATION)
    return {4 * row.offset_words: index for index, row in enumerate(operations)}


@dataclass(eq=False)
class _Tracer:
    """Gives indices of operations for the numbers that name bytes.

    fixed   the regions of constants
    chains  the operation that wrote a chain buffer last, by its region
    sums    the one that left its sums in the accumulators
    """

    indices: dict[int, int]
    fixed: frozenset[int]
    _numbers: list[int] = field(default_factory=lambda: [NOBODY])
    _chains: dict[int, int] = field(default_factory=dict[int, int])
    _sums: int = NOBODY

    def traced(self, named: Named) -> TracedOperation:
        operation = named.operation
        if operation is None:
            takes = tuple(self._taken(names, None) for names in named.takes)
            return TracedOperation(-1, -1, "", None, takes)
        offset = _offset(operation)
        index = self.indices[offset]
        if named.number:
            self._numbers.append(index)
        maps = operands_of(operation)
        seen = [fm for fm in maps if fm.region > FIRST_CHAIN]
        takes = tuple(
            self._taken(names, seen[place] if place < len(seen) else None)
            for place, names in enumerate(named.takes)
        )
        passed = tuple(self._passed(operation, maps))
        gives = self._gives(operation, index)
        settings = replace(operation, where=Where(operation.where.name, Origin()))
        constants = tuple(each for each in _reads(operation) if each[0] in self.fixed)
        return TracedOperation(
            index, offset, operation.where.name, settings, takes, passed, gives, constants,
            _table(operation),
        )  # fmt: skip

    def _passed(self, operation: Operation, maps: list[FeatureMap]) -> Iterator[int]:
        yield from (self._chains[fm.region] for fm in maps if fm.region <= FIRST_CHAIN)
        if (
            isinstance(operation, Convolution | Pooling | MatrixProduct)
            and operation.accumulators.initial is AccumulatorInput.KEPT
        ):
            yield self._sums

    def _gives(self, operation: Operation, index: int) -> Extent | None:
        if isinstance(operation, Dma):
            return None
        fm = operation.output.fm
        if fm.region == NOWHERE:
            self._sums = index
            return None
        if fm.region <= FIRST_CHAIN:
            self._chains[fm.region] = index
        return _extent(fm)

    def _taken(self, names: Names, fm: FeatureMap | None) -> Taken:
        first = names if fm is None else names[..., :: fm.dtype.itemsize]
        numbers: npt.NDArray[np.uint64] = first >> np.uint64(makers.PLACE_BITS)
        known = np.array(self._numbers, np.int32)
        is_input = (first & np.uint64(makers.INPUT)) != 0
        is_constant = (first & np.uint64(makers.CONSTANT)) != 0
        of_input = INPUT - (numbers & INPUT_PLACE).astype(np.int32)
        made = known[np.where(is_input | is_constant, 0, numbers).astype(np.intp)]
        made = np.where(is_constant, CONSTANT, np.where(is_input, of_input, made))
        places = (first & PLACE).astype(np.int64)
        return Taken(made.astype(np.int32), places, None if fm is None else _extent(fm))


def _extent(fm: FeatureMap) -> Extent:
    ends = [piece.extent for piece in pieces(fm)]
    own = fm.height * fm.width * fm.depth * fm.dtype.itemsize
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return Extent(fm.region, fm.bases[0], low, high, own)


def _reads(operation: Operation) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of bytes that an operation may read, whatever is there."""
    if isinstance(operation, Dma):
        if operation.indices is None:
            for source, _ in transfers(operation):
                yield operation.source.region, source, source + operation.length
        else:
            yield operation.source.region, 0, EVERYTHING
            yield operation.indices.stream.region, 0, EVERYTHING
        return
    for extent in map(_extent, operands_of(operation)):
        yield extent.region, extent.low, extent.high
    streams: list[Stream] = []
    if isinstance(operation, Convolution):
        streams += [*operation.weights, *operation.scales]
    elif isinstance(operation, Pooling):
        streams += operation.scales
    table = operation.output.activation.table
    streams += [] if table is None else [table]
    yield from ((each.region, each.offset, each.offset + each.length) for each in streams)


def _table(operation: Operation) -> tuple[int, int] | None:
    """Return what of the NPU's own memory a transfer loads, or a function takes."""
    if isinstance(operation, Dma):
        end = operation.destination
        own = end.space is Space.INTERNAL
        return (end.offset, end.offset + operation.length * operation.rows) if own else None
    table = operation.output.activation.table
    if table is None or table.region != INTERNAL:
        return None
    return table.offset, table.offset + table.length
