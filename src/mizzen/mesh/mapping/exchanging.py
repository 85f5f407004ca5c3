"""Seats of a chip exchange elements until what they send each other goes the shortest ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.mesh.mapping.splits import Floats, Ints

MOST_ROUNDS = 400
AT_ONCE = 12
"""A round makes one exchange for so many seats, as long as that helps."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """What seats of a chip send each other, to gates of the chip, and get from there, in bytes.

    between   ``[seats, seats]``, from a row's seat to a column's
    leaving   ``[seats, routers]``
    entering  ``[seats, routers]``
    kinds     of each seat: seats of one kind may change places
    routers   of each seat's first place
    """

    between: Floats
    leaving: Floats
    entering: Floats
    kinds: Ints
    routers: Ints

    def search(self, distances: Floats) -> Ints:
        """Return places from which no exchange improves: for each seat, whose place it takes.

        `distances` are between routers, from rows to columns.
        """
        places = np.arange(len(self.kinds))
        apart = self.kinds[:, None] != self.kinds[None, :]
        now = self.cost(distances, places)
        for _ in range(MOST_ROUNDS):
            gains = np.where(apart, np.inf, self._changes(distances, places))
            trial = _exchanged(places, gains, max(1, len(places) // AT_ONCE))
            then = self.cost(distances, trial)
            if then >= now:
                trial = _exchanged(places, gains, 1)
                then = self.cost(distances, trial)
            if then >= now * (1 - 1e-9):
                break
            places, now = trial, then
        return places

    def cost(self, distances: Floats, places: Ints) -> float:
        """Return bytes times distance."""
        at = self.routers[places]
        total = (self.between * distances[np.ix_(at, at)]).sum()
        total += (self.leaving * distances[at, :]).sum()
        return float(total + (self.entering * distances[:, at].T).sum())

    def _changes(self, distances: Floats, places: Ints) -> Floats:
        """Return the change of the cost when two seats exchange their places."""
        at = self.routers[places]
        near = distances[np.ix_(at, at)]
        alone = self.between @ near.T + self.between.T @ near
        alone += self.leaving @ distances[at, :].T + self.entering @ distances[:, at]
        stays = np.diag(alone)
        pair = (self.between + self.between.T) * (near + near.T)
        return alone + alone.T - stays[:, None] - stays[None, :] + pair


def _exchanged(places: Ints, gains: Floats, most: int) -> Ints:
    """Return places after the best exchanges, none of a seat twice."""
    exchanged, moved = places.copy(), set[int]()
    order = np.argsort(gains, axis=None, kind="stable")[: most * 8]
    for at in order.tolist():
        one, other = divmod(at, len(places))
        if gains[one, other] >= 0 or len(moved) >= 2 * most:
            break
        if one not in moved and other not in moved:
            exchanged[one], exchanged[other] = places[other], places[one]
            moved |= {one, other}
    return exchanged
