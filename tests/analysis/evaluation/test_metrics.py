"""Figures of merit, beside those of scikit-learn and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mizzen.analysis.evaluation.metrics import (
    Task,
    area_under_curve,
    compute,
    confusion,
    top,
    usual,
)
from mizzen.diagnostics import MizzenError

sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the oracle")

RNG = np.random.default_rng(5)
SCORES = RNG.integers(-20, 20, (300, 7)).astype(np.float32)  # few values: there are ties
LABELS = RNG.integers(0, 7, 300)


def value(name: str, task: Task, scores: object, labels: object) -> float:
    (metric,) = compute([name], task, np.asarray(scores), np.asarray(labels))
    return metric.value


def test_the_highest_output_is_numpys() -> None:
    right = SCORES.argmax(axis=1) == LABELS
    assert top(1)(SCORES, LABELS) == right.mean()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_several_highest_are_scikit_learns_without_ties(k: int) -> None:
    scores = RNG.permutation(2100).reshape(300, 7).astype(np.float32)
    theirs = sklearn_metrics.top_k_accuracy_score(LABELS, scores, k=k)
    assert value(f"top{k}", Task.CLASSES, scores, LABELS) == theirs


def test_of_equal_outputs_the_first_is_higher() -> None:
    scores, labels = np.array([[1.0, 1.0, 1.0]] * 3), np.array([0, 1, 2])
    assert [top(k)(scores, labels) for k in (1, 2, 3)] == [1 / 3, 2 / 3, 1.0]


def test_area_under_the_curve_is_scikit_learns() -> None:
    labels = LABELS % 2
    theirs = sklearn_metrics.roc_auc_score(labels, SCORES[:, 0])
    assert area_under_curve(SCORES[:, 0], labels == 1) == pytest.approx(theirs, abs=1e-12)
    assert value("auc", Task.DETECTION, SCORES[:, 0], labels) == pytest.approx(theirs, abs=1e-12)


def test_area_of_classes_is_the_mean_of_each_against_the_others() -> None:
    each = [sklearn_metrics.roc_auc_score(c == LABELS, SCORES[:, c]) for c in range(7)]
    assert value("auc", Task.CLASSES, SCORES, LABELS) == pytest.approx(np.mean(each), abs=1e-12)


def test_of_two_classes_the_area_is_that_of_their_difference() -> None:
    labels, two = LABELS % 2, SCORES[:, :2]
    theirs = sklearn_metrics.roc_auc_score(labels, two[:, 1] - two[:, 0])
    assert value("auc", Task.CLASSES, two, labels) == pytest.approx(theirs, abs=1e-12)


def test_balanced_is_scikit_learns() -> None:
    theirs = sklearn_metrics.balanced_accuracy_score(LABELS, SCORES.argmax(axis=1))
    assert value("balanced", Task.CLASSES, SCORES, LABELS) == pytest.approx(theirs, abs=1e-12)


def test_confusion_is_scikit_learns() -> None:
    theirs = sklearn_metrics.confusion_matrix(LABELS, SCORES.argmax(axis=1), labels=range(7))
    found = confusion(SCORES, LABELS, ())
    assert np.array_equal(np.array(found.counts), theirs)
    assert found.classes == tuple("0123456")


def test_errors_by_hand() -> None:
    scores, labels = np.array([[1.0], [2.0], [4.0]], np.float32), np.array([1.0, 0.0, 8.0])
    found = {row.name: row.value for row in usual(Task.VALUES, scores, labels)}
    assert found == {
        "mean-error": 2.0,
        "rms-error": pytest.approx(math.sqrt(20 / 3)),
        "largest-error": 4.0,
    }


def test_a_metric_of_one_kind_only_is_left_out_or_refused() -> None:
    scores, labels = np.array([0.1, 0.7]), np.array([1, 1])
    assert [row.name for row in usual(Task.DETECTION, scores, labels)] == ["accuracy"]
    with pytest.raises(MizzenError, match="the metric auc must be a number, and is nan"):
        value("auc", Task.DETECTION, scores, labels)


def test_a_users_metric_gives_a_number_or_several() -> None:
    def both(scores: Any, labels: Any) -> dict[str, float]:
        return {"mean": float(np.mean(scores)), "labels": float(np.sum(labels))}

    found = compute([both], Task.VALUES, SCORES, LABELS)
    assert [(row.name, row.higher_is_better) for row in found] == [("mean", None), ("labels", None)]
    assert found[1].value == LABELS.sum()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("top0", r"must be top1, top5, balanced, auc, or module:function, not 'top0'"),
        ("nowhere:f", r"nowhere:f must be a function in a module .*No module named 'nowhere'"),
        ("math:nothing", r"math:nothing must be a function"),
        ("math:sqrt", r"the metric sqrt must return a number, and does not: TypeError"),
    ],
)
def test_what_is_no_metric(name: str, said: str) -> None:
    with pytest.raises(MizzenError, match=said) as found:
        compute([name], Task.CLASSES, SCORES, LABELS)
    assert found.value.diagnostic.code == "E250"
