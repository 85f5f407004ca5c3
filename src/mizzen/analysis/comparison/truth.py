"""What every tensor of a network must hold, and which tensors of an artifact these are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike

import numpy as np

from mizzen.analysis.comparison.integers import IntegerReference
from mizzen.analysis.comparison.recognising import Reference
from mizzen.analysis.comparison.tflm import MicroReference
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import TFLITE, TOSA, compile_file, front_end_of, source_of
from mizzen.compiler.folding import computed_once
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.regions import graph_stimuli
from mizzen.compiler.source import Source
from mizzen.compiler.tflite_stimuli import network_stimuli
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.tflite import Model
from mizzen.frontends.tosa import read
from mizzen.graph import Graph, Value
from mizzen.reference import evaluate_batch

MESA_TENSOR = "tensor_"
"""What tensors are called whose file has only their numbers in the network."""

REFUSED = ("E702", "E706")
"""What says that TensorFlow Lite Micro does not take a network."""


class Truth(ABC):
    """A network whose tensors are computed by its reference, by numbers of its own."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __init__(self, source: Source | None = None) -> None:
        self._source = source
        self._compiled: dict[str, Artifact | None] = {}

    def compiled(self, accelerator: str | None) -> Artifact | None:
        """Return what is made of the network now; None where that is not known or not possible."""
        if self._source is None or accelerator is None:
            return None
        if accelerator not in self._compiled:
            self._compiled[accelerator] = _compiled(self._source, accelerator)
        return self._compiled[accelerator]

    @abstractmethod
    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""

    @abstractmethod
    def values(self, inputs: Sequence[Array]) -> Mapping[int, Array]:
        """Return all tensors, `[N, *shape]`."""

    @abstractmethod
    def references(self, values: Mapping[int, Array]) -> Iterator[Reference]:
        """Return the tensors that differ from one inference to the next, in the network's order."""

    @abstractmethod
    def names(self) -> Mapping[str, int]:
        """Return tensors by those names that only one has."""

    def tensors_of(self, artifact: Artifact, values: Mapping[int, Array]) -> dict[int, Array]:
        """Return what an artifact's tensors must hold, as far as it is known which they are.

        Of a stream whose tensors have numbers, inputs that are none of the network's hold zeros:
        nothing has written there. E831 for other inputs that are not the network's.
        """
        contents = artifact.contents
        known = self.inputs_of(artifact) | dict(self._named(artifact))
        right: dict[int, Array] = {}
        for index, key in known.items():
            array, info = values.get(key), contents.infos[index]
            if array is not None and array.nbytes == len(array) * info.size_bytes:
                plain = np.ascontiguousarray(array).reshape(len(array), -1)
                right[index] = plain.view(info.dtype).reshape(len(array), *info.shape)
        size = max((len(array) for array in right.values()), default=1)
        for index in contents.inputs:
            info = contents.infos[index]
            if index not in right and is_numbered(artifact):
                right[index] = np.zeros((size, *info.shape), info.dtype)
            elif index not in right:
                raise fail(
                    "E831",
                    f"{artifact.name} must take what the network does, and its input "
                    f'"{info.name}" is none of the network\'s',
                    help="give the network that the artifact was compiled from",
                )
        return right

    def holds(
        self, artifact: Artifact, outputs: Sequence[Array], values: Mapping[int, Array]
    ) -> bool:
        """Whether outputs of an artifact are what they must be."""
        known = self.outputs_of(artifact)
        held = dict(zip(artifact.contents.outputs, outputs, strict=True))
        return set(known.values()) == set(self.outputs) and all(
            held[index].tobytes() == np.ascontiguousarray(values[key]).tobytes()
            for index, key in known.items()
        )

    def inputs_of(self, artifact: Artifact) -> dict[int, int]:
        """Return which of the network's inputs those of an artifact are."""
        return dict(_paired(artifact, artifact.contents.inputs, self.inputs))

    def outputs_of(self, artifact: Artifact) -> dict[int, int]:
        """Return which of the network's outputs those of an artifact are."""
        return dict(_paired(artifact, artifact.contents.outputs, self.outputs))

    def _named(self, artifact: Artifact) -> Iterator[tuple[int, int]]:
        """Yield the tensors between steps that have the name of one of the network."""
        names = self.names()
        edge = {*artifact.contents.inputs, *artifact.contents.outputs}
        between = {
            index
            for step in artifact.steps
            if isinstance(step, NpuStep)
            for index in (*step.inputs, *step.outputs)
        }
        for index in between - edge:
            info = artifact.contents.infos.get(index)
            if info is not None and info.name in names:
                yield index, names[info.name]


def _compiled(source: Source, accelerator: str) -> Artifact | None:
    target = resolve_target(CompileOptions(accelerator))
    try:
        return compile_file(source, target, None)
    except MizzenError:
        return None


def is_numbered(artifact: Artifact) -> bool:
    """Whether an artifact's tensors are called by their numbers in the network, as Mesa's are."""
    infos = (*artifact.inputs, *artifact.outputs)
    return bool(infos) and all(_number(info.name) is not None for info in infos)


def _number(name: str) -> int | None:
    number = name.removeprefix(MESA_TENSOR)
    return int(number) if number.isdecimal() and number != name else None


def _paired(
    artifact: Artifact, ours: Sequence[int], theirs: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield tensors at an artifact's edge with the network's: by number, else in order."""
    if is_numbered(artifact):
        for index in ours:
            key = _number(artifact.contents.infos[index].name)
            if key is not None and key in theirs:
                yield index, key
    elif len(ours) == len(theirs):
        yield from zip(ours, theirs, strict=True)


class TfliteTruth(Truth):
    """A TFLite network on TensorFlow Lite Micro's kernels, or its graph of integers."""

    def __init__(self, model: Model, source: Source | None = None) -> None:
        super().__init__(source)
        self.model = computed_once(model)
        self.inputs = tuple(model.main.inputs)
        self.outputs = tuple(model.main.outputs)

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        return network_stimuli(self.model, count, seed)

    def values(self, inputs: Sequence[Array]) -> Mapping[int, Array]:
        """Return all tensors, `[N, *shape]`."""
        try:
            (values,) = MicroReference(self.model).infer([inputs], [{}])
        except MizzenError as error:
            if error.diagnostic.code not in REFUSED:
                raise
            (values,) = IntegerReference(self.model).infer([inputs], [{}])
        return values

    def references(self, values: Mapping[int, Array]) -> Iterator[Reference]:
        """Return the inputs, and what operators give, in order of execution."""
        main = self.model.main
        for index in main.inputs:
            yield Reference(main.tensors[index].name, Origin(), values[index])
        for operator in main.operators:
            origin = self.model.origin(operator)
            for index in operator.outputs:
                if index in values and values[index].size:
                    yield Reference(main.tensors[index].name, origin, values[index])

    def names(self) -> Mapping[str, int]:
        """Return tensors by those names that only one has."""
        return _alone((tensor.name, tensor.index) for tensor in self.model.main.tensors)


class TosaTruth(Truth):
    """A TOSA graph, as the specification means it."""

    def __init__(self, graph: Graph, source: Source | None = None) -> None:
        super().__init__(source)
        self.graph = graph
        made = [result for operation in graph for result in operation.results]
        self._numbers = {value: place for place, value in enumerate([*graph.inputs, *made])}
        self.inputs = tuple(self._numbers[value] for value in graph.inputs)
        self.outputs = tuple(self._numbers[value] for value in graph.outputs)

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        return graph_stimuli(self.graph, count, seed)

    def values(self, inputs: Sequence[Array]) -> Mapping[int, Array]:
        """Return all tensors, `[N, *shape]`."""
        numbers, values = self._numbers, dict[int, Array]()

        def trace(value: Value, array: Array) -> None:
            values[numbers[value]] = array

        count = len(inputs[0]) if inputs else 1
        outputs = evaluate_batch(self.graph, inputs, count, trace=trace)
        values.update(zip(self.inputs, inputs, strict=True))
        values.update(zip(self.outputs, outputs, strict=True))
        return values

    def references(self, values: Mapping[int, Array]) -> Iterator[Reference]:
        """Return the inputs, and what operations give that are no constants, in their order."""
        for value, key in self._numbers.items():
            if value.constant is None and key in values and values[key].size:
                made = None if value.producer is None else value.producer.origin
                yield Reference(value.name, made or Origin(), values[key])

    def names(self) -> Mapping[str, int]:
        """Return tensors by those names that only one has."""
        return _alone((value.name, key) for value, key in self._numbers.items())


def _alone(pairs: Iterator[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, list[int]] = {}
    for name, index in pairs:
        found.setdefault(name, []).append(index)
    return {name: members[0] for name, members in found.items() if len(members) == 1}


def truth_of(network: str | PathLike[str] | bytes) -> Truth:
    """Return a network's truth. E832 for a file that has none here."""
    source = source_of(network)
    match front_end_of(source):
        case form if form is TFLITE:
            return TfliteTruth(read_network(source.data, source.name), source)
        case form if form is TOSA:
            return TosaTruth(read(source.data, source.name), source)
        case form:
            raise fail(
                "E832",
                "what single operations of a stream must give is known for networks of TFLite and "
                f"TOSA, and {source.name} is of {form.name}",
                help="give an artifact of `mizzen compile`, with its report beside it; `mizzen "
                "compare` says which layer differs",
            )
