"""Labels: what a network should say to each sample, from CSV, NumPy's files or names of folders."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.data.arrays import read_array
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

FILE_HEADINGS = frozenset(("file", "filename", "file_name", "path", "image", "name", "sample"))
LABEL_HEADINGS = frozenset(("label", "labels", "class", "target", "y", "value"))
DELIMITERS = (",", ";", "\t")
KEYS = ("labels", "label", "y", "targets", "target", "y_test")
"""Arrays of a .npz that are labels if it is not said which are, in this order."""

MLPERF_COLUMNS = 3, 5
"""Of a `y_labels.csv`: file, number of classes, label; and width and stride of windows in bytes.

Ref: MLPerf Tiny, benchmark/evaluation/datasets/README.md, "Ground Truth Format".
"""

LIMITS = np.iinfo(np.int64)
"""Whole numbers beyond them are real ones, which no class is called by."""
LONGEST_LINE = 1 << 16
"""Characters; half of what Python's reader of CSV takes in one field."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a labels file.

    file    that the label is for; empty where there are labels only
    window  width and stride, in bytes, of the windows that a raw file is cut into
    """

    file: str
    label: str
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A label for each sample, or for each inference.

    values   [N, ...], integers for classes
    classes  their names, in the order of the network's outputs, where they have any
    """

    values: Array
    classes: tuple[str, ...] = ()


def read_labels(path: Path, classes: Sequence[str]) -> Labels:
    """Read labels in the order of the samples: a .npy file, or a text file's one column. E243."""
    if path.suffix.lower() == ".npy":
        return array_labels(read_array(path), classes, str(path))
    return labels_of([entry.label for entry in read_rows(path)], classes, str(path))


def array_labels(array: Array, classes: Sequence[str], source: str) -> Labels:
    """Return an array of numbers or of names as labels. E244."""
    if array.dtype.kind in "US":
        return labels_of([str(word) for word in array.ravel().tolist()], classes, source)
    return Labels(np.asarray(array), tuple(classes))


def read_rows(path: Path) -> list[Row]:
    """Read the lines of a CSV file: `label`, `file,label`, or MLPerf Tiny's. E243."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise fail("E243", f"{path} must be a file of labels: {reason.lower()}") from None
    lines = text.splitlines()
    if max(map(len, lines), default=0) > LONGEST_LINE:
        raise fail("E243", f"{path} must have lines of at most {LONGEST_LINE:,} characters")
    delimiter = max(DELIMITERS, key=lines[0].count) if lines else ","
    lines = list(csv.reader(lines, delimiter=delimiter))
    cells = [(i, [cell.strip() for cell in line]) for i, line in enumerate(lines, 1) if any(line)]
    places, cells = _places(cells)
    entries = [_row(path, number, line, places) for number, line in cells]
    if not entries:
        raise fail("E243", f"{path} must have labels, and has no line", help="file,label")
    return entries


Lines = list[tuple[int, list[str]]]


def _places(cells: Lines) -> tuple[tuple[int, int] | None, Lines]:
    """Return where a heading says that file and label are, and the lines below it."""
    if not cells:
        return None, cells
    heading = [cell.lower() for cell in cells[0][1]]
    label = next((i for i, cell in enumerate(heading) if cell in LABEL_HEADINGS), None)
    if label is None:
        return None, cells
    file = next((i for i, cell in enumerate(heading) if cell in FILE_HEADINGS), -1)
    return (file, label), cells[1:]


def _row(path: Path, number: int, line: list[str], places: tuple[int, int] | None) -> Row:
    try:
        if places is not None:
            file, label = places
            return Row(line[file] if file >= 0 else "", line[label])
        if len(line) <= 2:
            return Row(line[0] if len(line) == 2 else "", line[-1])
        if len(line) in MLPERF_COLUMNS:
            numbers = [int(cell) for cell in line[1:]]
            window = (numbers[2], numbers[3]) if len(numbers) > 2 else None
            if window is None or min(window) > 0:
                return Row(line[0], line[2], window)
    except (IndexError, ValueError):
        pass
    raise fail(
        "E243",
        f"{path}, line {number}, must have a file and its label, not {','.join(line)[:60]!r}",
        help="write a heading, file,label, or MLPerf Tiny's columns: file,classes,label and, for "
        "windows, width,stride",
    )


def labels_of(words: Sequence[str], classes: Sequence[str], source: str) -> Labels:
    """Return words as labels: whole numbers, real numbers, or names of classes. E244."""
    if set(words) <= set(classes):
        return Labels(np.array([classes.index(word) for word in words]), tuple(classes))
    numbers = _numbers(words)
    if numbers is not None:
        return Labels(numbers, tuple(classes))
    if classes:
        wrong = next(word for word in words if word not in classes)
        raise fail(
            "E244",
            f"{source}: every label must be one of the classes {', '.join(classes)}, not {wrong!r}",
            help="give the classes in the order of the network's outputs",
        )
    names = tuple(sorted(set(words)))
    return Labels(np.array([names.index(word) for word in words]), names)


def _numbers(words: Sequence[str]) -> Array | None:
    """Return words as numbers, integers where all are; None unless all are numbers."""
    try:
        whole = [int(word) for word in words]
        if all(LIMITS.min <= number <= LIMITS.max for number in whole):
            return np.array(whole, np.int64)
    except ValueError:
        pass
    try:
        return np.array([float(word) for word in words])
    except ValueError:
        return None


def classes_from(text: str) -> tuple[str, ...]:
    """Return names of classes: of a file with one in each line, or separated by commas. E243."""
    path = Path(text)
    if not path.is_file():
        return tuple(name.strip() for name in text.split(",") if name.strip())
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise fail("E243", f"{path} must be a file with a class in each line: {error}") from None
    return tuple(line.strip() for line in lines if line.strip())
