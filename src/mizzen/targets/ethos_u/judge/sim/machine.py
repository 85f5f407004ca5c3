"""The simulator: executes a program for a whole batch of inputs, bit for bit.

Commands execute in stream order, each once for all inputs of the batch. Waits and block
dependencies order work that hardware overlaps; in order execution already obeys all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, fail
from mizzen.targets.ethos_u.judge.sim.hardware import hardware_of
from mizzen.targets.ethos_u.judge.sim.memory import Memory, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.plan import Plan, plan
from mizzen.targets.ethos_u.judge.sim.watch import Watch
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

Array = npt.NDArray[Any]

MEMORY_BUDGET_BYTES = 1 << 28
"""A batch whose memory would be larger is executed in several parts; idle memory that is kept for
the next runs takes no more either."""

NOTHING = Watch(())

Bound = tuple[Memory, list[Run]]
"""Memory for a batch, and the plan's steps bound to it. One run at a time has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a run gives: arrays `[batch, *shape]` in the program's order, and notes."""

    outputs: tuple[Array, ...]
    variables: tuple[Array, ...]
    diagnostics: tuple[Diagnostic, ...]


class Simulator:
    """Executes one program; planning happens once, at construction.

    Any number of threads may run it at once: each run takes memory of its own and leaves it to the
    next one.

    Raises E5xx for a stream that cannot be decoded and E6xx for one that cannot be executed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.hardware = hardware_of(program.hardware)
        self.plan: Plan = plan(program, self.hardware)
        self._check_interface()
        self._idle: list[Bound] = []
        self._watch = NOTHING
        self._image_bytes = sum(
            size
            for region, size in (program.region_bytes | self.plan.chain_bytes).items()
            if region not in program.constants
        )

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What of the program is executed by inference, not by the example of a compiler."""
        return tuple(self.plan.diagnostics)

    def run(self, inputs: Sequence[Array], batch: int) -> Outcome:
        """Execute for `inputs`, one array `[batch, *shape]` per input of the program, in order."""
        parts = [
            self._run_part(
                [array[start : start + self._part] for array in inputs],
                min(self._part, batch - start),
            )
            for start in range(0, batch, self._part)
        ]
        outputs = [part[0] for part in parts]
        variables = [part[1] for part in parts]
        return Outcome(
            tuple(np.concatenate(same) for same in zip(*outputs, strict=True)),
            tuple(np.concatenate(same) for same in zip(*variables, strict=True)),
            tuple(self.plan.diagnostics),
        )

    def run_in(self, regions: Mapping[int, npt.NDArray[np.uint8]], batch: int) -> None:
        """Execute over memory that is not the program's own, `[batch, bytes]` for each region.

        The memory holds inputs and state at their addresses, and whatever else the program reads;
        outputs and the next state are there afterwards. No more of it is touched than commands do.
        """
        for start in range(0, batch, self._part):
            part = {
                region: held[start : start + self._part, : self.plan.used_bytes.get(region, 0)]
                for region, held in regions.items()
            }
            bound = self._take(min(self._part, batch - start))
            try:
                _execute_over(bound, part)
            finally:
                self._leave(bound)

    def over(self, regions: Mapping[int, npt.NDArray[np.uint8]]) -> list[Run]:
        """Return the steps of one inference over memory of somebody else's, in their order.

        `regions` are `[bytes]`, of at least the bytes that commands use; they may overlap. Nothing
        is copied: each step reads and writes that memory whenever it is called.
        """
        held = {region: memory[np.newaxis] for region, memory in regions.items()}
        memory = Memory(1, dict(self.plan.chain_bytes), self.program.constants, held)
        return self._watch.bind(self.plan.steps, memory, Workspace())

    def watched(self, watch: Watch) -> Simulator:
        """Return a simulator of the same plan that shows to `watch` what operations write."""
        other = copy(self)
        other._idle = []
        other._watch = watch
        return other

    @property
    def _part(self) -> int:
        return max(1, MEMORY_BUDGET_BYTES // max(1, self._image_bytes))

    def _run_part(self, inputs: list[Array], count: int) -> tuple[list[Array], list[Array]]:
        bound = self._take(count)
        try:
            return self._execute(bound, inputs)
        finally:
            self._leave(bound)

    def _execute(self, bound: Bound, inputs: list[Array]) -> tuple[list[Array], list[Array]]:
        memory, runs = bound
        for placement, array in zip(self.program.inputs, inputs, strict=True):
            np.copyto(_view(memory, placement), np.asarray(array, placement.dtype))
        for run in runs:
            run()
        outputs = [_view(memory, placement).copy() for placement in self.program.outputs]
        variables = [_view(memory, p).copy() for p in self.program.inputs if p.variable]
        return outputs, variables

    def _take(self, batch: int) -> Bound:
        """Return memory that no other run has: `pop` gives an element to one thread only."""
        try:
            bound = self._idle.pop()
        except IndexError:
            return self._bind(batch)
        return bound if bound[0].batch == batch else self._bind(batch)

    def _leave(self, bound: Bound) -> None:
        """Keep memory for the next run, as much as one part may take, and at least this."""
        size = bound[0].batch * self._image_bytes
        if (len(self._idle) + 1) * size > MEMORY_BUDGET_BYTES:
            self._idle.clear()
        self._idle.append(bound)

    def _bind(self, batch: int) -> Bound:
        sizes = {**self.program.region_bytes, **self.plan.chain_bytes}
        memory = Memory(batch, sizes, self.program.constants)
        return memory, self._watch.bind(self.plan.steps, memory, Workspace())

    def _check_interface(self) -> None:
        for placement in (*self.program.inputs, *self.program.outputs):
            if placement.region in self.program.constants:
                raise fail(
                    "E631",
                    f"tensor {placement.name!r} must lie in memory that the program writes, not "
                    f"among the constants of region {placement.region}",
                    help="the artifact is damaged; compile it again",
                )
            size = self.program.region_bytes.get(placement.region, 0)
            if placement.offset < 0 or placement.offset + placement.size_bytes > size:
                raise fail(
                    "E631",
                    f"tensor {placement.name!r} must lie in region {placement.region}, which has "
                    f"{size} bytes, not at {placement.offset}.."
                    f"{placement.offset + placement.size_bytes}",
                    help="the artifact is damaged; compile it again",
                )


def _execute_over(bound: Bound, regions: Mapping[int, npt.NDArray[np.uint8]]) -> None:
    memory, runs = bound
    for region, held in regions.items():
        memory.regions[region][:, : held.shape[1]] = held
    for run in runs:
        run()
    for region, held in regions.items():
        held[...] = memory.regions[region][:, : held.shape[1]]


def _view(memory: Memory, placement: TensorAddress) -> Array:
    buffer = memory.regions[placement.region]
    strides: list[int] = []
    step = placement.dtype.itemsize
    for extent in reversed(placement.shape):
        strides.insert(0, step)
        step *= extent
    return np.ndarray(
        (memory.batch, *placement.shape),
        placement.dtype,
        buffer.data,
        placement.offset,
        (buffer.strides[0], *strides),
    )
