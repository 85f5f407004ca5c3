"""Families of NPUs and front-ends of other packages: found by entry points, used by every verb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.package.tflite.builder import NetworkBuilder

SKELETONS = Path(__file__).with_name("skeletons")
LONGEST_SKELETON = 60
"""Lines of a family: what is in its file is all that a family needs."""


def relu(shape: tuple[int, ...]) -> bytes:
    builder = NetworkBuilder()
    source, result = (builder.tensor(side, shape, np.int8, (0.5,), (0,)) for side in ("x", "y"))
    builder.operator("RELU", [source], [result])
    return builder.finish([source], [result])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder with both skeletons as installed packages."""
    information = tmp_path / "toys-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[mizzen.targets]\ntoy = toy_npu:TOY\n[mizzen.frontends]\nrelu = toy_frontend:FRONT_END\n"
    )
    for path in SKELETONS.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    return tmp_path


def run(installed: Path, *words: str) -> str:
    """Run the command line where the skeletons are installed."""
    path = os.pathsep.join([str(installed), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", "mizzen", *words], cwd=installed, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_family_is_short() -> None:
    lines = (SKELETONS / "toy_npu.py").read_text().count("\n")
    assert lines <= LONGEST_SKELETON


def test_a_family_of_another_package_is_listed(installed: Path) -> None:
    assert "toy-1" in run(installed, "targets")
    document = json.loads(run(installed, "targets", "--json"))
    assert {"name": "toy-1"} in document["accelerators"]


def test_a_family_of_another_package_compiles_and_runs(installed: Path) -> None:
    (installed / "net.tflite").write_bytes(relu((1, 8)))
    words = ("compile", "net.tflite", "--accelerator-config", "toy-1", "--json")
    document = json.loads(run(installed, *words))
    assert document["artifact"] == "output/net_toy.tflite"
    assert [row["region"] for row in document["operators"]] == ["NPU"]
    numbers = np.arange(-4, 4, dtype=np.int8).reshape(1, 8)
    np.save(installed / "x.npy", numbers)
    run(installed, "run", "output/net_toy.tflite", "--input", "x.npy")
    found = np.load(installed / "output" / "y.npy")
    assert found.tolist() == np.maximum(numbers, 0).tolist()


def test_what_a_family_does_not_have_stays_on_the_cpu_with_a_reason(installed: Path) -> None:
    builder = NetworkBuilder()
    source, result = (
        builder.tensor(name, (1, 4), np.int8, (scale,), (zero,))
        for name, scale, zero in (("x", 0.1, 0), ("y", 1 / 256, -128))
    )
    builder.operator("SOFTMAX", [source], [result], ("SoftmaxOptions", {"beta": 1.0}))
    (installed / "net.tflite").write_bytes(builder.finish([source], [result]))
    words = ("compile", "net.tflite", "--accelerator-config", "toy-1", "--json")
    (operator,) = json.loads(run(installed, *words))["operators"]
    assert operator["region"] == "CPU"
    assert operator["reasons"]


def test_a_front_end_of_another_package_compiles_and_checks(installed: Path) -> None:
    (installed / "net.relu").write_text("relu 8")
    for accelerator, name in (("toy-1", "net.relu_toy"), ("ethos-u55-128", "net.relu_vela")):
        words = ("compile", "net.relu", "--accelerator-config", accelerator, "--json")
        assert json.loads(run(installed, *words))["artifact"] == f"output/{name}.tflite"
    document = json.loads(run(installed, "check", "net.relu", "--json"))
    assert [row["kind"] for row in document["operators"]] == ["RELU"]


def test_without_other_packages_there_are_mizzens_own(installed: Path) -> None:
    with pytest.raises(mizzen.MizzenError, match="E210"):
        mizzen.compile(relu((1, 8)), "toy-1")
