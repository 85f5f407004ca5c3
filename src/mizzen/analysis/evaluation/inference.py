"""What is done with a part of a data set, in whichever process: read, fitted, inferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.analysis.evaluation.reference import Network, Subject, referred
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.fitting import fitted, real
from mizzen.data.columns import DataSet, named
from mizzen.diagnostics import Diagnostic, MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]


class Judged(Enum):
    """What of an inference is kept."""

    OUTPUT = auto()
    """The output."""
    RECONSTRUCTION = auto()
    """How far the output is from the input: the mean of the squared differences."""


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """What came of a part.

    outputs    [K, ...] of all its inferences, as the network gives them
    reference  the same of the reference, if there is one
    counts     inferences of each sample
    notes      what became of numbers that were not the input's own
    """

    outputs: Array
    reference: Array | None
    counts: tuple[int, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """Infers parts of a data set; can be pickled.

    output     place of the output that is judged
    streaming  a sample's inferences follow one another, and state goes on
    """

    artifact: Subject
    output: int = 0
    judged: Judged = Judged.OUTPUT
    streaming: bool = False
    reference: Network | None = None

    def __call__(self, part: DataSet) -> Inferred | Diagnostic:
        """Infer a part; its errors are answers, which name the sample."""
        try:
            return self._inferred(part)
        except MizzenError as error:
            return error.diagnostic if part.size == 1 else self._first_wrong(part, error)

    def _run(self, network: Network, given: Sequence[Array], counts: Sequence[int]) -> Array:
        """Return the judged output of all inferences. E254 for a reference that has not got it."""
        if len(network.outputs) <= self.output:
            raise fail(
                "E254",
                f"the reference must have the output that is judged, number {self.output + 1}, and "
                f"has {len(network.outputs)}",
            )
        if not self.streaming:
            return _all(network.run(*given))[self.output]
        if not isinstance(network, Artifact):
            raise fail(
                "E254",
                "a reference must keep state to be compared in a stream, and a PyTorch program "
                "does not",
                help="leave out --streaming, or compare with a TFLite network",
            )
        return _streamed(network, given, counts)[self.output]

    def _first_wrong(self, part: DataSet, error: MizzenError) -> Diagnostic:
        """Find the sample that an error of several is about."""
        for index in range(part.size):
            try:
                self._inferred(part.cut(index, index + 1))
            except MizzenError as single:
                return named(single, part.name(index)).diagnostic
        return error.diagnostic

    def _inferred(self, part: DataSet) -> Inferred:
        read = [column.read() for column in part.columns]
        counts = tuple(len(sample) for sample in read[0])
        for of_input in read[1:]:
            _require_counts(part, counts, tuple(len(sample) for sample in of_input))
        given = [np.concatenate(samples) for samples in read]
        notes: list[str] = []
        fits = [
            fitted(array, info, notes.append)
            for array, info in zip(given, self.artifact.inputs, strict=True)
        ]
        own = self._run(self.artifact, fits, counts)
        theirs = None
        if self.reference is not None:
            arrays = referred(self.reference, self.artifact, given)
            theirs = self._run(self.reference, arrays, counts)
        if self.judged is Judged.RECONSTRUCTION:
            source = real(given[0], self.artifact.inputs[0])
            own = _squared_errors(source, own, self.artifact.outputs[self.output])
            if theirs is not None and self.reference is not None:
                theirs = _squared_errors(source, theirs, self.reference.outputs[self.output])
        return Inferred(own, theirs, counts, tuple(notes))


def _all(outputs: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _streamed(artifact: Artifact, given: Sequence[Array], counts: Sequence[int]) -> list[Array]:
    """Infer each sample's inferences one after the other, from the initial state on.

    Samples of one length advance together.
    """
    starts = np.cumsum([0, *counts])[:-1]
    places: list[Array] = []
    results: list[tuple[Array, ...]] = []
    for length in sorted(set(counts)):
        firsts = starts[np.array(counts) == length]
        session = artifact.session(len(firsts))
        for step in range(length):
            places.append(firsts + step)
            results.append(_all(session.run(*(array[firsts + step] for array in given))))
    order = np.argsort(np.concatenate(places))
    return [np.concatenate(parts)[order] for parts in zip(*results, strict=True)]


def _require_counts(part: DataSet, first: Sequence[int], other: Sequence[int]) -> None:
    for index, (one, another) in enumerate(zip(first, other, strict=True)):
        if one != another:
            raise fail(
                "E242",
                f"{part.name(index)} must give every input the same number of inferences, not "
                f"{one} and {another}",
            )


def _squared_errors(source: Array, output: Array, info: TensorInfo) -> Array:
    """Return the mean squared difference of each row, `[K, 1]`.

    Row by row, so that a sum is one of the same numbers in the same order in every batch.
    """
    values = real(output, info)
    pairs = zip(source.astype(np.float64), values.astype(np.float64), strict=True)
    return np.array([[float(np.square(x.ravel() - y.ravel()).mean())] for x, y in pairs])
