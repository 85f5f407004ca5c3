"""Evaluate the graph of a TFLite network: in NumPy, and what TOSA has no form of by TFLite Micro.

The CPU computes an operator alone, as a network of its own, from the initial state.

A proof wants every tensor of several inferences (`tensor_values`), also of networks with operators
that nothing here computes: what others say that these give is then assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu import tflm
from mizzen.cpu.host import HostKernels, NothingComputesError
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.context import Note, note_of
from mizzen.frontends.tflite.lower import Lowered
from mizzen.frontends.tflite.model import Model
from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.graph import Value
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.package.tflite.extract import Extract, extract
from mizzen.reference import Trace, evaluate_batch
from mizzen.reference import evaluate as evaluate_graph

Array = npt.NDArray[Any]


CURVE_UNITS, CURVE_STEP = 3 << 12, 2.0**-15
"""Units that curves of 16 bits take for 1, and the scale of what they give.
Ref: TFLite Micro, kernels/logistic_common.cc and tanh.cc."""


class Kernels:
    """Computes the CUSTOM operations of a network's graph on TFLite Micro's kernels.

    Called with an operation and its operands it gives the results, as the reference wants it.
    Raises E701 to E706 for operators that the kernels cannot compute, E130 and E131 for those that
    cannot be computed alone.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._parts: dict[tuple[int, ...], tuple[Extract, HostKernels]] = {}
        self._curves: dict[tuple[object, ...], HostKernels] = {}

    def __call__(self, operation: Custom, operands: Sequence[Array]) -> list[Array]:
        """Compute one inference of an operator."""
        results = self.batch(operation, [array[np.newaxis] for array in operands], 1)
        return [array[0] for array in results]

    def batch(self, operation: Custom, operands: Sequence[Array], count: int) -> list[Array]:
        """Compute `count` inferences of an operator, of operands `[count, *shape]`."""
        results, _ = self.onward(operation, operands, count, {})
        return results

    def onward(
        self,
        operation: Custom,
        operands: Sequence[Array],
        count: int,
        state: Mapping[int, Array],
    ) -> tuple[list[Array], dict[int, Array]]:
        """Compute inferences from a state, tensors by index; return what they leave of it as well.

        What an operator keeps beside `state` is as it is before the first inference.
        """
        note, tensors = note_of(operation), self._model.main.tensors
        if operands and not note.inputs:
            return self._within(note, operation, operands, count), {}
        taken = self._model.main.present(self._model.main.operators[note.operator].inputs)
        kept = [tensor.index for tensor in taken if tensor.variable and tensor.index in state]
        part, kernels = self._part(note, kept)
        given = dict(zip(note.inputs, operands, strict=True))
        results = kernels.run(
            [
                state[index] if index in kept else from_graph(tensors[index], given[index])
                for index in part.inputs
            ],
            count,
        )
        made = dict(zip(part.outputs, results, strict=True))
        return [
            to_graph(tensors[index], made[index])
            if index in made
            else np.zeros((count, *result.shape), result.dtype.numpy)  # nothing reads it
            for index, result in zip(note.outputs, operation.results, strict=True)
        ], {index: made[index] for index in kept}

    def _within(
        self, note: Note, operation: Custom, operands: Sequence[Array], count: int
    ) -> list[Array]:
        """Compute what is a part of an operator: a conversion to a wider type, or a curve."""
        if operation.operator_name.endswith(".CAST"):
            (result,) = operation.results
            return [array.astype(result.dtype.numpy) for array in operands]
        return self._curve(note, operation).run(list(operands), count)

    def _curve(self, note: Note, operation: Custom) -> HostKernels:
        """Return what computes a curve of 16 bits that is a part of an operator.

        Its note says by what the kernel scales; the scale of the input from which that comes is
        the one of a network with this curve alone.
        """
        kind, shape = operation.operator_name.partition(".")[2], operation.results[0].shape
        multiplier, shift = int(note.options["multiplier"]), int(note.options["shift"])
        key = kind, shape, multiplier, shift
        if key not in self._curves:
            network = NetworkBuilder(kind)
            scale = multiplier / (CURVE_UNITS << shift)
            taken = network.tensor("taken", shape, "int16", scale)
            given = network.tensor("given", shape, "int16", CURVE_STEP)
            network.operator(kind, [taken], [given])
            origin = self._model.origin(self._model.main.operators[note.operator])
            self._curves[key] = HostKernels(network.finish([taken], [given]), [origin])
        return self._curves[key]

    def _part(self, note: Note, kept: Sequence[int]) -> tuple[Extract, HostKernels]:
        key = note.operator, *kept
        known = self._parts.get(key)
        if known is None:
            operator = self._model.main.operators[note.operator]
            part = extract(self._model.record, [note.operator], kept)
            known = part, HostKernels(part.network, [self._model.origin(operator)])
            self._parts[key] = known
        return known


def begin(lowered: Lowered) -> None:
    """Start the process that computes what TOSA has no form of, if there is any of it."""
    if any(isinstance(operation, Custom) for operation in lowered.graph):
        tflm.begin()


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


def why_not(error: MizzenError) -> str:
    """Return why something is not computed, in a clause about it."""
    return error.why if isinstance(error, NothingComputesError) else error.diagnostic.message


Judge = Callable[[int, Array, Array], bool]
"""Whether a tensor, by its index, may be the first array where the reference has the second."""


@dataclass(frozen=True, slots=True)
class TensorValues:
    """What the tensors of a network are, by index: `[N, *shape]`, as TFLite has them.

    after    state that operators leave for the next inference
    assumed  operators that nothing here computes, whose results were assumed, and why
    stopped  the error of the operator at which the values end; None if all are there
    """

    values: Mapping[int, Array]
    after: Mapping[int, Array]
    assumed: Mapping[int, str]
    stopped: MizzenError | None


def tensor_values(
    lowered: Lowered,
    inputs: Sequence[Array],
    count: int,
    kernels: Kernels,
    known: Mapping[int, Array],
    allowed: Judge,
    state: Mapping[int, Array],
) -> TensorValues:
    """Infer `count` times, and return every tensor that is computed; inputs are `[N, *shape]`.

    known  what others say of tensors: taken for what nothing here computes, and where `allowed`
    state  tensors that are read from variables, or that operators keep, which may hold anything
    """
    main = lowered.model.main
    tensors = main.tensors
    values: dict[int, Array] = {}
    after: dict[int, Array] = {}
    assumed: dict[int, str] = {}
    stopped: MizzenError | None = None

    def trace(value: Value, array: Array) -> Array | None:
        """Keep a tensor's numbers; return the known ones in place of those that may differ."""
        place = lowered.tensor_of.get(value)
        if place is None:
            return None
        ours, theirs = from_graph(tensors[place], array), known.get(place)
        values[place] = ours
        if theirs is None:
            return None
        if not allowed(place, theirs, ours):
            return None
        values[place] = theirs
        return to_graph(tensors[place], theirs)

    def custom(operation: Custom, operands: Sequence[Array]) -> list[Array]:
        """Return a CPU operator's results: its state, its kernel's numbers, or the known ones."""
        note = note_of(operation)
        if main.operators[note.operator].kind in VARIABLE_KINDS:
            return [
                to_graph(tensors[place], state[place])
                if place in state
                else np.zeros((count, *result.shape), result.dtype.numpy)  # a handle
                for place, result in zip(note.outputs, operation.results, strict=True)
            ]
        try:
            results, left = kernels.onward(operation, operands, count, state)
        except MizzenError as error:
            if not all(output in known for output in note.outputs):
                raise error from None
            assumed[note.operator] = why_not(error)
            return [to_graph(tensors[place], known[place]) for place in note.outputs]
        after.update(left)
        return results

    given = [
        to_graph(tensor, array)
        for tensor, array in zip(main.present(main.inputs), inputs, strict=True)
    ]
    try:
        evaluate_batch(lowered.graph, given, count, trace=trace, custom=custom)
    except MizzenError as stop:
        stopped = stop
    return TensorValues(values, after, assumed, stopped)
