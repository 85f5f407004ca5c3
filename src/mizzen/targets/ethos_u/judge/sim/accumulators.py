"""Accumulators that do not simply start from zero and end in the output.

An operation may start from a feature map or from what the operation before it left, and may leave
its own sums for the next one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import AccumulatorInput, Accumulators

Array = npt.NDArray[Any]


class Sums:
    """The sums of an operation over a batch: what they start from, and where they stay."""

    def __init__(
        self,
        accumulators: Accumulators,
        shape: tuple[int, int, int],
        memory: Memory,
        workspace: Workspace,
    ) -> None:
        self._zero_point = 0
        self._view = None
        if accumulators.map is not None:
            self._view = MapView(accumulators.map, memory, workspace, "ifm2")
            self._zero_point = accumulators.map.zero_point
        self._kept = None
        if accumulators.initial is AccumulatorInput.KEPT or not accumulators.written:
            self._kept = memory.accumulators(shape)
        self._starts = accumulators.initial is not AccumulatorInput.ZERO
        self._stays = not accumulators.written

    def __call__(self, added: Array, start: int, stop: int, rows: slice) -> Array | None:
        """Add to the sums of images `start:stop`; returns None if they stay where they are."""
        if self._starts:
            added = added.astype(np.int64) + self._initial(start, stop)[:, rows]
        if not self._stays:
            return added
        assert self._kept is not None
        self._kept[start:stop, rows] = added
        return None

    def _initial(self, start: int, stop: int) -> Array:
        if self._view is None:
            assert self._kept is not None
            return self._kept[start:stop]
        return self._view.load(start, stop).astype(np.int64) - self._zero_point


def initial_bound(accumulators: Accumulators) -> int:
    """Largest absolute value that accumulators can hold before an operation adds to them."""
    match accumulators.initial:
        case AccumulatorInput.ZERO:
            return 0
        case AccumulatorInput.MAP:
            assert accumulators.map is not None
            return accumulators.map.magnitude
        case AccumulatorInput.KEPT:
            return 1 << (accumulators.bits - 1)
