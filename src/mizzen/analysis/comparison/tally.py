"""Counts of how two sides of a comparison differ, over any number of inferences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.report.comparison import Sample

Array = npt.NDArray[Any]


@dataclass(eq=False)
class Tally:
    """What was counted so far."""

    inferences: int = 0
    elements: int = 0
    differing: int = 0
    steps: float = 0
    first: Sample | None = None

    def add(self, npu: Array, reference: Array) -> None:
        """Count arrays `[N, *shape]` of one shape and type; NaN equals NaN."""
        differs = npu != reference
        if npu.dtype.kind == "f":
            differs &= ~(np.isnan(npu) & np.isnan(reference))
        self.elements += differs.size
        count = int(np.count_nonzero(differs))
        if count:
            self._add_different(npu, reference, differs, count)
        self.inferences += len(npu)

    def _add_different(self, npu: Array, reference: Array, differs: Array, count: int) -> None:
        real = npu.dtype.kind == "f"
        ours, theirs = npu[differs], reference[differs]
        wide = ours.astype(np.float64) - theirs.astype(np.float64)
        self.differing += count
        largest = float(np.abs(wide).max())
        self.steps = max(self.steps, largest if real else int(largest))
        if self.first is None:
            where = tuple(map(int, np.argwhere(differs)[0]))
            one, other = (float if real else int for _ in range(2))
            self.first = Sample(
                self.inferences + where[0], where[1:], one(npu[where]), other(reference[where])
            )

    @property
    def share(self) -> float:
        """The part that differs, 0 to 1."""
        return self.differing / max(1, self.elements)
