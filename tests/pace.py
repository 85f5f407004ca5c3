"""How slow this machine is, for budgets of time: they were set on another.

A budget in seconds is for the machine that it was set on. `slowness` says how much longer a fixed
piece of work takes here, so that twice the time on a machine of half the speed is within it, and
twice the time on the same machine is not.
"""

from __future__ import annotations

from time import process_time

ROUNDS = 40_000
REFERENCE_SECONDS = 0.0100
"""What `ROUNDS` of the work take on a core of the machine that budgets were set on."""


def _work() -> int:
    """Do what compilers written in Python do: look up, append, call, compare."""
    rows: list[int] = []
    places: dict[int, int] = {}
    for index in range(ROUNDS):
        rows.append(index & 255)
        places[index & 1023] = max(len(rows), places.get(rows[-1], 0))
    return len(places)


def slowness() -> float:
    """Return how many times slower than the reference this machine is, at least 1.

    The best of several runs, in seconds of the processor: what runs beside does not count.
    """
    best = float("inf")
    for _ in range(7):
        start = process_time()
        _work()
        best = min(best, process_time() - start)
    return max(1.0, best / REFERENCE_SECONDS)
