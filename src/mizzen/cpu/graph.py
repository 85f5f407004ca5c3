"""Run networks as the integers of their graphs, in NumPy: what has such a form needs no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model

if TYPE_CHECKING:
    from mizzen.frontends.tflite.lower import Lowered

Array = npt.NDArray[Any]


class GraphKernels:
    """A network as the integers of its graph, in NumPy."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form."""
        from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
        from mizzen.reference import evaluate_batch

        count = len(inputs[0]) if batch is None else batch
        main = self._lowered.model.main
        taken, made = main.present(main.inputs), main.present(main.outputs)
        given = [to_graph(tensor, array) for tensor, array in zip(taken, inputs, strict=True)]
        outputs = evaluate_batch(self._lowered.graph, given, count)
        return [from_graph(tensor, array) for tensor, array in zip(made, outputs, strict=True)]


def graph_kernels(model: Model) -> GraphKernels | None:
    """Return a network that keeps no state as integers, if all of it has such a form."""
    from mizzen.frontends.tflite.lower import lower
    from mizzen.ops.control_flow import Custom

    try:
        lowered = lower(model)
    except MizzenError:
        return None
    if any(isinstance(operation, Custom) for operation in lowered.graph):
        return None
    return GraphKernels(lowered)
