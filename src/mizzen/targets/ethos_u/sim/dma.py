"""DMA_START between regions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.targets.ethos_u.sim.memory import Memory, Run, Workspace
from mizzen.targets.ethos_u.sim.operations import Dma


def transfers(op: Dma) -> Iterator[tuple[int, int]]:
    """Give the source and destination offset of each run of `op.length` bytes."""
    source, destination = op.source.offset, op.destination.offset
    for _ in range(op.planes):
        for _ in range(op.rows):
            yield source, destination
            source += op.length
            destination += op.length + op.skip_row
        destination += op.skip_plane


@dataclass(frozen=True, slots=True)
class DmaKernel:
    """A transfer between two regions."""

    operation: Dma

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        op = self.operation
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
