"""What the inputs of a network are given, sample by sample; parts of it go to other processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mizzen.diagnostics import Diagnostic, MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]


class Column(Protocol):
    """The samples of one input. A sample has one or more inferences."""

    @property
    def size(self) -> int:
        """How many samples there are."""
        ...

    def cut(self, start: int, stop: int) -> Column:
        """Return the samples from `start` to before `stop`; it can be pickled."""
        ...

    def name(self, index: int) -> str:
        """Return the name of a sample, for messages."""
        ...

    def read(self) -> list[Array]:
        """Return the inferences of each sample, `[k, *shape]`, in types of their own."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ArrayColumn:
    """An array, each of whose rows is a sample.

    rows    [N, k, *shape], `k` inferences for each sample
    source  where they come from, for messages
    first   the number of the first
    """

    rows: Array
    source: str
    first: int = 0

    @property
    def size(self) -> int:
        """How many samples there are."""
        return len(self.rows)

    def cut(self, start: int, stop: int) -> ArrayColumn:
        """Return the samples from `start` to before `stop`."""
        return ArrayColumn(np.asarray(self.rows[start:stop]), self.source, self.first + start)

    def name(self, index: int) -> str:
        """Return the name of a sample: `images.npy[12]`."""
        return f"{self.source}[{self.first + index}]"

    def read(self) -> list[Array]:
        """Return the inferences of each sample."""
        return list(self.rows)


class Reader(Protocol):
    """Reads files of a kind for an input; can be pickled."""

    def __call__(self, path: Path) -> Array:
        """Return the inferences of a file, `[k, *shape]`."""
        ...


@dataclass(frozen=True, slots=True)
class FileColumn:
    """Files, each of which is a sample.

    names  of the files, relative to `folder`
    """

    folder: Path
    names: tuple[str, ...]
    reader: Reader

    @property
    def size(self) -> int:
        """How many files there are."""
        return len(self.names)

    def cut(self, start: int, stop: int) -> FileColumn:
        """Return the files from `start` to before `stop`."""
        return FileColumn(self.folder, self.names[start:stop], self.reader)

    def name(self, index: int) -> str:
        """Return a file's name in its folder."""
        return self.names[index]

    def read(self) -> list[Array]:
        """Return the inferences of each file. Errors name the file."""
        return [self._read(name) for name in self.names]

    def _read(self, name: str) -> Array:
        path = self.folder / name
        try:
            return self.reader(path)
        except MizzenError as error:
            raise named(error, str(path)) from error


def named(error: MizzenError, name: str) -> MizzenError:
    """Return an error whose message begins with the sample that it is about."""
    diagnostic = error.diagnostic
    if name in diagnostic.message:
        return error
    return MizzenError(
        Diagnostic(
            diagnostic.code, f"{name}: {diagnostic.message}", diagnostic.severity,
            diagnostic.origin, diagnostic.rule,
            diagnostic.help,
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """A column for each input of a network, all of one size."""

    columns: tuple[Column, ...]

    @property
    def size(self) -> int:
        """How many samples there are."""
        return self.columns[0].size

    def cut(self, start: int, stop: int) -> DataSet:
        """Return the samples from `start` to before `stop`."""
        return DataSet(tuple(column.cut(start, stop) for column in self.columns))

    def name(self, index: int) -> str:
        """Return the name of a sample."""
        return self.columns[0].name(index)


def data_set(columns: Sequence[Column]) -> DataSet:
    """Join what the inputs are given. E242 unless all bring one number of samples, at least 1."""
    sizes = {column.size for column in columns}
    if len(sizes) != 1 or 0 in sizes:
        counts = ", ".join(str(column.size) for column in columns)
        raise fail(
            "E242",
            f"all inputs must be given the same number of samples, at least 1, not {counts}",
            help="give each input one row, or one file, for each sample",
        )
    return DataSet(tuple(columns))


def array_column(array: Array, info: TensorInfo, source: str, *, sequences: bool) -> ArrayColumn:
    """Return the samples of an array.

    It is `[N, *shape]`, `[N, *shape[1:]]` where the first extent is 1, or has exactly the input's
    shape. With `sequences`, its rows are the inferences of one sample, or it is `[N, k, ...]`, as
    many samples of `k` inferences each. E246 for any other shape.
    """
    inferences = as_inferences(array, info)
    if inferences is not None:
        return ArrayColumn(
            inferences[np.newaxis] if sequences else inferences[:, np.newaxis], source
        )
    if sequences and array.ndim:
        parts = [as_inferences(sample, info) for sample in array]
        if parts and all(part is not None for part in parts):
            return ArrayColumn(np.stack([part for part in parts if part is not None]), source)
    raise fail(
        "E246",
        f"{source} must have the shape {expected_shape(info)} of the input {info.name}, not "
        f"{list(array.shape)}",
        help="N counts samples; reshape or transpose the array",
    )


def as_inferences(array: Array, info: TensorInfo) -> Array | None:
    """Return an array as `[k, *shape]`, None if it is not of an input's shape, once or often."""
    shape = info.shape
    if array.shape == shape:
        return array[np.newaxis]
    if array.ndim and array.shape[1:] == shape:
        return array
    if shape[:1] == (1,):
        if array.shape == shape[1:]:
            return array[np.newaxis, np.newaxis]
        if array.ndim and array.shape[1:] == shape[1:]:
            return array[:, np.newaxis]
    return None


def expected_shape(info: TensorInfo) -> str:
    """Write the shape that arrays for an input have: `[N, 49, 10, 1]`."""
    extents = info.shape[1:] if info.shape[:1] == (1,) else info.shape
    return f"[{', '.join(('N', *map(str, extents)))}]"
