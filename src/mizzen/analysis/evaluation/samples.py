"""Samples with their labels: of a stored data set, or as an iterable yields them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from mizzen.data.columns import ArrayColumn, DataSet, as_inferences, data_set, expected_shape
from mizzen.data.labels import Labels
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

PART = 64
"""Samples that are inferred at once: more are hardly faster."""


class Samples(Protocol):
    """What is evaluated."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def size(self) -> int | None:
        """How many samples there are, where that is known beforehand."""
        ...

    @property
    def inferences(self) -> int | None:
        """How many inferences they have, where that is known beforehand."""
        ...

    @property
    def labels(self) -> Labels | None:
        """The labels of all parts that were given so far, or of all."""
        ...

    def sample(self, index: int) -> str:
        """Return the name of a sample."""
        ...

    def parts(self, largest: int) -> Iterator[DataSet]:
        """Return the samples, so many at once."""
        ...


@dataclass(frozen=True, eq=False)
class Stored:
    """A data set whose labels are known."""

    name: str
    data: DataSet
    labels: Labels | None

    @property
    def size(self) -> int:
        """How many samples there are."""
        return self.data.size

    @property
    def inferences(self) -> int | None:
        """How many inferences they have; files have to be read for it."""
        column = self.data.columns[0]
        return self.size * column.rows.shape[1] if isinstance(column, ArrayColumn) else None

    def sample(self, index: int) -> str:
        """Return the name of a sample."""
        return self.data.name(index)

    def parts(self, largest: int) -> Iterator[DataSet]:
        """Return the samples, so many at once."""
        for start in range(0, self.size, largest):
            yield self.data.cut(start, min(start + largest, self.size))


@dataclass(eq=False)
class Yielded:
    """What an iterable yields: `(x, label)` of a sample, or of a batch as a DataLoader does.

    With `sequences`, what is yielded at once is one sample, whose rows follow one another.
    """

    rows: Iterable[Any]
    inputs: Sequence[TensorInfo]
    sequences: bool = False
    name: str = "data"
    _labels: list[Array] = field(default_factory=list["Array"])

    @property
    def size(self) -> int | None:
        """It is not known how many samples there will be."""
        return None

    @property
    def inferences(self) -> int | None:
        """It is not known how many inferences there will be."""
        return None

    def sample(self, index: int) -> str:
        """Return the name of a sample."""
        return f"{self.name}[{index}]"

    @property
    def labels(self) -> Labels | None:
        """The labels of all parts that were given so far."""
        return Labels(np.concatenate(self._labels)) if self._labels else None

    def parts(self, largest: int) -> Iterator[DataSet]:
        """Return batches as they are yielded; single samples are put together."""
        pairs = iter(self.rows)
        first = 0
        while group := [_arrays(pair) for pair in islice(pairs, 1)]:
            if not self.sequences and self._is_sample(group[0][0]):
                group += [_arrays(pair) for pair in islice(pairs, largest - 1)]
            part = self._part(group, first)
            first += part.size
            yield part

    def _is_sample(self, given: Sequence[Array]) -> bool:
        shape = self.inputs[0].shape
        return given[0].shape == shape or (shape[:1] == (1,) and given[0].shape == shape[1:])

    def _part(self, group: list[tuple[list[Array], Array]], first: int) -> DataSet:
        columns: list[ArrayColumn] = []
        for place, info in enumerate(self.inputs):
            arrays = [self._rows(given, place, info) for given, _ in group]
            joined = np.concatenate(arrays)
            stacked = joined[np.newaxis] if self.sequences else joined[:, np.newaxis]
            columns.append(ArrayColumn(stacked, self.name, first))
        data = data_set(columns)
        labels = np.concatenate([np.atleast_1d(label) for _, label in group])
        steps = columns[0].rows.shape[1]  # 1 unless there are sequences
        if len(labels) not in (data.size, data.size * steps):
            raise fail(
                "E242",
                f"{self.name} must yield a label for each sample, not {len(labels)} for "
                f"{data.size}, at sample {first}",
            )
        self._labels.append(labels)
        return data

    def _rows(self, given: Sequence[Array], place: int, info: TensorInfo) -> Array:
        if len(given) != len(self.inputs):
            raise fail(
                "E242",
                f"{self.name} must yield {len(self.inputs)} arrays for the inputs, not "
                f"{len(given)}",
                help="yield ((x, y), label) for a network of two inputs",
            )
        inferences = as_inferences(given[place], info)
        if inferences is None:
            raise fail(
                "E246",
                f"{self.name} must yield {expected_shape(info)} for the input {info.name}, not "
                f"{list(given[place].shape)}",
                help="N counts samples; reshape or transpose what is yielded",
            )
        return inferences


def _arrays(sample: Any) -> tuple[list[Array], Array]:
    """Take `(x, label)` apart. E241 for anything else."""
    pair = cast("Sequence[Any]", sample) if isinstance(sample, (tuple, list)) else ()
    if len(pair) != 2:
        raise fail(
            "E241",
            "every row of the data must be a pair of x and its label, not "
            f"{type(cast('object', sample)).__name__}{f' of {len(pair)}' if pair else ''}",
            help="yield (x, label), or ((x, y), label) for a network of two inputs",
        )
    given, label = pair
    if isinstance(given, (tuple, list)):
        several = cast("Sequence[Any]", given)
        if all(hasattr(x, "shape") for x in several):
            return [_array(x) for x in several], _array(label)
    return [_array(given)], _array(label)


def _array(value: Any) -> Array:
    """Return it as a NumPy array; a tensor of PyTorch's may be anywhere, and need a gradient."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value)


def peeked(parts: Iterator[DataSet]) -> Iterator[DataSet]:
    """Let the first part be made, so that there are labels."""
    return chain(list(islice(parts, 1)), parts)
