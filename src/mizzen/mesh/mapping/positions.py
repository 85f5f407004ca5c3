"""Where the chips of a replica lie on the board."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.mesh.mapping.chip_net import ChipNet
from mizzen.mesh.mapping.splits import Floats, Ints


@dataclass(frozen=True, slots=True)
class Block:
    """Columns and rows of chips that one replica has; its copies fill the torus."""

    columns: int
    rows: int


def blocks_of(net: ChipNet, chips: int) -> list[Block]:
    """Return the blocks of so many chips whose copies fill the board, the squarest first."""
    machine = net.machine
    blocks = [
        Block(columns, chips // columns)
        for columns in range(1, machine.chip_columns + 1)
        if chips % columns == 0
        and machine.chip_columns % columns == 0
        and machine.chip_rows % (chips // columns) == 0
        and chips // columns <= machine.chip_rows
    ]
    return sorted(blocks, key=lambda block: (abs(block.columns - block.rows), block.columns))


def fold_of(net: ChipNet, block: Block) -> list[int]:
    """Return for each chip its place in the block that it is a copy of."""
    machine = net.machine
    x, y = machine.chip_x % block.columns, machine.chip_y % block.rows
    return (y * block.columns + x).tolist()


class Positions:
    """Searches chips for the parts of a template: of each place of the block one, in any copy.

    `bytes_between` are those of an image between any two parts. Parts change places as long as that
    brings what they send closer together.
    """

    def __init__(self, net: ChipNet, fold: list[int], bytes_between: Floats) -> None:
        self.fold = np.array(fold)
        self.between = bytes_between + bytes_between.T
        self.distances = net.distances

    def search(self, start: Ints, sweeps: int) -> Ints:
        """Return chips from which no exchange of two parts, nor a move to a copy, improves."""
        at = start.copy()
        for _ in range(sweeps):
            if not sum(self._improve(at, part) for part in range(len(at))):
                break
        return at

    def cost(self, at: Ints) -> float:
        """Return bytes times links."""
        return float((self.between * self.distances[np.ix_(at, at)]).sum() / 2)

    def _improve(self, at: Ints, part: int) -> bool:
        """Move a part to where its traffic costs least, exchanging it with who is there."""
        now = self.cost(at)
        holder = {int(self.fold[chip]): other for other, chip in enumerate(at)}
        best, least = None, now * (1 - 1e-9)
        alone = self.between[part] @ self.distances[at]
        for chip in np.argsort(alone, kind="stable")[:12].tolist():
            other = holder[int(self.fold[chip])]
            for back in self._copies(at, part, other, chip):
                trial = at.copy()
                trial[part] = chip
                if other != part:
                    trial[other] = back
                cost = self.cost(trial)
                if cost < least:
                    best, least = trial, cost
        if best is None:
            return False
        at[:] = best
        return True

    def _copies(self, at: Ints, part: int, other: int, chip: int) -> list[int]:
        """Return the chips that the part moved away may take: copies of the place left."""
        if other == part:
            return [chip]
        copies = np.flatnonzero(self.fold == self.fold[at[part]])
        alone = self.between[other] @ self.distances[at]
        return copies[np.argsort(alone[copies], kind="stable")[:2]].tolist()
