"""Compare a stream without a network around it with the network that it was made of.

Mesa's compiler writes such files. A tensor there has nothing but its number in the network and its
place. So there are no layers to be seen, but outputs, and the first operation that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.analysis.comparison.bisection import first_difference
from mizzen.analysis.comparison.tally import Tally
from mizzen.analysis.comparison.truth import TfliteTruth
from mizzen.analysis.comparison.verdict import outputs_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.compiler.tflite_stimuli import values_bytes
from mizzen.cpu.device import kernels_name
from mizzen.frontends.tflite import Tensor
from mizzen.report.comparison import (
    ConstantsComparison,
    FirstDifference,
    LayerComparison,
    OutputComparison,
)


@dataclass(eq=False)
class StreamComparison:
    """A stream whose tensors have numbers, and the network that these are of.

    right  what is made of the network now
    """

    truth: TfliteTruth
    artifact: Artifact
    right: Artifact
    constants: ConstantsComparison | None = None
    reference: str = field(default_factory=kernels_name)
    keeps_state: bool = False
    name: str = field(init=False)
    _outputs: dict[int, Tally] = field(default_factory=dict[int, Tally])

    def __post_init__(self) -> None:
        self.name = self.truth.model.name

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        return values_bytes(self.truth.model)

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each, as the stream takes them."""
        values = self.truth.values(self.truth.stimuli(count, seed))
        right = self.truth.tensors_of(self.artifact, values)
        return [right[index] for index in self.artifact.contents.inputs]

    def add(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Compare inferences, each of a batch: for each its inputs, `[N, *shape]`."""
        main = self.truth.model.main
        for arrays in inputs:
            values = self.truth.values(self._of_network(arrays))
            results = self.artifact.run(*arrays)
            outputs = results if isinstance(results, tuple) else (results,)
            held = dict(zip(self.artifact.contents.outputs, outputs, strict=True))
            for index, key in self.truth.outputs_of(self.artifact).items():
                wanted = values[key]
                came = np.asarray(held[index]).view(wanted.dtype).reshape(wanted.shape)
                self._outputs.setdefault(main.outputs.index(key), Tally()).add(came, wanted)

    def result(self) -> tuple[tuple[LayerComparison, ...], tuple[OutputComparison, ...]]:
        """Return the comparisons of outputs; no layer is seen."""
        main = self.truth.model.main
        names = [main.tensors[index].name for index in main.outputs]
        tallies = [self._outputs.get(place, Tally()) for place in range(len(names))]
        return (), outputs_of(names, main.outputs, tallies, {}, {})

    def first_difference(self, inputs: Sequence[Array]) -> FirstDifference | None:
        """Return the first operation of the stream that is wrong."""
        given = self._of_network(inputs)
        return first_difference(self.artifact, self.truth, given, right=self.right)

    def _of_network(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the network's inputs among the stream's."""
        main, known = self.truth.model.main, self.truth.inputs_of(self.artifact)
        held = dict(zip(self.artifact.contents.inputs, arrays, strict=True))
        given = {key: held[index] for index, key in known.items()}
        return [self._as(given[index], main.tensors[index]) for index in main.inputs]

    def _as(self, array: Array, tensor: Tensor) -> Array:
        """Return bytes of a tensor as its elements."""
        assert tensor.dtype is not None, "inputs have a type"
        return np.ascontiguousarray(array).view(tensor.dtype).reshape(len(array), *tensor.shape)
