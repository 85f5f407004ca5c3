"""Executing an artifact's steps on a batch, with the state that goes on between inferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mizzen.artifact.arena import Arena, ArenaValues
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.control_step import ControlStep, Execute, Rows
from mizzen.artifact.interface import Array, Carried, TensorInfo, Values, Variable
from mizzen.artifact.steps import CpuStep, HostSide, NpuStep, Step
from mizzen.diagnostics import fail
from mizzen.frontends.tflite import Signature

if TYPE_CHECKING:
    from mizzen.cpu.host import HostKernels, HostSession


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What an artifact holds, or one of its subgraphs: tensors by index, the steps between them.

    arena       where its tensors lie, if its steps share memory
    index       of the subgraph, and `title` what it is called; empty where there is one
    below       the subgraphs that its steps execute, by index
    others      of the main subgraph: the further ones that have steps of their own
    signatures  of the main subgraph: what may be executed by name
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    infos: dict[int, TensorInfo]
    steps: tuple[Step, ...]
    constants: dict[int, Array]
    carried: tuple[Carried, ...] = ()
    arena: Arena | None = None
    index: int = 0
    title: str = ""
    below: Mapping[int, Contents] = field(default_factory=dict[int, "Contents"])
    others: tuple[Contents, ...] = ()
    signatures: tuple[Signature, ...] = ()

    @property
    def keeps_state(self) -> bool:
        """Whether an inference leaves something to the next one besides what is carried."""
        below = any(subgraph.keeps_state for subgraph in self.below.values())
        return below or any(map(_keeps_state, self.steps))


def _keeps_state(step: Step) -> bool:
    match step:
        case NpuStep():
            return bool(step.variables)
        case CpuStep():
            return step.keeps_state
        case _:
            return False


VALUES_BUDGET_BYTES = 1 << 28
"""What the tensors between the steps may take at once; a larger batch is inferred in parts."""
FIRST_PART = 64
"""Inferences after which it is known how much one of them takes."""


def execute_in_parts(contents: Contents, batch: Batch) -> list[Array]:
    """Infer a batch whose inferences all start anew; returns the outputs, `[N, *shape]`."""
    edge = sum(info.size_bytes for info in contents.infos.values())
    largest = batch.size if contents.arena is None else contents.arena.largest_batch
    part = min(FIRST_PART, largest, _fitting(edge))
    if batch.size <= part:
        return execute(contents, batch, NoState())
    outputs: list[Array] = []
    start = 0
    while start < batch.size:
        stop = min(start + part, batch.size)
        values = _values(contents, batch.part(start, stop), NoState())
        results = [values[index] for index in contents.outputs]
        if not start:
            outputs = [np.empty((batch.size, *array.shape[1:]), array.dtype) for array in results]
        for whole, array in zip(outputs, results, strict=True):
            whole[start:stop] = array
        taken = sum(array.nbytes for array in values.values())
        part = min(largest, _fitting(taken // (stop - start)))
        start = stop
    return outputs


def _fitting(inference_bytes: int) -> int:
    return max(1, VALUES_BUDGET_BYTES // max(1, inference_bytes))


def execute(contents: Contents, batch: Batch, state: NoState) -> list[Array]:
    """Infer a batch; returns the outputs, `[N, *shape]`."""
    values = _values(contents, batch, state)
    # An output may be an input, a constant or state: the caller gets arrays of its own.
    return [np.array(values[index]) for index in contents.outputs]


def _values(contents: Contents, batch: Batch, state: NoState) -> Values:
    """Compute the tensors of all steps for a batch, `[N, *shape]`. E719 for want of memory."""
    try:
        return _computed(contents, batch, state)
    except MemoryError as error:
        raise fail(
            "E719",
            f"the memory of {batch.size} inferences must be there, and is not: {error}",
            help="the artifact may ask for more than its network needs; compile it again, or stop "
            "other programs",
        ) from None


def _computed(
    contents: Contents, batch: Batch, state: NoState, begun: Mapping[int, Array] | None = None
) -> Values:
    """Compute the tensors of all steps.

    begun  what is carried, for a subgraph that another one executes
    """
    values: Values = {}
    if contents.arena is not None:
        values = ArenaValues(contents.arena, batch.size)
    values.update(zip(contents.inputs, batch.arrays, strict=True))
    for index, constant in contents.constants.items():
        values[index] = np.broadcast_to(constant, (batch.size, *constant.shape))
    if begun is None:
        state.begin(contents.carried, values, batch.size)
    else:
        values.update(begun)
    for position, step in enumerate(contents.steps):
        match step:
            case NpuStep():
                state.provide(step.variables, values, batch.size)
                state.infer(step, values, batch.size)
                state.keep(step.variables, values)
            case CpuStep():
                inputs = [values[index] for index in step.inputs]
                kernels = state.kernels(position, step, batch.size)
                outputs = kernels.run(inputs, batch.size)
                values.update(zip(step.outputs, outputs, strict=True))
            case ControlStep():
                step.run(values, batch.size, _executor(contents, values, state))
            case _:
                state.infer(step, values, batch.size)
    if begun is None:
        state.end(contents.carried, values)
    return values


def _executor(contents: Contents, values: Values, state: NoState) -> Execute:
    """Return a function that executes a subgraph for some inferences, beside what is carried."""
    shared = [each.write for each in contents.carried]

    def execute_rows(index: int, indices: Rows, arrays: Sequence[Array]) -> list[Array]:
        callee = contents.below[index]
        if not callee.keeps_state:
            return one(callee, indices, arrays, NoState())
        parts = [
            one(callee, indices[at : at + 1], [array[at : at + 1] for array in arrays],
                state.inside(callee.index, int(inference)))
            for at, inference in enumerate(indices)
        ]  # fmt: skip
        return [np.concatenate(outputs) for outputs in zip(*parts, strict=True)]

    def one(callee: Contents, indices: Rows, arrays: Sequence[Array], kept: NoState) -> list[Array]:
        infos = (callee.infos[index] for index in callee.inputs)
        given = [array.reshape(len(indices), *info.shape)
                 for array, info in zip(arrays, infos, strict=True)]  # fmt: skip
        begun = {index: values[index][indices] for index in shared}
        results = _computed(callee, Batch(len(indices), Form.STACKED, tuple(given)), kept, begun)
        for index in shared:
            values[index] = _with_rows(values[index], indices, results[index])
        return [np.array(results[index]) for index in callee.outputs]

    return execute_rows


def _with_rows(whole: Array, indices: Rows, some: Array) -> Array:
    changed = np.array(whole)
    changed[indices] = some
    return changed


class NoState:
    """Every inference starts anew."""

    def __init__(self) -> None:
        self._inside: dict[tuple[int, int], KeptState] = {}

    def inside(self, subgraph: int, inference: int) -> KeptState:
        """Return the state of a subgraph that is executed for one inference of the batch.

        It goes on from one execution in an inference to the next.
        """
        return self._inside.setdefault((subgraph, inference), KeptState())

    def begin(self, carried: Sequence[Carried], values: Values, batch: int) -> None:
        """Put the state between steps into `values`."""
        for state in carried:
            values[state.read] = np.broadcast_to(state.initial, (batch, *state.initial.shape))

    def end(self, carried: Sequence[Carried], values: Values) -> None:
        """Nothing outlives an inference."""

    def provide(self, variables: Sequence[Variable], values: Values, batch: int) -> None:
        """Put the state of an NPU operator into `values`."""
        for variable in variables:
            if variable.index not in values:
                values[variable.index] = variable.start(batch)

    def infer(self, step: NpuStep | HostSide, values: Values, batch: int) -> None:
        """Compute a step that is not TFLite Micro's; who wants to see inside does it otherwise."""
        step.run(values, batch)

    def keep(self, variables: Sequence[Variable], values: Values) -> None:
        """Nothing outlives an inference."""

    def kernels(self, position: int, step: CpuStep, batch: int) -> HostKernels | HostSession:
        """Return the kernels of a step's operators."""
        return step.kernels


class KeptState(NoState):
    """State of a session: variables of NPU operators, interpreters of CPU operators."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: dict[int, Array] = {}
        self._carried: dict[int, Array] = {}
        self._sessions: dict[int, HostSession] = {}
        self._subgraphs: dict[int, KeptState] = {}

    def of(self, subgraph: int) -> KeptState:
        """Return the state of a subgraph; what is carried is the same for all."""
        state = self._subgraphs.setdefault(subgraph, KeptState())
        state._carried = self._carried
        return state

    def begin(self, carried: Sequence[Carried], values: Values, batch: int) -> None:
        """Put the state that the last call left into `values`."""
        super().begin(carried, values, batch)
        values.update({state.read: value for state in carried
                       if (value := self._carried.get(state.read)) is not None})  # fmt: skip

    def end(self, carried: Sequence[Carried], values: Values) -> None:
        """Keep the state between steps for the next call."""
        for state in carried:
            self._carried[state.read] = values[state.write]

    def provide(self, variables: Sequence[Variable], values: Values, batch: int) -> None:
        """Put the state of an NPU operator into `values`."""
        for variable in variables:
            if variable.index in self._variables:
                values[variable.index] = self._variables[variable.index]
        super().provide(variables, values, batch)

    def keep(self, variables: Sequence[Variable], values: Values) -> None:
        """Keep the state of an NPU operator for the next call."""
        for variable in variables:
            self._variables[variable.index] = np.array(values[variable.index])

    def kernels(self, position: int, step: CpuStep, batch: int) -> HostKernels | HostSession:
        """Return the kernels of a step's operators."""
        if position not in self._sessions:
            self._sessions[position] = step.kernels.session(batch)
        return self._sessions[position]
