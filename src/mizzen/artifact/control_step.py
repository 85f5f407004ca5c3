"""Operators that execute subgraphs: IF, WHILE, CALL, and composites, which are calls.

The inferences of a batch go their own ways: each takes its own branch, and leaves a loop when its
own condition says so.

Ref: TFLite, kernels/while.cc, if.cc, stablehlo_composite.cc; TFLite Micro, kernels/while.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from mizzen.artifact.interface import Array, Values
from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator, Subgraph
from mizzen.frontends.tflite.subgraphs import called, name_of

MOST_ITERATIONS = 1 << 16
"""Of a loop in one inference; networks loop over steps of time, or over words."""

LOOPS = frozenset(("WHILE", "STABLEHLO_WHILE"))

Rows = npt.NDArray[np.intp]
"""Some inferences of a batch."""

Execute = Callable[[int, Rows, Sequence[Array]], list[Array]]
"""Executes a subgraph for some inferences of the batch, of what it takes for these."""


class ControlStep:
    """An operator that executes subgraphs, some of which run on the NPU.

    callees      the subgraphs by index, in the order in which the operator names them
    moved_bytes  of what it hands over once
    """

    on_npu = False

    def __init__(self, model: Model, operator: Operator, callees: Sequence[int]) -> None:
        self.operator = operator
        self.operators = (operator,)
        self.callees = tuple(callees)
        self.origins = [model.origin(operator)]
        self.outputs = operator.outputs
        results = model.main.present(operator.outputs)
        self._shapes = [tensor.shape for tensor in results]
        self.moved_bytes = sum(tensor.size_bytes or 0 for tensor in results)
        # The first input of IF says which branch; all inputs of the others are handed on.
        self.inputs = operator.inputs
        for index in called(operator):
            _require_fits(model, operator, model.subgraphs[index])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operator's type."""
        return (self.operator.kind,)

    @property
    def handed(self) -> tuple[int, ...]:
        """The tensors that the subgraphs take."""
        return self.inputs[1:] if self.operator.kind == "IF" else self.inputs

    def run(self, values: Values, batch: int, execute: Execute) -> None:
        """Compute the outputs of a batch. E137 for a loop without an end."""
        given = [values[index] for index in self.handed]
        every = np.arange(batch)
        match self.operator.kind:
            case "IF":
                results = self._branches(_truth(values[self.inputs[0]]), given, execute)
            case kind if kind in LOOPS:
                results = self._loop(every, given, execute)
            case _:
                results = execute(self.callees[0], every, given)
        for index, shape, array in zip(self.outputs, self._shapes, results, strict=True):
            values[index] = array.reshape(batch, *shape)

    def _branches(self, chosen: Array, given: list[Array], execute: Execute) -> list[Array]:
        results: list[Array] = []
        for callee, taken in zip(self.callees, (chosen, ~chosen), strict=True):
            indices = np.flatnonzero(taken)
            if not indices.size:
                continue
            part = execute(callee, indices, [array[indices] for array in given])
            if not results:
                results = [np.empty((len(chosen), *array.shape[1:]), array.dtype) for array in part]
            for whole, some in zip(results, part, strict=True):
                whole[indices] = some.reshape(len(indices), *whole.shape[1:])
        return results

    def _loop(self, indices: Rows, given: list[Array], execute: Execute) -> list[Array]:
        condition, body = self.callees
        current = [np.array(array) for array in given]
        for _ in range(MOST_ITERATIONS):
            taken = [array[indices] for array in current]
            (goes_on,) = execute(condition, indices, taken)
            indices = indices[_truth(goes_on)]
            if not indices.size:
                return current
            made = execute(body, indices, [array[indices] for array in current])
            for whole, some in zip(current, made, strict=True):
                whole[indices] = some.reshape(len(indices), *whole.shape[1:])
        raise self._endless()

    def _endless(self) -> MizzenError:
        return fail(
            "E137",
            f"a loop must end within {MOST_ITERATIONS:,} iterations, and this one does not",
            origin=self.origins[0],
            help="look at what its condition compares: with these inputs it stays true",
        )


def _truth(array: Array) -> npt.NDArray[np.bool_]:
    """Return the boolean of a tensor with one, for each inference."""
    return array.reshape(len(array), -1)[:, 0].astype(np.bool_)


def _require_fits(model: Model, operator: Operator, subgraph: Subgraph) -> None:
    """Check that a subgraph takes and gives what the operator hands it, with E136."""
    main = model.main
    handed = operator.inputs[1:] if operator.kind == "IF" else operator.inputs
    results = _forms(main, operator.outputs)
    if operator.kind in LOOPS and subgraph.index == next(called(operator)):
        results = [(1, TensorType.BOOL)]
    wanted = (_forms(main, handed), results)
    came = (_forms(subgraph, subgraph.inputs), _forms(subgraph, subgraph.outputs))
    if came != wanted:
        raise fail(
            "E136",
            f"{name_of(subgraph)} must take and give tensors like those of the {operator.kind} "
            "that executes it: as many, of as many elements, of the same types",
            origin=model.origin(operator),
            help="convert the network with fixed shapes",
        )


def _forms(subgraph: Subgraph, indices: Sequence[int]) -> list[tuple[int, TensorType]]:
    return [(tensor.elements, tensor.type) for tensor in subgraph.present(tuple(indices))]
