"""A data set from where it lies: which file is for which input, and where its labels are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.data.arrays import read_archive, read_array
from mizzen.data.columns import Column, DataSet, FileColumn, array_column, data_set
from mizzen.data.labels import KEYS, Labels, array_labels, read_labels
from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo
    from mizzen.data.forms import Forms

    Array = npt.NDArray[Any]

ARCHIVE, NUMPY = ".npz", ".npy"


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A data set, what it is called, its labels where there are any, and what there is to say."""

    name: str
    data: DataSet
    labels: Labels | None
    notes: tuple[str, ...] = ()


def open_data(
    words: Sequence[str],
    inputs: Sequence[TensorInfo],
    labels: str | Path | None = None,
    *,
    classes: Sequence[str] = (),
    sequences: bool = False,
    forms: Forms | None = None,
) -> Opened:
    """Open a data set.

    words      ``PATH``, or ``NAME=PATH`` for each input: a .npz with all of them, or a .npy, a
               folder of files or one file for each
    labels     path of a CSV or .npy file, or the name of an array of the .npz
    classes    names of the classes, in the order of the outputs
    sequences  an array's rows follow one another in one sample
    forms      how files of each kind are read

    Raises E203 for files that cannot be read, E240 for what is not a data set, E241 to E257 for
    labels, shapes and forms that do not fit.
    """
    paths = paths_of(words, inputs)
    if len(paths) == 1 and paths[0].suffix.lower() == ARCHIVE:
        return _archive(paths[0], inputs, labels, classes, sequences)
    sources = [
        _column(path, info, labels, classes, sequences, forms)
        for path, info in zip(paths, inputs, strict=True)
    ]
    notes = tuple(note for source in sources for note in source.notes)
    data = data_set([source.column for source in sources])
    return Opened(", ".join(words), data, sources[0].labels, notes)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A column, and what its place says of labels."""

    column: Column
    labels: Labels | None
    notes: tuple[str, ...] = ()


def paths_of(words: Sequence[str], inputs: Sequence[TensorInfo]) -> list[Path]:
    """Return the path for each input. E240 unless there is one for each, or an archive."""
    if len(words) == 1 and Path(words[0]).suffix.lower() == ARCHIVE:
        return [_existing(Path(words[0]))]
    names = [info.name for info in inputs]
    split = {word: word.partition("=") for word in words}
    named = {name: path for name, _, path in split.values() if name in names}
    unnamed = iter([word for word, parts in split.items() if parts[0] not in names])
    given = [named[name] if name in named else next(unnamed, None) for name in names]
    if None in given or next(unnamed, None) is not None:
        raise fail(
            "E240",
            f"the data must be one file or folder for each input ({', '.join(names)}), or a .npz "
            f"with all of them, not {', '.join(words)}",
            help="write NAME=PATH where the order is another",
        )
    return [_existing(Path(path)) for path in given if path is not None]


def _existing(path: Path) -> Path:
    if path.exists():
        return path
    raise fail("E240", f"{path} must be a file or a folder, and is not there")


def _column(
    path: Path,
    info: TensorInfo,
    labels: str | Path | None,
    classes: Sequence[str],
    sequences: bool,
    forms: Forms | None,
) -> Found:
    if path.suffix.lower() == NUMPY:
        column = array_column(read_array(path), info, str(path), sequences=sequences)
        truth = None if labels is None else read_labels(_existing(Path(labels)), classes)
        return Found(column, truth)
    from mizzen.data.files import KINDS  # arrays need nothing of what reads files

    if not path.is_dir() and path.suffix.lower() not in KINDS:
        raise fail(
            "E240",
            f"{path} must be a folder, or a file that ends with .npz, {', '.join(sorted(KINDS))}",
            help="write arrays with numpy.savez(path, x=x, labels=labels)",
        )
    return files_at(path, info, forms, labels, classes)


def files_at(
    path: Path,
    info: TensorInfo,
    forms: Forms | None,
    labels: str | Path | None = None,
    classes: Sequence[str] = (),
) -> Found:
    """Return the samples of a folder, or of one file, and their labels.

    Raises E240 for a folder without samples, E241 to E244 for labels that do not fit.
    """
    from mizzen.data.files import files_in, reader_for, suffix_of
    from mizzen.data.forms import Forms
    from mizzen.data.listing import Listed, listed

    folder, names = (path, files_in(path)) if path.is_dir() else (path.parent, (path.name,))
    listing = listed(folder, names, labels, classes) if path.is_dir() or labels else Listed(names)
    reader, said = reader_for(suffix_of(listing.names), info, forms or Forms(), listing.window)
    notes = tuple(note for note in (*listing.notes, said) if note)
    return Found(FileColumn(folder, listing.names, reader), listing.labels, notes)


def _archive(
    path: Path,
    inputs: Sequence[TensorInfo],
    labels: str | Path | None,
    classes: Sequence[str],
    sequences: bool,
) -> Opened:
    members = read_archive(path)
    key = _labels_key(members, inputs, labels)
    truth: Labels | None = None
    if key is not None:
        truth = array_labels(members[key], classes, f"{key} of {path}")
    elif labels is not None:
        truth = read_labels(_labels_path(Path(labels), path, members), classes)
    rest = {name: array for name, array in members.items() if name != key}
    columns = [
        array_column(array, info, path.name, sequences=sequences)
        for array, info in zip(_by_input(rest, inputs, path), inputs, strict=True)
    ]
    return Opened(str(path), data_set(columns), truth)


def _labels_key(
    members: Mapping[str, Array], inputs: Sequence[TensorInfo], labels: str | Path | None
) -> str | None:
    """Return which array has the labels: the one that is named, or one of a usual name."""
    if labels is not None:
        return str(labels) if str(labels) in members else None
    taken = {info.name for info in inputs}
    return next((key for key in KEYS if key in members and key not in taken), None)


def _labels_path(labels: Path, path: Path, members: Mapping[str, Array]) -> Path:
    if labels.exists():
        return labels
    raise fail(
        "E241",
        f"{labels} must be a file of labels, or an array of {path}, whose arrays are "
        f"{', '.join(members)}",
    )


def _by_input(
    members: Mapping[str, Array], inputs: Sequence[TensorInfo], path: Path
) -> list[Array]:
    """Return an array for each input: by its name, or the only ones that there are."""
    names = [info.name for info in inputs]
    if all(name in members for name in names):
        return [members[name] for name in names]
    if len(members) == len(names) and not set(members) & set(names):
        return list(members.values())
    raise _missing(names, members, path)


def _missing(names: Sequence[str], members: Mapping[str, Array], path: Path) -> MizzenError:
    missing = ", ".join(name for name in names if name not in members)
    return fail(
        "E240",
        f"{path} must have an array for each input, and has none for {missing}",
        help=f"its arrays are {', '.join(members) or 'none'}; name them after the inputs, and the "
        f"labels {KEYS[0]!r}",
    )
