"""Figures of merit: what they are computed from, and from which number on one is better.

Every one is of whole arrays in the order of the samples, so that it does not depend on the parts in
which these were inferred.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.report.evaluation import Confusion, Metric

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


class Task(Enum):
    """What a network is for, which says what its outputs are compared with."""

    CLASSES = "classes"
    """The highest output is at the label's place."""
    DETECTION = "detection"
    """One output, high where the label is 1 and low where it is 0."""
    ANOMALY = "anomaly"
    """The output is the input again, the further from it the more of an anomaly (label 1)."""
    VALUES = "values"
    """The output is the label's numbers."""


Function = Callable[["Array", "Array"], object]
"""Of scores `[N, ...]`, real numbers, and labels `[N, ...]`."""

MIDDLE = 0.5
"""A single output above it means 1: that of a logistic function."""


@dataclass(frozen=True, slots=True)
class Row:
    """A metric that is known by name."""

    name: str
    what: str
    tasks: frozenset[Task]
    higher_is_better: bool
    compute: Callable[[Array, Array], float]


def top(k: int) -> Callable[[Array, Array], float]:
    """Return the share of labels among the `k` highest outputs; of equal ones the first is higher.

    Scores are `[..., C]`, labels `[...]`.
    """

    def share(scores: Array, labels: Array) -> float:
        flat = scores.reshape(-1, scores.shape[-1])
        right = labels.ravel().astype(np.int64)
        own = flat[np.arange(len(flat)), right][:, np.newaxis]
        before = np.arange(flat.shape[1]) < right[:, np.newaxis]
        rank = np.sum((flat > own) | ((flat == own) & before), axis=1)
        return float((rank < k).mean())

    return share


def area_under_curve(scores: Array, positive: Array) -> float:
    """Return the area under the ROC curve: how often a positive's score is the higher one.

    Ties count half. Ref: Mann and Whitney's U over the number of pairs. NaN without both kinds.
    """
    positives, negatives = scores[positive], scores[~positive]
    if not (positives.size and negatives.size):
        return math.nan
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, "left")
    up_to = np.searchsorted(ordered, positives, "right")
    # Twice the count of won pairs is a whole number, so the sum does not depend on its order.
    doubled = int(np.sum(below.astype(np.int64) + up_to.astype(np.int64)))
    return doubled / (2 * positives.size * negatives.size)


def _auc(scores: Array, labels: Array) -> float:
    """Of one output, or the mean over the classes that are there, each against the others."""
    if scores.ndim == 1:
        return area_under_curve(scores, labels.ravel() == 1)
    flat, right = scores.reshape(-1, scores.shape[-1]), labels.ravel()
    places = range(1, 2) if flat.shape[1] == 2 else range(flat.shape[1])
    areas = [area_under_curve(_against_rest(flat, place), right == place) for place in places]
    there = [area for area in areas if not math.isnan(area)]
    return math.fsum(there) / len(there) if there else math.nan


def _against_rest(scores: Array, place: int) -> Array:
    """Return a class's score; of two classes, how far it is above the other."""
    if scores.shape[1] == 2:
        return scores[:, place].astype(np.float64) - scores[:, 1 - place]
    return scores[:, place]


def _accuracy(scores: Array, labels: Array) -> float:
    return float(((scores.ravel() > MIDDLE) == (labels.ravel() == 1)).mean())


def _balanced(scores: Array, labels: Array) -> float:
    """The mean over classes of how many of each are found."""
    highest, right = scores.argmax(axis=-1).ravel(), labels.ravel()
    places = np.flatnonzero(np.bincount(right))
    shares = [float((highest[right == place] == place).mean()) for place in places]
    return math.fsum(shares) / len(shares)


def _mean_error(scores: Array, labels: Array) -> float:
    return math.fsum(np.abs(_differences(scores, labels)).tolist()) / scores.size


def _root_mean_square(scores: Array, labels: Array) -> float:
    return math.sqrt(math.fsum(np.square(_differences(scores, labels)).tolist()) / scores.size)


def _largest_error(scores: Array, labels: Array) -> float:
    return float(np.abs(_differences(scores, labels)).max())


def _differences(scores: Array, labels: Array) -> Array:
    return scores.astype(np.float64).ravel() - labels.astype(np.float64).ravel()


CLASSES, DETECTION = frozenset((Task.CLASSES,)), frozenset((Task.DETECTION,))
RANKED = frozenset((Task.CLASSES, Task.DETECTION, Task.ANOMALY))
VALUES = frozenset((Task.VALUES,))
METRICS = (
    Row("top1", "share whose highest output is the label's", CLASSES, True, top(1)),
    Row("top5", "share whose label is among the five highest outputs", CLASSES, True, top(5)),
    Row("balanced", "mean over classes of the share that is found", CLASSES, True, _balanced),
    Row("accuracy", "share on the right side of 0.5", DETECTION, True, _accuracy),
    Row("auc", "area under the ROC curve; of several classes, the mean", RANKED, True, _auc),
    Row("mean-error", "mean size of the differences", VALUES, False, _mean_error),
    Row("rms-error", "root of the mean squared difference", VALUES, False, _root_mean_square),
    Row("largest-error", "largest size of a difference", VALUES, False, _largest_error),
)  # fmt: skip
"""In the order in which they are computed; the first of a task is its first metric."""
MORE_THAN_FIVE = 6
"""Classes from which on `top5` says something."""


def usual(task: Task, scores: Array, labels: Array) -> tuple[Metric, ...]:
    """Compute the metrics that a task has if none is named, those that there is a number for."""
    metrics: list[Metric] = []
    for metric in METRICS:
        if task in metric.tasks and (metric.name != "top5" or scores.shape[-1] >= MORE_THAN_FIVE):
            value = metric.compute(scores, labels)
            if math.isfinite(value):
                metrics.append(Metric(metric.name, value, metric.higher_is_better))
    return tuple(metrics)


def compute(
    asked: Sequence[str | Function], task: Task, scores: Array, labels: Array
) -> tuple[Metric, ...]:
    """Compute metrics by name, or by a function of scores and labels. E250 for what is not one."""
    metrics: list[Metric] = []
    for each in asked:
        if callable(each):
            metrics += _users(getattr(each, "__name__", "metric"), each, scores, labels)
        elif ":" in each:
            metrics += _users(each.partition(":")[2], _imported(each), scores, labels)
        else:
            kind = _row(each, task)
            metrics.append(Metric(kind.name, kind.compute(scores, labels), kind.higher_is_better))
    for metric in metrics:
        if not math.isfinite(metric.value):
            raise fail(
                "E250",
                f"the metric {metric.name} must be a number, and is {metric.value}",
                help="auc needs samples of both kinds" if metric.name == "auc" else None,
            )
    return tuple(metrics)


def _row(name: str, task: Task) -> Row:
    ranked = name.removeprefix("top")
    if task is Task.CLASSES and name.startswith("top") and ranked.isdecimal() and int(ranked):
        return Row(name, "", CLASSES, True, top(int(ranked)))
    metric = next((each for each in METRICS if each.name == name and task in each.tasks), None)
    if metric is not None:
        return metric
    known = ", ".join(each.name for each in METRICS if task in each.tasks)
    raise fail(
        "E250",
        f"a metric of {task.value} must be {known}, or module:function, not {name!r}",
        help="a function takes outputs, as floats, and labels, and returns a number",
    )


def _imported(name: str) -> Function:
    module, _, function = name.partition(":")
    try:
        imported = getattr(import_module(module), function)
    except Exception as error:  # a user's module may do anything
        raise fail(
            "E250",
            f"the metric {name} must be a function in a module that can be imported: {error}",
            help="write module:function, where Python finds the module: PYTHONPATH=.",
        ) from error
    return imported


def _users(name: str, function: Function, scores: Array, labels: Array) -> list[Metric]:
    """Call a user's metric, which gives a number, or several by name. E250 where it fails."""
    try:
        result = function(scores, labels)
        if isinstance(result, Mapping):
            named: Mapping[Any, Any] = result  # pyright: ignore[reportUnknownVariableType] a user's
            return [Metric(str(key), float(value), None) for key, value in named.items()]
        return [Metric(name, float(result), None)]  # pyright: ignore[reportArgumentType] said below
    except Exception as error:  # a user's function may do anything
        raise fail(
            "E250",
            f"the metric {name} must return a number, and does not: {type(error).__name__}: "
            f"{error}",
            help=f"it is given outputs {list(scores.shape)} of {scores.dtype} and labels "
            f"{list(labels.shape)} of {labels.dtype}",
        ) from error


def confusion(scores: Array, labels: Array, names: Sequence[str]) -> Confusion:
    """Count which class came where which one was right."""
    number = scores.shape[-1]
    highest, right = scores.argmax(axis=-1).ravel(), labels.ravel().astype(np.int64)
    counts = np.bincount(right * number + highest, minlength=number * number)
    known = tuple(names) if names else tuple(map(str, range(number)))
    table = counts.reshape(number, number).tolist()
    return Confusion(known, tuple(tuple(line) for line in table))
