"""Execute an artifact, and keep what its operators write into memory.

What is seen are the tensors between steps, each feature map that a command of an NPU operator
writes, and the results of operators on the CPU inside a run of them. A tensor of an NPU operator is
seen as the first step that is none takes it: in an arena later ones may have written the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import KeptState, execute
from mizzen.artifact.interface import Array, Values
from mizzen.artifact.steps import CpuStep, HostSide, NpuStep, Step, read_network
from mizzen.compiler.proof.written import Written, written
from mizzen.diagnostics import Origin
from mizzen.frontends.tflite import Model
from mizzen.package.tflite.extract import extract

Commands = Mapping[int, Sequence[tuple[int, int]]]
"""Place among the NPU operators to byte offsets of commands, and the layers that they are of."""


@dataclass(eq=False)
class Seen:
    """One inference of a batch.

    tensors  of the artifact, by its index, `[N, *shape]`
    inside   what each NPU operator wrote, by its place among them
    """

    tensors: dict[int, Array] = field(default_factory=dict[int, Array])
    inside: dict[int, tuple[Written, ...]] = field(default_factory=dict[int, tuple[Written, ...]])


def commands_of(origins: Sequence[Mapping[int, Origin]], layer_of: Mapping[Any, int]) -> Commands:
    """Return the commands of layers, by the origins that a compilation gives its streams.

    layer_of  index of a layer by what origins say of it: the operator's index, or its name
    """
    commands: dict[int, list[tuple[int, int]]] = {}
    for place, stream in enumerate(origins):
        listed = commands.setdefault(place, [])
        for offset, origin in stream.items():
            what = origin.operator if origin.operator is not None else origin.name
            if what in layer_of:
                listed.append((offset, layer_of[what]))
    return commands


class Observer:
    """An artifact that is executed under observation.

    commands  of layers in the streams, as far as they are known
    """

    def __init__(self, artifact: Artifact, commands: Commands) -> None:
        self.artifact = artifact
        self.commands = commands
        steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
        self.places = {id(step): place for place, step in enumerate(steps)}
        self.taken = dict(_first_taken(artifact.steps))
        self._shown = dict(_shown(artifact, self.taken))

    @property
    def keeps_state(self) -> bool:
        """Whether an inference may depend on those before it."""
        contents = self.artifact.contents
        return bool(contents.carried) or any(
            isinstance(step, NpuStep) and step.variables for step in contents.steps
        )

    def infer(self, arrays: Sequence[Sequence[Array]]) -> Iterator[Seen]:
        """Infer from the initial state: for each inference in a row its inputs, `[N, *shape]`."""
        state = _Watching(self)
        for inputs in arrays:
            state.seen = Seen()
            size = len(inputs[0]) if inputs else 1
            batch = Batch(size, Form.STACKED, tuple(inputs))
            outputs = execute(self.artifact.contents, batch, state)
            state.seen.tensors.update(zip(self.artifact.contents.outputs, outputs, strict=True))
            yield state.seen

    def shown(self, step: CpuStep) -> _Shown | None:
        """Return the network of a step that gives all of its tensors."""
        return self._shown.get(id(step))


class _Watching(KeptState):
    """State of a row of inferences, which looks at every step."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer
        self.seen = Seen()
        self._kernels: dict[int, _ShownKernels] = {}

    def infer(self, step: NpuStep | HostSide, values: Values, batch: int) -> None:
        """Compute a step, and keep what it gives."""
        if not isinstance(step, NpuStep):
            taken = self.observer.taken.get(id(step), ())
            self.seen.tensors.update({index: np.array(values[index]) for index in taken})
            step.run(values, batch)
            self.seen.tensors.update({index: np.array(values[index]) for index in step.outputs})
            return
        self._infer(step, values, batch)

    def _infer(self, step: NpuStep, values: Values, batch: int) -> None:
        place = self.observer.places[id(step)]
        commands = self.observer.commands.get(place, ())
        offsets = [offset for offset, _ in commands]
        watched = step.family.watched(step.simulator, offsets) if offsets else None
        if watched is None:
            step.run(values, batch)
        else:
            step.run_on(watched.simulator, values, batch)
            self.seen.inside[place] = written(commands, watched.maps)
        for position, index in enumerate(step.outputs):
            if position in step.final:
                self.seen.tensors[index] = np.array(values[index])
        for variable in step.variables:
            self.seen.tensors[variable.index] = np.array(values[variable.index])

    def kernels(self, position: int, step: CpuStep, batch: int) -> Any:
        """Return the kernels of a step's operators, and keeps what each of them gives."""
        shown = self.observer.shown(step)
        if shown is None:
            return super().kernels(position, step, batch)
        if position not in self._kernels:
            self._kernels[position] = _ShownKernels(shown, len(step.outputs), batch)
        kernels = self._kernels[position]
        kernels.seen = self.seen
        return kernels


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """A step's network that gives all of its tensors.

    taken  tensors that the step is the first to take of an NPU operator, and their places among
           its inputs
    """

    network: bytes
    origins: Sequence[Origin]
    outputs: tuple[int, ...]
    taken: Mapping[int, int]


class _ShownKernels:
    """Kernels of a step; they give more than it does, which is kept."""

    def __init__(self, shown: _Shown, outputs: int, batch: int) -> None:
        from mizzen.cpu.host import HostKernels

        self.seen = Seen()
        self._shown = shown
        self._outputs = outputs
        self._session = HostKernels(shown.network, shown.origins).session(batch)

    def run(self, inputs: Sequence[Array], batch: int) -> list[Array]:
        taken = self._shown.taken.items()
        self.seen.tensors.update({index: np.array(inputs[place]) for index, place in taken})
        outputs = self._session.run(inputs, batch)
        self.seen.tensors.update(zip(self._shown.outputs, outputs, strict=True))
        return outputs[: self._outputs]


def _first_taken(steps: Sequence[Step]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Return the tensors of NPU operators that a step is the first to take, by the step's id."""
    given: set[int] = set()
    for step in steps:
        if isinstance(step, NpuStep):
            given.update(step.outputs)
        else:
            taken = tuple(index for index in step.inputs if index in given)
            given.difference_update(taken)
            yield id(step), taken


def _shown(artifact: Artifact, taken: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, _Shown]]:
    steps = [step for step in artifact.steps if isinstance(step, CpuStep)]
    if not steps:
        return
    model = read_network(artifact.data, artifact.name)
    for step in steps:
        indices = [operator.index for operator in step.operators]
        part = extract(model.record, indices, shown=given_by(model, indices))
        places = {index: step.inputs.index(index) for index in taken[id(step)]}
        yield id(step), _Shown(part.network, step.origins, part.outputs, places)


def given_by(model: Model, operators: Sequence[int]) -> list[int]:
    """Return the tensors that operators compute, as far as they are arrays that go on."""
    main = model.main
    return [
        tensor.index
        for index in operators
        for tensor in main.present(main.operators[index].outputs)
        if tensor.dtype is not None and not tensor.variable
    ]
