"""Which operation made each byte that an operation reads, whatever memory plan the bytes lie in.

Two streams with the same operations compute the same only if each reads what the same operation
wrote. Addresses do not say so: another memory plan has others. So memory is gone through with the
name of its maker in the place of each byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.dma_kernel import transfers
from mizzen.targets.ethos_u.judge.sim.memory import Piece, pieces
from mizzen.targets.ethos_u.judge.sim.operations import (
    FIRST_CHAIN,
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    Indices,
    MatrixProduct,
    Operation,
    Pooling,
    Space,
)
from mizzen.targets.ethos_u.judge.sim.plan import Plan
from mizzen.targets.ethos_u.machine.program import Program

Names = npt.NDArray[np.uint64]

PLACE_BITS = 40
"""A byte's name is its maker's number, and in the low bits its place in what that one wrote."""

CONSTANT, INPUT = 1 << 63, 1 << 62
"""Marks of bytes that no operation makes: constants, which are called by their values; inputs."""

NO_NAMES = np.zeros(0, np.uint64)

NAME_BYTES = np.dtype(np.uint64).itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """An operation, and the name of every byte that it takes.

    operation None for the end of the program, which takes its outputs and its next state
    number    by which it names what it writes; 0 for transfers, which only move names
    takes     names of the feature maps that it computes with, `[H, W, bytes]`, then those of its
              written weights, or of what a transfer by indices may take, `[bytes]`
    """

    operation: Operation | None
    number: int
    takes: tuple[Names, ...]


def named(program: Program, plan: Plan) -> Iterator[Named]:
    """Go through a stream with the name of its maker in the place of each byte.

    A chain buffer holds what the operation before wrote: it is checked where the stream is planned.
    """
    memory = _NamedBytes(program, plan)
    number = 0
    for step in plan.steps:
        operation = step.operation
        if isinstance(operation, Dma) and operation.indices is None:
            memory.move(operation)
            yield Named(operation, 0, ())
            continue
        number += 1
        encoded = 4 * (operation.where.origin.command or 0) in plan.encoded
        yield Named(operation, number, tuple(memory.read(operation, encoded)))
        memory.write(operation, number)
    yield Named(None, 0, tuple(memory.of_outputs(program)))


def makers_of(program: Program, plan: Plan) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Return, by the byte offset of each operation's command, a digest of what each operand is."""
    for each in named(program, plan):
        if each.operation is not None and each.takes:
            digests = [_digest(names) for names in each.takes]
            yield 4 * (each.operation.where.origin.command or 0), np.array(digests, np.int64)


def operands_of(operation: Operation) -> list[FeatureMap]:
    """Return the feature maps that an operation computes with, accumulators' initial ones last."""
    match operation:
        case Elementwise():
            return operation.maps
        case MatrixProduct():
            maps = [operation.ifm, operation.weights]
        case Dma():
            return []
        case _:
            maps = [operation.ifm]
    if isinstance(operation, Convolution | Pooling | MatrixProduct):
        initial = operation.accumulators.map
        maps += [] if initial is None else [initial]
    return maps


def _digest(names: Names) -> int:
    digest = blake2b(np.ascontiguousarray(names).data, digest_size=NAME_BYTES).digest()
    return int.from_bytes(digest, "little", signed=True)


class _NamedBytes:
    def __init__(self, program: Program, plan: Plan) -> None:
        self._constants = program.constants
        self._names: dict[int, Names] = {
            region: np.zeros(used, np.uint64)
            for region, used in plan.used_bytes.items()
            if region not in program.constants
        }
        for place, tensor in enumerate(program.inputs):
            names = self._names.get(tensor.region)
            if names is not None:
                held = names[tensor.offset : tensor.offset + tensor.size_bytes]
                held[...] = _named(INPUT | place << PLACE_BITS, len(held))

    def of_outputs(self, program: Program) -> Iterator[Names]:
        """Return the names of the bytes of each output, then of the next state.

        What no command reaches has none.
        """
        states = (tensor for tensor in program.inputs if tensor.variable)
        for tensor in (*program.outputs, *states):
            names = np.zeros(tensor.size_bytes, np.uint64)
            held = self._names.get(tensor.region, NO_NAMES)[tensor.offset :][: len(names)]
            names[: len(held)] = held
            yield names

    def read(self, operation: Operation, has_constant_weights: bool) -> Iterator[Names]:
        """Return the names of what an operation takes, map by map, in the order of its elements."""
        yield from (self._map(fm) for fm in operands_of(operation) if fm.region > FIRST_CHAIN)
        if isinstance(operation, Convolution) and not has_constant_weights:
            yield from (
                self._run(each.region, each.offset, each.length) for each in operation.weights
            )
        if isinstance(operation, Dma) and operation.indices is not None:
            stream = operation.indices.stream
            yield self._run(stream.region, stream.offset, stream.length)
            yield from self._indexed(operation, operation.indices)
            if operation.indices.scatters:
                yield from self._kept(operation, operation.indices)

    def _indexed(self, op: Dma, indices: Indices) -> Iterator[Names]:
        """Return the names of all bytes that rows may be taken from, plane by plane."""
        lines = op.rows if indices.scatters else indices.greatest + 1
        reach = (lines - 1) * op.source.row_stride
        for plane in range(op.planes):
            first = op.source.offset + plane * op.source.plane_stride
            yield self._run(op.source.region, first + min(reach, 0), abs(reach) + op.length)

    def _kept(self, op: Dma, indices: Indices) -> Iterator[Names]:
        """Return the names of all bytes that rows may be put into: those that are not stay."""
        reach = indices.greatest * op.destination.row_stride
        for plane in range(op.planes):
            first = op.destination.offset + plane * op.destination.plane_stride
            yield self._run(op.destination.region, first + min(reach, 0), abs(reach) + op.length)

    def _run(self, region: int, offset: int, length: int) -> Names:
        if region in self._constants:
            data: npt.NDArray[Any] = self._constants[region][offset : offset + length]
            return data.astype(np.uint64) | np.uint64(CONSTANT)
        return self._names[region][offset : offset + length]

    def _map(self, fm: FeatureMap) -> Names:
        dense = np.zeros((fm.height, fm.width, fm.depth * fm.dtype.itemsize), np.uint64)
        for piece in pieces(fm):
            low, high = piece.extent
            cells = _cells(self._run(fm.region, low, high - low), piece, piece.offset - low)
            _part(dense, fm, piece)[...] = cells
        return dense

    def write(self, operation: Operation, number: int) -> None:
        """Name what an operation writes; all that an index may reach, of a transfer by indices."""
        if isinstance(operation, Dma):
            self._scatter(operation, number)
            return
        fm = operation.output.fm
        if fm.region <= FIRST_CHAIN:
            return
        shape = fm.height, fm.width, fm.depth * fm.dtype.itemsize
        dense = _named(number << PLACE_BITS, int(np.prod(shape))).reshape(shape)
        names = self._names[fm.region]
        for piece in pieces(fm):
            _cells(names, piece, piece.offset)[...] = _part(dense, fm, piece)

    def _scatter(self, op: Dma, number: int) -> None:
        assert op.indices is not None
        lines = op.indices.greatest + 1 if op.indices.scatters else op.rows
        end = op.destination
        for plane in range(op.planes):
            for line in range(lines):
                start = end.offset + plane * end.plane_stride + line * end.row_stride
                names = _named(number << PLACE_BITS | (plane * lines + line) * op.length, op.length)
                self._names[end.region][start : start + op.length] = names

    def move(self, op: Dma) -> None:
        """Let the names of bytes go with them; the NPU's own memory holds tables alone."""
        if op.destination.space is Space.INTERNAL:
            return
        for source, target in transfers(op):
            names = self._run(op.source.region, source, op.length).copy()
            self._names[op.destination.region][target : target + op.length] = names


def _named(first: int, count: int) -> Names:
    return np.arange(count, dtype=np.uint64) + np.uint64(first)


def _cells(names: Names, piece: Piece, offset: int) -> Names:
    """Return a view `[y, x, c, byte]` of a piece whose first byte is at `offset`."""
    strides = [NAME_BYTES * stride for stride in piece.strides]
    shape = *piece.counts, piece.cell_bytes
    return np.ndarray(shape, np.uint64, names.data, NAME_BYTES * offset, (*strides, NAME_BYTES))


def _part(dense: Names, fm: FeatureMap, piece: Piece) -> Names:
    """Return a view `[y, x, c, byte]` of a piece in a dense map `[y, x, byte]`."""
    size = fm.dtype.itemsize
    part = dense[piece.ys, piece.xs, piece.cs.start * size : piece.cs.stop * size]
    height, width, columns = piece.counts
    row_bytes, column, byte = part.strides
    shape = height, width, columns, piece.cell_bytes
    return np.lib.stride_tricks.as_strided(
        part, shape, (row_bytes, column, piece.cell_bytes * byte, byte)
    )
