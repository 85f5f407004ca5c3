"""References: the same data on TFLite Micro's kernels, in PyTorch, on another NPU."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.evaluation import evaluate
from mizzen.analysis.evaluation.reference import referred
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import TensorInfo
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.model import Quantization


@pytest.fixture(scope="session")
def digits(repository: Path) -> Artifact:
    path = repository / "examples" / "digits" / "digits.tflite"
    return mizzen.compile(path, "ethos-u55-128", prove="off")


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "examples" / "digits"


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_networks_own_kernels_agree_in_every_number(
    digits: Artifact, folder: Path, jobs: int
) -> None:
    found = evaluate(
        digits, folder / "images.npy", folder / "labels.npy",
        reference=folder / "digits.tflite", jobs=jobs,
    )  # fmt: skip
    assert found.reference is not None
    assert found.reference.metrics == found.metrics
    agreement = found.reference.agreement
    assert (agreement.same_class, agreement.equal, agreement.judged) == (1.0, 100, 100)
    assert (agreement.largest_difference, agreement.mean_difference) == (0.0, 0.0)
    assert found.metric("same-class") is not None


def test_labels_need_not_be_there(digits: Artifact, folder: Path) -> None:
    found = evaluate(digits, folder / "images.npy", reference=folder / "digits.tflite")
    assert found.metrics == ()
    assert found.reference is not None
    assert found.reference.agreement.equal == 100


def given(own: TensorInfo, info: TensorInfo, array: Any) -> Any:
    class Network:
        inputs = (info,)
        outputs = (info,)

    class Own:
        inputs = (own,)

    network: Any = Network()
    artifact: Any = Own()
    (found,) = referred(network, artifact, [array])
    return found


X = TensorInfo("x", (1, 2, 2, 3), np.dtype(np.int8), Quantization((0.5,), (3,), 0))


def test_a_float_network_is_given_real_numbers() -> None:
    real = TensorInfo("x", (1, 2, 2, 3), np.dtype(np.float32), None)
    codes = np.arange(12, dtype=np.int8).reshape(1, 1, 2, 2, 3)
    assert np.array_equal(given(X, real, codes), (codes.astype(np.float32) - 3) / 2)
    exact = np.full((1, 1, 2, 2, 3), 0.123, np.float32)
    assert np.array_equal(given(X, real, exact), exact), "not rounded to the artifact's integers"


def test_another_scale_is_quantised_anew() -> None:
    other = TensorInfo("x", (1, 2, 2, 3), np.dtype(np.int8), Quantization((0.25,), (0,), 0))
    codes = np.full((1, 1, 2, 2, 3), 5, np.int8)  # 1.0
    assert (given(X, other, codes) == 4).all()


def test_channels_go_where_the_reference_has_them() -> None:
    first = TensorInfo("x", (1, 3, 2, 2), np.dtype(np.float32), None)
    codes = np.arange(24, dtype=np.int8).reshape(2, 1, 2, 2, 3)
    found = given(X, first, codes)
    assert found.shape == (2, 1, 3, 2, 2)
    assert np.array_equal(found[:, 0], np.moveaxis((codes[:, 0].astype(np.float32) - 3) / 2, 3, 1))


def test_another_shape_is_refused() -> None:
    other = TensorInfo("x", (1, 12), np.dtype(np.float32), None)
    with pytest.raises(MizzenError, match=r"must have the shape \[1, 2, 2, 3\], .* not \[1, 12\]"):
        given(X, other, np.zeros((1, 1, 2, 2, 3), np.int8))


def test_a_pytorch_program_is_run_by_pytorch(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("torchao", reason="torchao is not installed")
    compile_module = import_module("mizzen.torch").compile
    torch.manual_seed(3)
    network = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    x = torch.randn(40, 16)
    torch.export.save(torch.export.export(network.eval(), (x[:1],)), str(tmp_path / "net.pt2"))
    artifact = compile_module(network, (x[:1],), calibration=[(row[None],) for row in x])
    with torch.no_grad():
        exact = np.concatenate([network(row[None]).numpy() for row in x])
    rows = list(zip(x, exact.argmax(axis=1), strict=True))
    found = evaluate(artifact, rows, reference=tmp_path / "net.pt2")
    assert found.reference is not None
    assert found.reference.metrics[0].value == 1.0, "PyTorch's own answers are the labels"
    ours: Any = artifact.run(x.numpy())
    agreement = found.reference.agreement
    difference = np.abs(ours.astype(np.float64) - exact.astype(np.float64)).max()
    assert agreement.largest_difference == difference
    assert found.metrics[0].value == agreement.same_class


def test_a_pytorch_program_keeps_no_state(digits: Artifact, tmp_path: Path, folder: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
    example = torch.zeros(1, 8, 8, 1)
    program = torch.export.export(torch.nn.Flatten(), (example,))
    torch.export.save(program, str(tmp_path / "net.pt2"))
    with pytest.raises(MizzenError, match="must keep state to be compared in a stream") as error:
        evaluate(digits, folder / "images.npy", reference=tmp_path / "net.pt2", streaming=True)
    assert error.value.diagnostic.code == "E254"
