"""What single operations of a stream write, for those who want to see inside."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import NOWHERE, Dma
from mizzen.targets.ethos_u.judge.sim.plan import Step

Array = npt.NDArray[Any]


class Watch:
    """Copies feature maps as soon as they are written.

    offsets_bytes  of the operations' commands in the stream; those that write no feature map are
                   never seen
    """

    def __init__(self, offsets_bytes: Collection[int]) -> None:
        self._offsets = frozenset(offsets_bytes)
        self._seen: dict[int, list[Array]] = {}

    @property
    def maps(self) -> dict[int, Array]:
        """The feature maps by offset, `[batch, H, W, C]` in the order of their bytes' meaning."""
        return {offset: np.concatenate(parts) for offset, parts in self._seen.items()}

    def bind(self, steps: Sequence[Step], memory: Memory, workspace: Workspace) -> list[Run]:
        """Return the steps' runs, with one that copies after each that is watched."""
        runs: list[Run] = []
        for step in steps:
            runs.append(step.kernel.bind(memory, workspace))
            offset = 4 * (step.operation.where.origin.command or 0)
            if offset not in self._offsets or isinstance(step.operation, Dma):
                continue
            fm = step.operation.output.fm
            if fm.region != NOWHERE:
                view = MapView(fm, memory, workspace, "watched")
                runs.append(self._copier(offset, view, memory.batch))
        return runs

    def _copier(self, offset: int, view: MapView, batch: int) -> Run:
        kept = self._seen.setdefault(offset, [])
        return lambda: kept.append(view.load(0, batch).copy())
