"""Networks with state: every inference anew, or one after the other as a session has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.evaluation import evaluate
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import MizzenError

from ...cpu.networks import counter  # noqa: TID252 tests are no package with a name

# Steps of two sequences; a state of the network adds them up, in numbers of 0.5.
FIRST = np.array([[3, 1, 0, 0], [5, 2, 0, 0], [7, 30, 0, 0]], np.int8)
SECOND = np.array([[1, 9, 0, 0], [1, 9, 0, 0], [1, 9, 0, 0]], np.int8)
BOTH = np.stack([FIRST, SECOND])


@pytest.fixture(scope="module")
def summing() -> Artifact:
    return mizzen.compile(counter(), "ethos-u55-128", prove="off")


def scores(artifact: Artifact, data: Any, labels: Any, **more: Any) -> list[Any]:
    """Return what is judged."""
    seen: list[Any] = []

    def keep(values: Any, _: Any) -> float:
        seen.append(values.tolist())
        return 0.0

    evaluate(artifact, data, labels, metrics=[keep], task="classes", **more)
    return seen[0]


def test_in_a_stream_the_state_goes_on_and_the_last_is_judged(summing: Artifact) -> None:
    """By hand: 3 + 5 + 7 and 1 + 2 + 30, halved."""
    found = scores(summing, BOTH, [1, 1], streaming=True)
    assert found == [[7.5, 16.5, 0.0, 0.0], [1.5, 13.5, 0.0, 0.0]]


def test_labels_for_each_step_judge_each_step(summing: Artifact) -> None:
    found = scores(summing, FIRST, [0, 0, 1], streaming=True)
    assert found == [[1.5, 0.5, 0, 0], [4.0, 1.5, 0, 0], [7.5, 16.5, 0, 0]]
    right = evaluate(summing, FIRST, [0, 0, 1], streaming=True)
    assert right.metrics[0].value == 1.0
    assert (right.samples, right.inferences) == (1, 3)


def test_without_streaming_every_inference_starts_anew(summing: Artifact) -> None:
    assert scores(summing, FIRST, [0, 0, 1]) == (FIRST / 2).tolist()


def test_inferences_of_one_sample_are_joined(summing: Artifact, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", FIRST)
    np.save(tmp_path / "b.npy", SECOND[:1])
    (tmp_path / "y.csv").write_text("a,1\nb,1\n")
    labels = tmp_path / "y.csv"
    assert scores(summing, tmp_path, labels) == [[2.5, 5.5, 0, 0], [0.5, 4.5, 0, 0]]
    assert scores(summing, tmp_path, labels, join="highest") == [[3.5, 15, 0, 0], [0.5, 4.5, 0, 0]]
    assert scores(summing, tmp_path, labels, join="last") == [[3.5, 15, 0, 0], [0.5, 4.5, 0, 0]]
    each = scores(summing, tmp_path, labels, join="each")
    assert each == (np.concatenate([FIRST, SECOND[:1]]) / 2).tolist()
    streamed = scores(summing, tmp_path, labels, streaming=True)
    assert streamed == [[7.5, 16.5, 0, 0], [0.5, 4.5, 0, 0]]


def test_an_iterable_yields_sequences(summing: Artifact) -> None:
    rows = [(FIRST, 1), (SECOND[:2], 1)]
    found = scores(summing, rows, None, streaming=True)
    assert found == [[7.5, 16.5, 0, 0], [1.0, 9.0, 0, 0]]
    stepwise = [(FIRST, [0, 0, 1]), (SECOND[:2], [1, 1])]
    assert len(scores(summing, stepwise, None, streaming=True)) == 5


def test_a_reference_streams_too(summing: Artifact, tmp_path: Path) -> None:
    (tmp_path / "counter.tflite").write_bytes(counter())
    found = evaluate(summing, BOTH, streaming=True, reference=tmp_path / "counter.tflite")
    assert found.reference is not None
    assert found.reference.agreement.equal == 2


def test_labels_of_another_number(summing: Artifact) -> None:
    with pytest.raises(MizzenError, match="a label for each of its 2 samples, not 3"):
        evaluate(summing, BOTH, [0, 1, 0], streaming=True)
