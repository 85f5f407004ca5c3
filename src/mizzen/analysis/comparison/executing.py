"""NPU operators of an artifact, executed operation by operation on what each has to be given."""

from __future__ import annotations

from collections.abc import Container, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mizzen.analysis.comparison.recognising import DISTINCT, Library, Part
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import KeptState
from mizzen.artifact.interface import Array, Values
from mizzen.artifact.program import INPUT, TracedOperation
from mizzen.artifact.steps import HostSide, NpuStep
from mizzen.diagnostics import Diagnostic, MizzenError

END = -1
"""Index of the end of a program, which takes its outputs."""


NOT_READ = "the operation"
"""Stands for the name of an operation whose settings cannot be read to their end."""


@dataclass(frozen=True, slots=True, eq=False)
class Executed:
    """An operation, and what it wrote.

    map    `[N, H, W, C]`; None of what writes no feature map
    parts  what of the network's tensors that is; nothing for what is in no tensor
    """

    trace: TracedOperation
    map: Array | None
    parts: tuple[Part, ...]

    @property
    def index(self) -> int:
        """Its index among the operations of the stream."""
        return self.trace.index

    @property
    def is_known(self) -> bool:
        """Whether it wrote what is in the network."""
        return bool(self.parts)

    @property
    def tells(self) -> bool:
        """Whether what it wrote can only come of what is right: few numbers may be so by chance."""
        known = self.map if self.is_known else None
        return known is not None and len(np.unique(known)) >= DISTINCT


@dataclass(frozen=True, slots=True)
class Stop:
    """An operation that cannot be executed, and why."""

    index: int
    offset_bytes: int
    kind: str
    fault: Diagnostic


@dataclass(frozen=True, eq=False)
class Execution:
    """The operations of a program in their order, and the end of it, which takes its outputs.

    inputs  what of the network's tensors each input is
    places  where tensors of its edge lie: region and first byte
    stopped what stops the program; then there are the operations before it alone
    """

    operations: tuple[Executed, ...]
    end: TracedOperation
    inputs: tuple[Part | None, ...]
    places: frozenset[tuple[int, int]] = frozenset()
    stopped: Stop | None = None

    @cached_property
    def by_index(self) -> dict[int, Executed]:
        """Operations by their index."""
        return {each.index: each for each in self.operations}

    def part_of(self, maker: int) -> tuple[Part, ...]:
        """Return what of the network's tensors a maker of bytes made."""
        if maker <= INPUT:
            part = self.inputs[INPUT - maker]
            return () if part is None else (part,)
        executed = self.by_index.get(maker)
        return () if executed is None else executed.parts


class Isolated(KeptState):
    """State of a row of inferences, in which each NPU operator is given what is right.

    So one that is wrong does not spoil those after it.

    right   what the artifact's tensors must hold, as far as that is known
    unread  outputs that nothing takes: tensors of which a stream only says where they lie
    """

    def __init__(
        self,
        artifact: Artifact,
        library: Library,
        right: Mapping[int, Array],
        unread: Container[int] = (),
    ) -> None:
        super().__init__()
        steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
        self._places = {id(step): place for place, step in enumerate(steps)}
        self.library = library
        self.right = right
        self._unread = unread
        self.executions: dict[int, Execution] = {}

    def infer(self, step: NpuStep | HostSide, values: Values, batch: int) -> None:
        """Compute a step. Raises what stops one, once its operations are seen that are not."""
        if not isinstance(step, NpuStep) or not step.family.can_trace:
            step.run(values, batch)
            return
        values.update((index, self.right[index]) for index in step.inputs if index in self.right)
        given = {index: np.array(values[index]) for index in step.inputs}
        place = self._places[id(step)]
        try:
            self.executions[place] = self._execution(step, step.simulator, values, batch, given)
        except MizzenError as error:
            seen = self._before(step, error.diagnostic, values, batch, given)
            if seen is not None:
                self.executions[place] = seen
            raise

    def _before(
        self,
        step: NpuStep,
        fault: Diagnostic,
        values: Values,
        batch: int,
        given: Mapping[int, Array],
    ) -> Execution | None:
        """Execute up to the first command that stops a stream; None where none is named."""
        stop = _stop(step, fault)
        if stop is None:
            return None
        values.update(given)
        program = step.family.before(step.program, stop.offset_bytes)
        try:
            simulator = step.family.simulator(program)
            seen = self._execution(step, simulator, values, batch, given)
        except MizzenError as error:
            earlier = error.diagnostic
            return self._before(_cut(step, program), earlier, values, batch, given)
        return replace(seen, stopped=stop)

    def _execution(
        self,
        step: NpuStep,
        simulator: Any,
        values: Values,
        batch: int,
        given: Mapping[int, Array],
    ) -> Execution:
        *operations, end = step.family.traced(simulator)
        offsets = [each.offset_bytes for each in operations]
        watched = step.family.watched(simulator, offsets)
        assert watched is not None, "what can be traced can be watched"
        step.run_on(watched.simulator, values, batch)
        maps = watched.maps
        executed = tuple(
            Executed(each, map_, () if map_ is None else tuple(self.library.parts(map_)))
            for each in operations
            for map_ in [maps.get(each.offset_bytes)]
        )
        inputs = tuple(_input(given[index], self.library) for index in step.inputs)
        outputs = zip(step.outputs, end.takes, strict=False)  # state comes after them
        read = tuple(taken for index, taken in outputs if index not in self._unread)
        places = frozenset((each.region, each.offset_bytes) for each in step.view.tensors)
        return Execution(executed, replace(end, takes=read), inputs, places)


def _cut(step: NpuStep, program: Any) -> NpuStep:
    """Return a step that executes another program."""
    other = copy(step)
    other.__dict__.pop("simulator", None)
    other.program = program
    return other


def _stop(step: NpuStep, fault: Diagnostic) -> Stop | None:
    """Return the operation that a fault names; of a setting, the one after it."""
    word = None if fault.origin is None else fault.origin.command
    if word is None:
        return None
    commands = [each for each in step.view.listing.lines if each.is_operation]
    index = sum(each.offset_words < word for each in commands)
    at = [each.name for each in commands if each.offset_words == word]
    return Stop(index, 4 * word, at[0] if at else NOT_READ, fault)


def _input(array: Array, library: Library) -> Part | None:
    parts = library.parts(array.reshape(len(array), 1, 1, -1))
    return parts[0] if parts else None
