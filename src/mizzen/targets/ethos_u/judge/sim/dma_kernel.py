"""DMA_START between regions, with rows in order or by their indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.sim.memory import Memory, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Dma, DmaEnd

Array = npt.NDArray[Any]


def transfers(op: Dma) -> Iterator[tuple[int, int]]:
    """Return the source and destination offset of each run of `op.length` bytes."""
    for plane in range(op.planes):
        for line in range(op.rows):
            yield _start(op.source, plane, line), _start(op.destination, plane, line)


def _start(end: DmaEnd, plane: int, line: int) -> int:
    return end.offset + plane * end.plane_stride + line * end.row_stride


@dataclass(frozen=True, slots=True)
class DmaKernel:
    """A transfer between two regions."""

    operation: Dma

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        op = self.operation
        if op.indices is not None:
            return _IndexedRun(op, memory).run
        moves = [
            (
                memory.bytes(op.destination.region, target, op.length),
                memory.bytes(op.source.region, source, op.length),
            )
            for source, target in transfers(op)
        ]

        def run() -> None:
            for target, source in moves:
                target[...] = source

        return run


class _IndexedRun:
    """Rows of the side that has indices are taken by them, those of the other side in order."""

    def __init__(self, op: Dma, memory: Memory) -> None:
        assert op.indices is not None
        self.op = op
        self.batch = memory.batch
        self.planes = [self._plane(op, memory, plane) for plane in range(op.planes)]

    def _plane(self, op: Dma, memory: Memory, plane: int) -> tuple[Array, Array, Array]:
        assert op.indices is not None
        stream, count = op.indices.stream, op.indices.greatest + 1
        counted = (op.rows, count) if op.indices.scatters else (count, op.rows)
        return (
            memory.rows(stream.region, stream.offset + plane * op.indices.plane_stride,
                        4, op.rows, 4).view(np.int32)[..., 0],
            _rows(op.source, memory, plane, op.length, counted[0]),
            _rows(op.destination, memory, plane, op.length, counted[1]),
        )  # fmt: skip

    def run(self) -> None:
        """Execute for the whole batch."""
        for indices, source, destination in self.planes:
            for image in range(self.batch):
                self._move(indices[image], source[image], destination[image])

    def _move(self, indices: Array, source: Array, destination: Array) -> None:
        assert self.op.indices is not None
        greatest = self.op.indices.greatest
        if indices.size and (indices.min() < 0 or indices.max() > greatest):
            raise fail(
                "E643",
                f"{self.op.where.name}: an index must be in 0..{greatest}, and reaches "
                f"{int(indices.min())}..{int(indices.max())}",
                origin=self.op.where.origin,
                help="the indices are an input of the network or computed by it; keep them in "
                "range",
            )
        if self.op.indices.scatters:
            for place, index in enumerate(indices):
                destination[index] = source[place]
        else:
            destination[...] = source[indices]


def _rows(end: DmaEnd, memory: Memory, plane: int, length: int, count: int) -> Array:
    start = end.offset + plane * end.plane_stride
    return memory.rows(end.region, start, length, count, end.row_stride)
