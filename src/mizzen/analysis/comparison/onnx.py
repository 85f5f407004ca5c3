"""Compare a compiled ONNX network with ONNX Runtime, layer by layer.

A layer is judged by itself: ONNX Runtime computes it, as one session of one thread, from what the
artifact gave to it, so a layer is not blamed for those before it. ONNX Runtime rounds a product of
real numbers where the NPU has integers alone, and the two differ by a step at ties; a difference of
one step is within the promise, and is told. What the NPU wrote is held, bit for bit, against the
integers that the network was lowered to.

The outputs are beside a session of the whole network, as the user would run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mizzen.analysis.comparison.layers import Key, Layer, Layers
from mizzen.analysis.comparison.matching import Matcher
from mizzen.analysis.comparison.observing import Observer, Seen, commands_of
from mizzen.analysis.comparison.tally import Tally
from mizzen.analysis.comparison.verdict import judged, outputs_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.artifact.onnx_steps import OrtStep, require_runtime
from mizzen.compiler.assembly import HostPart
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.numbering import edges_of, operator_numbers
from mizzen.compiler.onnx.compile import Compiled, compiled
from mizzen.compiler.onnx.host import is_edge
from mizzen.compiler.proof.stimuli import Stimulus, stimuli, stimulus
from mizzen.compiler.source import Source
from mizzen.diagnostics import Device, ProgressCallback, fail
from mizzen.frontends.onnx.lowering.notes import QUANTIZE, step_of
from mizzen.frontends.onnx.writing import submodel
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Custom
from mizzen.reference import evaluate_batch
from mizzen.report.comparison import (
    ConstantsComparison,
    FirstDifference,
    LayerComparison,
    OutputComparison,
)
from mizzen.targets.bounds import Bound

NAME = "ONNX Runtime"

HOPS = 8
"""Layers after another that its commands may compute as well."""

STEPS = 1
"""How far an operator may be from ONNX Runtime's. Ref: docs/explanation/exactness.md."""


def onnx_beside(
    source: Source,
    target: ResolvedTarget,
    artifact: Artifact | None,
    on_progress: ProgressCallback | None,
) -> OnnxComparison:
    """Compile a network and return it beside ONNX Runtime. E195 where that is not installed."""
    if artifact is not None:
        raise fail(
            "E489",
            f"an artifact must be compiled now to be compared with {source.name}: "
            f"{artifact.name} does not say which of its tensors are the network's",
            help="leave out --artifact: the same network is compiled to the same artifact",
        )
    require_runtime()
    return OnnxComparison(source, compiled(source, target, on_progress))


@dataclass(eq=False)
class OnnxComparison:
    """An artifact and the network that it was made of."""

    source: Source
    made: Compiled
    constants: ConstantsComparison | None = None
    reference: str = NAME
    _exact: dict[Key, Tally] = field(default_factory=dict[Key, Tally])
    _seen: dict[Key, Tally] = field(default_factory=dict[Key, Tally])

    def __post_init__(self) -> None:
        self.name = self.source.name
        self.artifact = self.made.artifact
        self.layers = layers_of(self.made)
        report = self.artifact.report
        indices = {layer.index: layer.index for layer in self.layers.rows}
        origins = () if report is None else report.origins
        self.observer = Observer(self.artifact, commands_of(origins, indices))
        self.matcher = Matcher(self.layers, HOPS)
        self._numbers: dict[Value, int] = {}
        self._steps = dict(self._own_steps())
        self._whole = _whole(self.made, self.name)
        self._outputs = [Tally() for _ in self.made.lowering.graph.outputs]

    @property
    def keeps_state(self) -> bool:
        """Whether an inference may depend on those before it: what is kept, callers keep."""
        return False

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        values = (value for operation in self.made.lowering.graph for value in operation.results)
        return max(1, sum(value.dtype.numpy.itemsize * value.type.elements for value in values))

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        return stimuli(list(map(input_stimulus, self.made.lowering.graph.inputs)), count, seed)

    def add(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Compare inferences in a row, each of a batch: for each its inputs, `[N, *shape]`."""
        for arrays, seen in zip(inputs, self.observer.infer(inputs), strict=True):
            size = len(arrays[0]) if arrays else 1
            values = self._values(arrays, seen, size)
            for place, maps in seen.inside.items():
                for written in maps:
                    self.matcher.add(place, written, values)
            self._add_layers(values, size)
            self._add_outputs(arrays, seen)

    def _values(self, arrays: Sequence[Array], seen: Seen, size: int) -> dict[Key, Array]:
        """Return the values of the graph: what the steps gave, and integers between these."""
        results: dict[Key, Array] = {}

        def seen_of(value: Value) -> Array | None:
            index = self.made.tensors.get(value)
            array = None if index is None else seen.tensors.get(index)
            return None if array is None else array.reshape(size, *value.shape)

        def trace(value: Value, array: Array) -> Array | None:
            held = seen_of(value)
            if held is not None and value in self.layers.maker:
                self._seen.setdefault(value, Tally()).add(held, array)
            results[value] = array if held is None else held
            return held

        def custom(operation: Custom, operands: Sequence[Array]) -> list[Array]:
            return [
                np.zeros((size, *value.shape), value.dtype.numpy)
                if (held := seen_of(value)) is None else held
                for value in operation.results
            ]  # fmt: skip

        graph = self.made.lowering.graph
        given = [
            array.reshape(size, *value.shape)
            for array, value in zip(arrays, graph.inputs, strict=True)
        ]
        evaluate_batch(graph, given, size, trace=trace, custom=custom)
        return results | dict(zip(graph.inputs, given, strict=True))

    def _own_steps(self) -> Iterator[tuple[Layer, OrtStep]]:
        """Return what computes each layer by itself; nothing for what ONNX Runtime computed."""
        for layer, group in zip(self.layers.rows, _groups(self.made), strict=True):
            if layer.device is Device.NPU and layer.gives:
                part = HostPart((group,), layer.gives, (layer.kind,))
                step = self.made.lowering.host_step(part, self._number)
                assert isinstance(step, OrtStep)
                yield layer, step

    def _number(self, value: Value) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _add_layers(self, values: Mapping[Key, Array], size: int) -> None:
        for layer, step in self._steps.items():
            held = {index: values[key] for key, index in self._numbers.items() if key in values}
            taken = {index: held[index] for index in step.inputs}
            step.run(taken, size)
            for key in layer.gives:
                theirs = taken[self._numbers[key]].reshape(values[key].shape)
                self._exact.setdefault(key, Tally()).add(values[key], theirs)

    def _add_outputs(self, arrays: Sequence[Array], seen: Seen) -> None:
        values = dict(zip(self._whole.inputs, arrays, strict=True))
        self._whole.run(values, len(arrays[0]) if arrays else 1)
        references = [values[index] for index in self._whole.outputs]
        given = self.artifact.contents.outputs
        for tally, index, reference in zip(self._outputs, given, references, strict=True):
            tally.add(seen.tensors[index].reshape(reference.shape), reference)

    def first_difference(self, inputs: Sequence[Array]) -> FirstDifference | None:
        """Return nothing: which integers single operations must give, no reference here says."""
        return None

    def result(self) -> tuple[tuple[LayerComparison, ...], tuple[OutputComparison, ...]]:
        """Return the comparisons of layers, and of outputs."""
        maps = self.matcher.found()
        # The last map of a layer's commands may be something on the way to its tensor, and many
        # are alike by chance, as most of what is behind a Relu is. So what differs is only then
        # wrong where what is computed of it is: what steps give is certain.
        certain = {place: match for place, match in maps.items() if not match.tally.differing}
        doubtful = {
            place: replace(match, certain=False)
            for place, match in maps.items()
            if match.tally.differing
        }
        held = {match.key: match.tally for match in certain.values()} | self._seen
        tensors = {
            key: tally if tally.differing else self._exact.get(key, tally)
            for key, tally in held.items()
        }
        bounds = {key: Bound(STEPS, 1.0) for key in tensors}
        bounded = {
            key: tally
            for key, tally in tensors.items()
            if tally.differing and tally is self._exact.get(key) and tally.steps <= STEPS
        }
        layers = judged(self.layers, tensors, doubtful, bounds, bounded, inside=bool(maps))
        keys = self.made.lowering.graph.outputs
        # There is no bound from end to end: where each layer is within its own, so are these.
        is_right = not any(key in tensors and tensors[key].differing and key not in bounded
                           for key in tensors)  # fmt: skip
        apart = {
            key: tally for key, tally in zip(keys, self._outputs, strict=True) if tally.differing
        }
        names = [info.name for info in self.artifact.outputs]
        return layers, outputs_of(names, keys, self._outputs, apart if is_right else {})


def _whole(made: Compiled, name: str) -> OrtStep:
    """Return the whole network as one step: what its user runs in ONNX Runtime."""
    model = made.model
    taken, given = len(model.inputs), len(model.outputs)
    return OrtStep(
        submodel(model, model.nodes, model.inputs, model.outputs),
        tuple(range(taken)),
        tuple(range(taken, taken + given)),
        tuple(model.types[output].dtype for output in model.outputs),
        (name,),
    )


def _groups(made: Compiled) -> list[int]:
    return list(operator_numbers(made.lowering, made.placed.partition))


def layers_of(made: Compiled) -> Layers:
    """Return the operators of a network, numbered as reports number them."""
    lowering = made.lowering
    members: dict[int, list[Operation]] = {}
    for operation in lowering.graph.sorted():
        if operation.group is not None:
            members.setdefault(operation.group, []).append(operation)
    edges = edges_of(lowering)
    rows: list[Layer] = []
    for number, group in enumerate(_groups(made)):
        origin, placed = lowering.origins[group], made.placed.partition.groups[group]
        operations = members.get(group, [])
        rows.append(
            Layer(
                number,
                origin.kind or "",
                lowering.title(group),
                placed.device,
                tuple(_takes(operations, group, edges)),
                tuple(_gives(made, operations, group)),
            )
        )
    return Layers(rows)


def _takes(operations: Sequence[Operation], group: int, edges: set[int]) -> Iterator[Value]:
    """Return what a group takes of others; what an edge brings over is what it was made of."""
    for operation in operations:
        for operand in operation.operands:
            value = operand
            while (edge := value.producer) is not None and edge.group in edges:
                assert is_edge(edge)
                value = edge.input_list[0]
            if value.producer is not None and value.producer.group not in (None, group):
                yield value


def _gives(made: Compiled, operations: Sequence[Operation], group: int) -> Iterator[Value]:
    """Return what others take of a group, and the network's outputs."""
    outputs = set(made.lowering.graph.outputs)
    for operation in operations:
        for value in operation.results:
            is_taken = value in outputs or any(user.group != group for user in value.uses)
            if is_taken and value in made.lowering.lowered.name_of:
                yield value


def input_stimulus(value: Value) -> Stimulus:
    """Return the values of an input: those that the integers it is rounded to stand for."""
    dtype = np.dtype(value.dtype.numpy)
    for user in value.uses:
        if isinstance(user, Custom) and user.operator_name == QUANTIZE:
            step = step_of(user)
            low, high = (step.scale * (edge - step.zero_point) for edge in (step.low, step.high))
            return Stimulus(value.shape, dtype, low, high)
    return stimulus(value.shape, dtype)
