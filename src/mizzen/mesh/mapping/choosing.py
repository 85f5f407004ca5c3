"""One split for each layer, within the elements that there are, for the least traffic."""

from __future__ import annotations

import numpy as np

from mizzen.mesh.mapping.splits import Ints


def least_traffic(options: list[tuple[Ints, Ints, Ints]], elements: int) -> tuple[int, ...]:
    """Return one option of each layer so that their elements suffice and traffic is least.

    An option has elements, traffic, and the index that is returned. Dynamic programming over the
    layers and the elements used: exact.
    """
    cost = np.full(elements + 1, np.inf)
    cost[0] = 0
    taken: list[Ints] = []
    for needed, traffic, _ in options:
        reached = np.full((len(needed), elements + 1), np.inf)
        for row, (count, more) in enumerate(zip(needed.tolist(), traffic.tolist(), strict=True)):
            if count <= elements:
                reached[row, count:] = cost[: elements + 1 - count] + more
        taken.append(np.argmin(reached, axis=0))
        cost = reached.min(axis=0)
    return _traced(options, taken, int(np.argmin(cost)))


def _traced(
    options: list[tuple[Ints, Ints, Ints]], taken: list[Ints], used: int
) -> tuple[int, ...]:
    picks: list[int] = []
    for (needed, _, index), best in zip(reversed(options), reversed(taken), strict=True):
        row = int(best[used])
        picks.append(int(index[row]))
        used -= int(needed[row])
    return tuple(reversed(picks))
