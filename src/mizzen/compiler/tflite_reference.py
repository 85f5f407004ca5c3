"""Evaluate the graph of a TFLite network: in NumPy, and what TOSA has no form of by TFLite Micro.

The CPU computes an operator alone, as a network of its own, from the initial state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.tflm import CpuKernels
from mizzen.frontends.tflite.context import Note, note_of
from mizzen.frontends.tflite.lower import Lowered
from mizzen.frontends.tflite.model import Model
from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.extract import Extract, extract
from mizzen.reference import Trace
from mizzen.reference import evaluate as evaluate_graph

Array = npt.NDArray[Any]


class Kernels:
    """Computes the CUSTOM operations of a network's graph on TFLite Micro's kernels.

    Called with an operation and its operands it gives the results, as the reference wants it.
    Raises E701 to E706 for operators that the kernels cannot compute, E130 and E131 for those that
    cannot be computed alone.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._parts: dict[int, tuple[Extract, CpuKernels]] = {}

    def __call__(self, operation: Custom, operands: Sequence[Array]) -> list[Array]:
        """Compute one inference of an operator."""
        note, tensors = note_of(operation), self._model.main.tensors
        part, kernels = self._part(note)
        given = dict(zip(note.inputs, operands, strict=True))
        results = kernels.run(
            [from_graph(tensors[index], given[index])[np.newaxis] for index in part.inputs], 1
        )
        made = dict(zip(part.outputs, results, strict=True))
        return [
            to_graph(tensors[index], made[index][0])
            if index in made
            else np.zeros(result.shape, result.dtype.numpy)  # nobody reads it
            for index, result in zip(note.outputs, operation.results, strict=True)
        ]

    def _part(self, note: Note) -> tuple[Extract, CpuKernels]:
        found = self._parts.get(note.operator)
        if found is None:
            operator = self._model.main.operators[note.operator]
            part = extract(self._model.record, [note.operator])
            found = part, CpuKernels(part.network, [self._model.origin(operator)])
            self._parts[note.operator] = found
        return found


def evaluate(
    lowered: Lowered,
    inputs: Sequence[Array],
    *,
    kernels: Kernels | None = None,
    trace: Trace | None = None,
) -> list[Array]:
    """Infer once: inputs and outputs as TFLite has them, in the network's order.

    kernels  computes what is CUSTOM; given, its parts are not built again
    trace    is told every value of the graph

    Raises E820 for inputs of another shape or type, and whatever `kernels` raises.
    """
    main = lowered.model.main
    given = [
        to_graph(tensor, array)
        for tensor, array in zip(main.present(main.inputs), inputs, strict=True)
    ]
    custom = kernels or Kernels(lowered.model)
    outputs = evaluate_graph(lowered.graph, given, trace=trace, custom=custom)
    return [
        from_graph(tensor, array)
        for tensor, array in zip(main.present(main.outputs), outputs, strict=True)
    ]
