"""Every tensor of a TFLite network as its graph of integers computes it, without kernels.

For networks that TensorFlow Lite Micro does not take: what a tensor is then is said by the same
reference that every compilation is proved against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.analysis.comparison.tflm import Tensors, constants_of
from mizzen.artifact.interface import Array
from mizzen.compiler.tflite_reference import Kernels, tensor_values
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import lower

NAME = "the integer reference"


@dataclass(frozen=True, eq=False)
class IntegerReference:
    """A network's graph of integers."""

    model: Model

    def infer(
        self, inputs: Sequence[Sequence[Array]], known: Sequence[Tensors]
    ) -> list[dict[int, Array]]:
        """Infer once, and return all tensors; arguments as for `MicroReference.infer`.

        Raises what stops the graph, for operators that nothing here computes.
        """
        (arrays,) = inputs
        given = dict(known[0]) if known else {}
        size = len(arrays[0]) if arrays else 1
        computed = tensor_values(
            lower(self.model), arrays, size, Kernels(self.model), given, _always, {}
        )
        if computed.stopped is not None:
            raise computed.stopped
        main = self.model.main
        values = constants_of(self.model, size) | dict(zip(main.inputs, arrays, strict=True))
        values |= computed.values
        return [{index: np.asarray(array) for index, array in values.items()}]


def _always(place: int, npu: Array, reference: Array) -> bool:
    return True
