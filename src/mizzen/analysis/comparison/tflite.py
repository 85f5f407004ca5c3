"""Compare a compiled TFLite network with TensorFlow Lite Micro, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mizzen.analysis.comparison.bisection import first_difference
from mizzen.analysis.comparison.integers import NAME as INTEGERS
from mizzen.analysis.comparison.integers import IntegerReference
from mizzen.analysis.comparison.layers import Key, Layers
from mizzen.analysis.comparison.matching import Matcher, nearest
from mizzen.analysis.comparison.observing import Observer, Seen, commands_of
from mizzen.analysis.comparison.tally import Tally
from mizzen.analysis.comparison.tflm import MicroReference, layers_of
from mizzen.analysis.comparison.truth import TfliteTruth
from mizzen.analysis.comparison.verdict import Bounds, judged, outputs_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.backend import NetworkMeaning, PartMeaning
from mizzen.compiler.folding import computed_once
from mizzen.compiler.proof.difference import is_within
from mizzen.compiler.tflite_stimuli import network_stimuli, values_bytes
from mizzen.cpu.device import kernels_name
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.variables import VARIABLE_KINDS, assigned_last
from mizzen.report.comparison import (
    ConstantsComparison,
    FirstDifference,
    LayerComparison,
    OutputComparison,
)

IN_ROUNDINGS = "the network in the NPU's own roundings"
"""The reference where the NPU rounds otherwise than the kernels of the CPU."""

REFUSED = ("E702", "E706")
"""What says that TensorFlow Lite Micro does not take a network."""

MOST_PASSES = 64
"""How often the reference goes on from layers that differ within their bounds."""


@dataclass(eq=False)
class TfliteComparison:
    """An artifact and the TFLite network that it was made of.

    bounds   how far tensors of the network may differ
    meaning  what NPU operators must give, of an NPU whose roundings are others than the kernels'
    right    what is made of the network now, where the artifact was made before
    """

    model: Model
    artifact: Artifact
    bounds: Bounds
    meaning: NetworkMeaning | None = None
    constants: ConstantsComparison | None = None
    right: Artifact | None = None
    reference: str = field(default_factory=kernels_name)
    _rounded: dict[Key, Tally] = field(default_factory=dict[Key, Tally])
    _bounded: dict[Key, Tally] = field(default_factory=dict[Key, Tally])
    _tensors: dict[Key, Tally] = field(default_factory=dict[Key, Tally])

    def __post_init__(self) -> None:
        self.name = self.model.name
        report = self.artifact.report
        self.layers: Layers = layers_of(self.model, report)
        indices = {operator.index: operator.index for operator in self.model.main.operators}
        origins = () if report is None else report.origins
        self.observer = Observer(self.artifact, commands_of(origins, indices))
        self.matcher = Matcher(self.layers)
        self._computed = computed_once(self.model)
        self.micro: MicroReference | IntegerReference = MicroReference(self._computed)
        self._keys = dict(_model_tensors(self.model, self.artifact))
        self._outputs = [Tally() for _ in self.model.main.outputs]
        self._parts = () if self.meaning is None else tuple(self._judges(self.meaning))
        if self._parts:
            self.reference = IN_ROUNDINGS

    @property
    def keeps_state(self) -> bool:
        """Whether an inference may depend on those before it."""
        main = self.model.main
        return (
            self.observer.keeps_state
            or any(tensor.variable for tensor in main.tensors)
            or any(operator.kind in VARIABLE_KINDS for operator in main.operators)
        )

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        return values_bytes(self.model)

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        return network_stimuli(self.model, count, seed)

    def add(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Compare inferences in a row, each of a batch: for each its inputs, `[N, *shape]`."""
        seen = list(self.observer.infer(inputs))
        values = self._reference(inputs, seen)
        for one, truth in zip(seen, values, strict=True):
            self._count(one, truth)

    def first_difference(self, inputs: Sequence[Array]) -> FirstDifference | None:
        """Return the first operation of a stream that is wrong; of NPUs that can be watched."""
        return first_difference(self.artifact, TfliteTruth(self.model), inputs, right=self.right)

    def result(self) -> tuple[tuple[LayerComparison, ...], tuple[OutputComparison, ...]]:
        """Return the comparisons of layers, and of outputs."""
        main = self.model.main
        names = [main.tensors[index].name for index in main.outputs]
        maps = self.matcher.found()
        rounded = {
            key: tally
            for key, tally in self._rounded.items()
            if tally.differing and key in self._tensors and not self._tensors[key].differing
        }
        bounded = self._bounded | rounded
        layers = judged(
            self.layers,
            self._tensors,
            maps,
            self.bounds,
            bounded,
            rounded,
            inside=bool(maps),
            whole=bool(self._parts),
        )
        return layers, outputs_of(names, main.outputs, self._outputs, bounded, rounded)

    def _judges(self, meaning: NetworkMeaning) -> Iterator[PartMeaning]:
        """Return the meaning of each NPU operator, in order."""
        for step in self.artifact.steps:
            if isinstance(step, NpuStep):
                takes, gives = (
                    [self._keys[index] for index in side if index in self._keys]
                    for side in (step.inputs, step.outputs)
                )
                yield meaning.part(takes, gives)

    def _meant(self, inputs: Sequence[Array], seen: Seen) -> dict[int, Array]:
        """Return the arrays that NPU operators should have given, by the model's tensors."""
        main, tensors = self.model.main, self.model.main.tensors
        values = dict(zip(main.inputs, inputs, strict=True)) | {
            key: array.reshape(len(array), *tensors[key].shape)
            for index, array in seen.tensors.items()
            if (key := self._keys.get(index)) is not None
        }
        size = len(inputs[0]) if inputs else 1
        meant: dict[int, Array] = {}
        for part in self._parts:
            meant |= part.infer(values, size)
        return meant

    def _reference(
        self, inputs: Sequence[Sequence[Array]], seen: Sequence[Seen]
    ) -> list[dict[int, Array]]:
        """Return the reference's tensors, computed from the NPU's where these are within bounds."""
        known: list[dict[int, Array]] = [{} for _ in inputs]
        values = self._first(inputs, known)
        for _ in range(MOST_PASSES):
            key = self._within(seen, values, known)
            if key is None:
                break
            for given, one, truth in zip(known, seen, values, strict=True):
                array = self._nearest(one, key, truth[key])
                assert array is not None
                self._bounded.setdefault(key, Tally()).add(array, truth[key])
                given[key] = array
            values = self.micro.infer(inputs, known)
        return values if self.meaning is None else self._rounded_as(inputs, seen, values)

    def _rounded_as(
        self,
        inputs: Sequence[Sequence[Array]],
        seen: Sequence[Seen],
        values: Sequence[Mapping[int, Array]],
    ) -> list[dict[int, Array]]:
        """Return the reference's tensors with those of the NPU in its own roundings."""
        meant = [self._meant(*pair) for pair in zip(inputs, seen, strict=True)]
        for exact, plain in zip(meant, values, strict=True):
            for key, array in exact.items():
                self._rounded.setdefault(key, Tally()).add(array, plain[key])
        if any(not step.on_npu for step in self.artifact.steps):
            values = self.micro.infer(inputs, meant)
        return [{**plain, **exact} for plain, exact in zip(values, meant, strict=True)]

    def _first(
        self, inputs: Sequence[Sequence[Array]], known: Sequence[Mapping[int, Array]]
    ) -> list[dict[int, Array]]:
        """Return the reference's tensors; of integers alone where the kernels take no such network.

        Only for single inferences: the graph of integers keeps no state.
        """
        try:
            return self.micro.infer(inputs, known)
        except MizzenError as error:
            if error.diagnostic.code not in REFUSED or len(inputs) > 1:
                raise
        self.micro, self.reference = IntegerReference(self._computed), INTEGERS
        return self.micro.infer(inputs, known)

    def _within(
        self,
        seen: Sequence[Seen],
        values: Sequence[Mapping[int, Array]],
        known: Sequence[Mapping[int, Array]],
    ) -> int | None:
        """Return the first tensor that differs within its bound, and that has not been told yet."""
        for layer in self.layers.rows:
            for key in layer.gives:
                bound = self.bounds.get(key)
                if bound is None or not isinstance(key, int) or key in known[0]:
                    continue
                differs = False
                for one, truth in zip(seen, values, strict=True):
                    array = self._nearest(one, key, truth[key])
                    if array is None:
                        break
                    if not is_within(array, truth[key], bound.steps, bound.part):
                        break
                    differs |= bool((array != truth[key]).any())
                else:
                    if differs:
                        return key
        return None

    def _nearest(self, seen: Seen, key: int, truth: Array) -> Array | None:
        """Return the NPU's array for a tensor."""
        for index, place in self._keys.items():
            array = seen.tensors.get(index)
            if place == key and array is not None and array.size == truth.size:
                return array.reshape(truth.shape)
        layer = self.layers.maker[key]
        maps = (written for inside in seen.inside.values() for written in inside)
        return nearest(self.layers, maps, layer, key, truth)

    def _count(self, seen: Seen, truth: Mapping[int, Array]) -> None:
        for index, array in seen.tensors.items():
            key = self._keys.get(index)
            reference = None if key is None else truth.get(key)
            if reference is None or not _fits(array, reference):
                continue
            self._tensors.setdefault(key, Tally()).add(array.reshape(reference.shape), reference)
        for place, maps in seen.inside.items():
            for written in maps:
                self.matcher.add(place, written, truth)
        given = self.artifact.contents.outputs
        for tally, index, key in zip(self._outputs, given, self.model.main.outputs, strict=True):
            tally.add(seen.tensors[index].reshape(truth[key].shape), truth[key])


def _fits(array: Array, reference: Array) -> bool:
    return array.dtype == reference.dtype and array.size == reference.size


def _model_tensors(model: Model, artifact: Artifact) -> Iterator[tuple[int, int]]:
    """Return the model's tensors that those of an artifact are, by the names that are unique.

    State that an NPU operator keeps has the name of a variable's handle: it is what is assigned.
    """
    contents = artifact.contents
    yield from zip(contents.inputs, model.main.inputs, strict=True)
    yield from zip(contents.outputs, model.main.outputs, strict=True)
    network = read_network(artifact.data, artifact.name)
    ours, theirs = _unique(network), _unique(model)
    next_state = assigned_last(model.main)
    for name, index in ours.items():
        if name in theirs and index not in (*contents.inputs, *contents.outputs):
            yield index, next_state.get(theirs[name], theirs[name])


def _unique(model: Model) -> dict[str, int]:
    indices: dict[str, list[int]] = {}
    for tensor in model.main.tensors:
        indices.setdefault(tensor.name, []).append(tensor.index)
    return {name: members[0] for name, members in indices.items() if len(members) == 1}
