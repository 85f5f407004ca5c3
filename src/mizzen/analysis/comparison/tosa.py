"""Compare a compiled TOSA network with what TOSA says that it means, operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mizzen.analysis.comparison.bisection import first_difference
from mizzen.analysis.comparison.layers import Key, Layer, Layers
from mizzen.analysis.comparison.matching import Matcher
from mizzen.analysis.comparison.observing import Observer, Seen, commands_of
from mizzen.analysis.comparison.tally import Tally
from mizzen.analysis.comparison.truth import TosaTruth
from mizzen.analysis.comparison.verdict import judged, outputs_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.compiler.proof.regions import graph_stimuli
from mizzen.diagnostics import Device
from mizzen.graph import Graph, Value
from mizzen.ops.control_flow import Constant
from mizzen.reference import evaluate_batch
from mizzen.report.comparison import (
    ConstantsComparison,
    FirstDifference,
    LayerComparison,
    OutputComparison,
)

NAME = "TOSA's meaning"

HOPS = 8
"""Operations that one operation of an NPU may compute: a sum, its scale, clamp, table and views."""


@dataclass(eq=False)
class TosaComparison:
    """An artifact and the graph of the TOSA file that it was made of.

    right  what is made of the graph now, where the artifact was made before
    """

    name: str
    graph: Graph
    artifact: Artifact
    constants: ConstantsComparison | None = None
    right: Artifact | None = None
    reference: str = NAME
    _tensors: dict[Key, Tally] = field(default_factory=dict[Key, Tally])

    def __post_init__(self) -> None:
        self.layers = layers_of(self.graph)
        report = self.artifact.report
        indices = {layer.index: layer.index for layer in self.layers.rows}
        origins = () if report is None else report.origins
        self.observer = Observer(self.artifact, commands_of(origins, indices))
        self.matcher = Matcher(self.layers, HOPS)
        self._outputs = [Tally() for _ in self.graph.outputs]

    @property
    def keeps_state(self) -> bool:
        """Whether an inference may depend on those before it."""
        return False

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        values = (value for operation in self.graph for value in operation.results)
        return max(1, sum(value.dtype.numpy.itemsize * _elements(value) for value in values))

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        return graph_stimuli(self.graph, count, seed)

    def add(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Compare inferences in a row, each of a batch: for each its inputs, `[N, *shape]`."""
        for arrays, seen in zip(inputs, self.observer.infer(inputs), strict=True):
            shaped = [
                array.reshape(len(array), *value.shape)
                for array, value in zip(arrays, self.graph.inputs, strict=True)
            ]
            self._count(seen, self._values(shaped))

    def _values(self, inputs: Sequence[Array]) -> dict[Key, Array]:
        values: dict[Key, Array] = {}

        def trace(value: Value, array: Array) -> None:
            values[value] = array

        count = len(inputs[0]) if inputs else 1
        outputs = evaluate_batch(self.graph, inputs, count, trace=trace)
        return values | dict(zip(self.graph.outputs, outputs, strict=True))

    def _count(self, seen: Seen, values: dict[Key, Array]) -> None:
        for place, maps in seen.inside.items():
            for written in maps:
                self.matcher.add(place, written, values)
        given = self.artifact.contents.outputs
        for tally, index, key in zip(self._outputs, given, self.graph.outputs, strict=True):
            array = seen.tensors[index].reshape(values[key].shape)
            tally.add(array.astype(values[key].dtype), values[key])
            self._tensors[key] = tally

    def first_difference(self, inputs: Sequence[Array]) -> FirstDifference | None:
        """Return the first operation of a stream that is wrong; of NPUs that can be watched."""
        return first_difference(self.artifact, TosaTruth(self.graph), inputs, right=self.right)

    def result(self) -> tuple[tuple[LayerComparison, ...], tuple[OutputComparison, ...]]:
        """Return the comparisons of layers, and of outputs."""
        maps = self.matcher.found()
        layers = judged(self.layers, self._tensors, maps, {}, {}, inside=bool(maps))
        names = [info.name for info in self.artifact.outputs]
        return layers, outputs_of(names, self.graph.outputs, self._outputs, {})


def layers_of(graph: Graph) -> Layers:
    """Return the operations of a file, by their index in it; constants are none."""
    layers: list[Layer] = []
    for place, operation in enumerate(graph.sorted()):
        if isinstance(operation, Constant):
            continue
        origin = operation.origin
        index = place if origin is None or origin.operator is None else origin.operator
        name = (origin.name if origin is not None else None) or ""
        layers.append(
            Layer(
                index,
                operation.kind,
                name,
                Device.NPU,
                tuple(operation.operands),
                tuple(operation.results),
            )
        )
    return Layers(layers)


def _elements(value: Value) -> int:
    total = 1
    for extent in value.shape:
        total *= extent
    return total
