"""From the outputs of inferences to what metrics are of: scores and labels, one for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.analysis.evaluation.metrics import Task
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]


class Join(Enum):
    """What of several inferences of one sample is judged."""

    EACH = "each"
    """Every one, by itself."""
    MEAN = "mean"
    HIGHEST = "highest"
    LAST = "last"


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What is judged: real numbers `[N, ...]`, and the sample that each row is of."""

    values: Array
    samples: Array


def joined(outputs: Array, counts: Sequence[int], join: Join) -> Scores:
    """Join the inferences of each sample; `outputs` are real numbers of all, in order."""
    if join is Join.EACH or all(count == 1 for count in counts):
        return Scores(outputs, np.repeat(np.arange(len(counts)), counts))
    parts = np.split(outputs, np.cumsum(counts)[:-1])
    match join:
        case Join.MEAN:
            # Sums go from the first to the last inference of a sample, whatever is beside it.
            scores = [part.astype(np.float64).sum(axis=0) / len(part) for part in parts]
        case Join.HIGHEST:
            scores = [part.max(axis=0) for part in parts]
        case _:
            scores = [part[-1] for part in parts]
    return Scores(np.stack(scores), np.arange(len(counts)))


def is_anomaly(info: TensorInfo, output: TensorInfo, labels: Array) -> bool:
    """Whether labels of an autoencoder say which samples are anomalies."""
    same = info.shape == output.shape and labels.ndim == 1
    return same and output.size_bytes > output.dtype.itemsize and is_binary(labels)


def is_binary(labels: Array) -> bool:
    """Whether labels are 0 and 1."""
    return labels.dtype.kind in "biu" and bool(np.isin(labels, (0, 1)).all())


def flattened(values: Array) -> Array:
    """Return scores without extents of 1 before their last: `[N, 1, C]` as `[N, C]`."""
    inner = [extent for extent in values.shape[1:-1] if extent != 1]
    return values.reshape(len(values), *inner, *values.shape[-1:] if values.ndim > 1 else ())


def task_of(values: Array, labels: Array) -> Task:
    """Return the task that a network is for, by its labels."""
    whole = labels.dtype.kind in "biu"
    number = values[0].size
    if values.shape[-1] > 1 and labels.shape == values.shape[:-1] and (whole or _whole(labels)):
        return Task.CLASSES
    if one_hot(values, labels):
        return Task.CLASSES
    binary = number == 1 and labels.size == len(values) and is_binary(labels)
    return Task.DETECTION if binary else Task.VALUES


def require_suitable(task: Task, values: Array, labels: Array) -> None:
    """Raise E242 for labels of another shape than a task compares outputs with, or E244."""
    several = values.ndim > 1 and values.shape[-1] > 1
    match task:
        case Task.CLASSES:
            suits = several and (labels.shape == values.shape[:-1] or one_hot(values, labels))
        case Task.DETECTION:
            suits = labels.size == values.size == len(values)
        case _:
            suits = labels.size == values.size
    if not suits:
        raise fail(
            "E242",
            f"labels of {task.value} must suit the output, which is {list(values.shape)}, and have "
            f"the shape {list(labels.shape)}",
            help="--output names the output that is judged, --task what it is for",
        )
    if task is Task.CLASSES and not _whole(labels):
        raise fail("E244", "every label of a class must be a whole number")


def one_hot(values: Array, labels: Array) -> bool:
    """Whether labels have a 1 at the place of the class, and 0 elsewhere."""
    if labels.shape != values.shape or values.shape[-1] < 2:
        return False
    return bool(np.isin(labels, (0, 1)).all() and (labels.sum(axis=-1) == 1).all())


def _whole(labels: Array) -> bool:
    return bool(np.all(labels == np.trunc(labels)))


def class_labels(values: Array, labels: Array, names: Sequence[str]) -> Array:
    """Return labels as places of outputs. E244 for one that the network has no output for."""
    places = labels.argmax(axis=-1) if one_hot(values, labels) else labels
    number = values.shape[-1]
    if places.size and (int(places.min()) < 0 or int(places.max()) >= number):
        wrong = int(places.max()) if int(places.max()) >= number else int(places.min())
        raise fail(
            "E244",
            f"every label must be one of the network's {number} classes, 0 to {number - 1}, not "
            f"{wrong}",
            help="give the output's number, from 0; --classes gives names in that order",
        )
    if names and len(names) != number:
        raise fail(
            "E244",
            f"there must be {number} classes, as the network has outputs, not {len(names)}: "
            f"{', '.join(names)}",
            help="name all of them with --classes, in the order of the outputs",
        )
    return places.astype(np.int64)
