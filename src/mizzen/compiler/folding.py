"""Compute once what a network computes of constants alone, and compile it without.

A converter leaves weights that operators bring into form behind: transposed, dequantised, expanded.
What these give is the same in every inference, so that it can stand in the file as a constant; the
operators that take it may then be for the NPU. The numbers are those of the graph's reference or of
TensorFlow Lite Micro's kernels, which the operators would have on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.constant_kernels import computed
from mizzen.compiler.report import in_terms_of
from mizzen.compiler.tflite_reference import evaluate
from mizzen.cpu.device import device_kernels
from mizzen.diagnostics import MizzenError, Origin, Reason
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Operator, Subgraph
from mizzen.frontends.tflite.lower import lower
from mizzen.frontends.tflite.model import ABSENT
from mizzen.package.tflite.extract import CALLERS, RESOURCES, extract

Array = npt.NDArray[Any]

KEPT = frozenset(kind.name for kind in CALLERS | RESOURCES) | frozenset(
    ("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR")
)
"""Operators whose results are not those of their inputs alone."""

SMALL_BYTES = 1 << 16
GROWTH = 8
"""A result of more bytes, and so many times what it is made of, is cheaper to compute than to
store: a number that fills a map. Four bits made a float are no more."""

FOLDED = Reason(
    "folded",
    "it gives the same in every inference, which is a constant of the artifact",
    help="nothing needs doing",
)
UNUSED = Reason(
    "unused",
    "nothing takes what it gives, and the artifact does without it",
    help="nothing needs doing",
)
GONE = frozenset((FOLDED, UNUSED))
"""Reasons of operators that an artifact does not have: there is nothing to compare."""


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A network without what it computes of constants alone, and its file.

    given    the network as it was
    sources  for each operator of the main subgraph, its index in the network as it was
    constant operators of that one whose results are constants now
    """

    model: Model
    data: bytes
    given: Model
    sources: tuple[int, ...]
    constant: frozenset[int] = frozenset()

    def in_terms_of_given(self, artifact: Artifact) -> Artifact:
        """Return an artifact of the network with operators named as in the network as it was."""
        if self.model is self.given or artifact.report is None:
            return artifact
        report = in_terms_of(artifact.report, self.given, self.sources, self._reason)
        contents = contents_of(read_network(artifact.data, artifact.name), report.origins)
        return Artifact(artifact.data, artifact.name, contents, report)

    def _reason(self, operator: Operator) -> Reason:
        return FOLDED if operator.index in self.constant else UNUSED


def folded(model: Model, data: bytes) -> Folded:
    """Return a network, whose file is `data`, without what it computes of constants alone."""
    parts = [_Folding(model, subgraph) for subgraph in model.subgraphs]
    if all(part.is_whole for part in parts):
        sources = tuple(range(len(model.main.operators)))
        file = data if model.is_as_stored else write(model.record, SCHEMA)
        return Folded(model, file, model, sources)
    buffers: list[Record] = list(model.record["buffers"])
    subgraphs = [part.record(buffers) for part in parts]
    file = write({**model.record, "subgraphs": subgraphs, "buffers": buffers}, SCHEMA)
    network = replace(read_network(file, model.name), shared=model.shared)
    return Folded(network, file, model, parts[0].kept, parts[0].constant)


def computed_once(model: Model) -> Model:
    """Return a network whose tensors, by their indices, are those of another, folded."""
    return folded(model, b"").model


class _Folding:
    """The operators of a subgraph whose results are constants, and these.

    computed  results by the tensors that they are
    constant  the operators that they are of, by their indices
    kept      those that are still to be computed
    """

    def __init__(self, model: Model, subgraph: Subgraph) -> None:
        self._model = model
        self._subgraph = subgraph
        self.computed: dict[int, Array] = {}
        given = set(subgraph.inputs)
        self._constants = {
            tensor.index: tensor.size_bytes or 0
            for tensor in subgraph.tensors
            if tensor.values is not None and not tensor.variable and tensor.index not in given
        }
        self.constant = frozenset(
            operator.index for operator in subgraph.operators if self._fold(operator)
        )
        self.kept = tuple(self._needed())

    @property
    def is_whole(self) -> bool:
        """Whether every operator is still to be computed."""
        return len(self.kept) == len(self._subgraph.operators)

    def _needed(self) -> list[int]:
        """Return the operators that are not folded and whose results something takes, or keeps."""
        tensors, needed = self._subgraph.tensors, set(self._subgraph.outputs)
        live: list[int] = []
        for operator in reversed(self._subgraph.operators):
            acts = operator.custom or operator.kind in KEPT or not operator.outputs
            keeps = any(tensors[index].variable for index in operator.inputs if index != ABSENT)
            if operator.index in self.constant or not (
                acts or keeps or needed & set(operator.outputs)
            ):
                continue
            needed.update(operator.inputs)
            live.append(operator.index)
        return live[::-1]

    def _fold(self, operator: Operator) -> bool:
        """Compute an operator once if that is possible."""
        if operator.custom or operator.kind in KEPT or not operator.outputs:
            return False
        taken = [index for index in operator.inputs if index != ABSENT]
        of_constants = taken and all(index in self._constants for index in taken)
        if all(not tensor.elements for tensor in self._subgraph.present(operator.outputs)):
            results = {index: np.zeros(0, np.uint8) for index in operator.outputs}
        elif of_constants and self._is_worth_it(operator, taken):
            results = self._results(operator)
        else:
            return False
        if results is None:
            return False
        for index, array in results.items():
            self.computed[index] = array
            self._constants[index] = array.nbytes
        return True

    def _is_worth_it(self, operator: Operator, taken: Sequence[int]) -> bool:
        before = sum(self._constants[index] for index in set(taken))
        outputs = [self._subgraph.tensors[index] for index in operator.outputs]
        sizes = [
            tensor.size_bytes for tensor in outputs if tensor.dtype is not None and tensor.elements
        ]
        made = sum(size for size in sizes if size is not None)
        return len(sizes) == len(outputs) and made <= max(SMALL_BYTES, GROWTH * before)

    def _results(self, operator: Operator) -> Mapping[int, Array] | None:
        """Return the results of an operator by its tensors; None if nothing here computes it."""
        tensors = self._subgraph.tensors
        before, after = tensors[operator.inputs[0]], tensors[operator.outputs[0]]
        values = self.computed.get(before.index, before.values)
        if (array := computed(operator, values, after.shape)) is not None:
            return {after.index: array} if array.dtype == after.dtype else None
        buffers: list[Record] = list(self._model.record["buffers"])
        record = {**self._model.record, "subgraphs": [self.record(buffers, every=True)]}
        try:
            part = extract({**record, "buffers": buffers}, [operator.index], (), operator.outputs)
            arrays = _computed(part.network, self._model.origin(operator, self._subgraph))
        except MizzenError:
            return None
        return {
            index: array[0].reshape(tensors[index].shape)
            for index, array in zip(part.outputs, arrays, strict=True)
        }

    def record(self, buffers: list[Record], *, every: bool = False) -> Record:
        """Return the subgraph's record with results in place of what computes them.

        buffers  of the network, to which those of the results are added
        every    whether all operators stay
        """
        record: Record = self._model.record["subgraphs"][self._subgraph.index]
        tensors: list[Record] = list(record["tensors"] or ())
        for index, array in self.computed.items():
            contents = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
            tensors[index] = {**tensors[index], "buffer": len(buffers), "shape_signature": None}
            buffers.append({"data": contents})
        operators: list[Record] = list(record["operators"] or ())
        if not every:
            operators = [operators[index] for index in self.kept]
            used = {*self._subgraph.inputs, *self._subgraph.outputs, *self._used()}
            tensors = [
                tensor if index in used else {**tensor, "buffer": 0}
                for index, tensor in enumerate(tensors)
            ]
        return {**record, "tensors": tensors, "operators": operators}

    def _used(self) -> Iterator[int]:
        for index in self.kept:
            operator = self._subgraph.operators[index]
            yield from (*operator.inputs, *operator.outputs, *operator.intermediates)


def _computed(network: bytes, origin: Origin) -> list[Array]:
    """Return the outputs of a network without inputs: `[1, *shape]` of each output."""
    try:
        lowered = lower(read_network(network, origin.model or ""))
        return [array[np.newaxis] for array in evaluate(lowered, [])]
    except MizzenError:
        return device_kernels(network, [origin]).run([], 1)
