"""Data sets through an artifact: the same numbers as by hand, in whatever form the data come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.evaluation import Listener, evaluate
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.evaluation import Evaluation


@pytest.fixture(scope="session")
def digits(repository: Path) -> Artifact:
    return mizzen.compile(
        repository / "examples" / "digits" / "digits.tflite", "ethos-u55-128", prove="off"
    )


@pytest.fixture(scope="session")
def images(repository: Path) -> np.ndarray[Any, Any]:
    return np.load(repository / "examples" / "digits" / "images.npy")


@pytest.fixture(scope="session")
def labels(repository: Path) -> np.ndarray[Any, Any]:
    return np.load(repository / "examples" / "digits" / "labels.npy")


def same(one: Evaluation, other: Evaluation) -> bool:
    """Whether two evaluations say the same, but for the time that they took and the data's name."""
    mistakes = one.mistakes if one.data == other.data else other.mistakes
    changed = replace(one, seconds=other.seconds, data=other.data, mistakes=mistakes)
    return changed == other


def test_numbers_are_those_of_a_run(digits: Artifact, images: Any, labels: Any) -> None:
    scores: Any = digits.run(images)
    found = evaluate(digits, images, labels)
    assert (found.samples, found.inferences) == (100, 100)
    right = scores.argmax(axis=1) == labels
    assert found.metrics[0].name == "top1"
    assert found.metrics[0].value == right.mean()
    assert found.wrong == (~right).sum()
    assert found.mistakes == tuple(f"data[{i}]" for i in np.flatnonzero(~right))[:10]
    assert found.confusion is not None
    assert np.trace(np.array(found.confusion.counts)) == right.sum()
    assert found.configuration["accelerator"] == "ethos-u55-128"


def test_real_numbers_are_quantised(digits: Artifact, images: Any, labels: Any) -> None:
    quantization = digits.inputs[0].quantization
    assert quantization is not None
    reals = (images.astype(np.float64) - quantization.zero_point[0]) * quantization.scale[0]
    said: list[str] = []
    found = evaluate(digits, reals, labels, listener=Listener(note=said.append))
    assert same(found, evaluate(digits, images, labels))
    assert len(said) == 1
    assert "float64 quantised with scale" in said[0]


def test_every_form_says_the_same(
    digits: Artifact, images: Any, labels: Any, tmp_path: Path
) -> None:
    expected = evaluate(digits, images, labels)
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", labels)
    (tmp_path / "y.csv").write_text("\n".join(map(str, labels)))
    np.savez(tmp_path / "both.npz", images, labels=labels)
    np.savez(tmp_path / "named.npz", **{digits.inputs[0].name: images, "truth": labels})

    def loader() -> Iterator[tuple[Any, Any]]:
        for start in range(0, 100, 32):
            yield images[start : start + 32], labels[start : start + 32]

    forms: list[Evaluation] = [
        evaluate(digits, tmp_path / "x.npy", tmp_path / "y.npy"),
        evaluate(digits, tmp_path / "x.npy", str(tmp_path / "y.csv")),
        evaluate(digits, tmp_path / "both.npz"),
        evaluate(digits, tmp_path / "named.npz", "truth"),
        evaluate(digits, {digits.inputs[0].name: images}, labels.tolist()),
        evaluate(digits, loader()),
        evaluate(digits, list(zip(images, labels, strict=True))),
        evaluate(digits, images[:, np.newaxis], labels),
        evaluate(digits, images, np.eye(10)[labels]),
    ]
    assert [same(found, expected) for found in forms] == [True] * len(forms)


def test_names_of_classes(digits: Artifact, images: Any, labels: Any) -> None:
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    words = [names[label] for label in labels]
    found = evaluate(digits, images, words, classes=names)
    assert found.confusion is not None
    assert found.confusion.classes == tuple(names)
    assert found.metrics == evaluate(digits, images, labels).metrics


def test_values_of_a_sine(models: Path) -> None:
    x = np.linspace(0, 2 * np.pi, 200, dtype=np.float32)[:, np.newaxis]
    artifact = mizzen.compile(models / "hello_world_int8.tflite", "ethos-u55-128", prove="off")
    found = evaluate(artifact, x, np.sin(x[:, 0]))
    taken, made = artifact.inputs[0].quantization, artifact.outputs[0].quantization
    assert taken is not None
    assert made is not None
    codes = np.clip(np.rint(x / taken.scale[0]) + taken.zero_point[0], -128, 127)
    given: Any = artifact.run(codes.astype(np.int8))
    values = (given[:, 0].astype(np.float64) - made.zero_point[0]) * made.scale[0]
    errors = np.abs(values - np.sin(x[:, 0]))
    assert found.metrics[0].name == "mean-error"
    assert found.metrics[0].value == pytest.approx(errors.mean(), abs=1e-7)
    assert found.metrics[0].value < 0.05
    assert found.confusion is None


def copying() -> bytes:
    """A network that gives its input again, but for what RELU takes away."""
    net = NetworkBuilder("copying")
    x = net.tensor("x", (1, 8), np.int8, 0.5, -3)
    y = net.tensor("y", (1, 8), np.int8, 0.5, -3)
    net.operator("RELU", [x], [y])
    return net.finish([x], [y])


def test_an_anomaly_is_how_far_the_output_is_from_the_input() -> None:
    """By hand: what is negative is lost, so [-2, 0, ...] differs by 4 / 8."""
    artifact = mizzen.compile(copying(), "ethos-u55-128", prove="off")
    x = np.zeros((4, 8), np.float32)
    x[:, 0] = (1.0, 3.0, -2.0, -1.0)
    seen: list[Any] = []

    def keep(scores: Any, labels: Any) -> float:
        seen.extend(scores.tolist())
        return 1.0

    evaluate(artifact, x, [0, 0, 1, 1], metrics=[keep])
    assert seen == [0.0, 0.0, 0.5, 0.125]
    assert evaluate(artifact, x, [0, 0, 1, 1]).metrics[0].value == 1.0
    assert evaluate(artifact, x, [1, 0, 1, 0]).metrics[0].value == 0.625


@pytest.mark.parametrize(
    ("data", "truth", "code", "said"),
    [
        ("images", None, "E241", "data must have labels, and none were found"),
        ("images", [0, 1], "E242", "data must have a label for each of its 100 samples, not 2"),
        ("images", [10] * 100, "E244", "one of the network's 10 classes, 0 to 9, not 10"),
        ("images", ["a"] * 100, "E244", "there must be 10 classes, as the network has outputs"),
        ("flat", [0] * 100, "E246", r"must have the shape \[N, 8, 8, 1\] of the input"),
        ("nan", [0] * 100, "E208", r"data\[7\]: input .* not float32 with NaN or infinity"),
        ("pairs", None, "E241", "must be a pair of x and its label, not int"),
        ("counts", None, "E242", "must yield a label for each sample, not 2 for 1, at sample 0"),
        ("nowhere.npz", None, "E240", "nowhere.npz must be a file or a folder, and is not there"),
    ],
)
def test_what_does_not_fit(
    digits: Artifact, images: Any, data: str, truth: Any, code: str, said: str
) -> None:
    nan = images.astype(np.float32)
    nan[7, 0, 0, 0] = np.nan
    forms: dict[str, Any] = {
        "images": images,
        "flat": images.reshape(100, 64),
        "nan": nan,
        "pairs": [1, 2],
        "counts": [(images[0], np.array([1, 2]))],
    }
    with pytest.raises(MizzenError, match=said) as found:
        evaluate(digits, forms.get(data, data), truth)
    assert found.value.diagnostic.code == code


@pytest.mark.parametrize(
    ("truth", "task", "code", "said"),
    [
        (np.where(np.arange(100) == 5, np.nan, 1.0), None, "E243", r"that of data\[5\] is not"),
        (np.array(3), None, "E243", "must have a row of labels, not one value: 3"),
        (np.zeros(100), "values", "E242", r"labels of values must suit the output, .* \[100, 10\]"),
        (np.zeros((100, 3)), None, "E242", r"and have the shape \[100, 3\]"),
        (np.zeros(100, int), "detection", "E242", "labels of detection must suit the output"),
        (np.full(100, 0.5), "classes", "E244", "every label of a class must be a whole number"),
        (np.zeros(100, int), "anomaly", "E242", "an anomaly is how far output probabilities is"),
    ],
)
def test_labels_that_do_not_suit_the_task(
    digits: Artifact, images: Any, truth: Any, task: str | None, code: str, said: str
) -> None:
    with pytest.raises(MizzenError, match=said) as found:
        evaluate(digits, images, truth, task=task)
    assert found.value.diagnostic.code == code


def test_a_data_loader(digits: Artifact, images: Any, labels: Any) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
    pairs = torch.utils.data.TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    loader = torch.utils.data.DataLoader(pairs, batch_size=30)
    assert same(evaluate(digits, loader), evaluate(digits, images, labels))
    assert same(evaluate(digits, pairs), evaluate(digits, images, labels))
