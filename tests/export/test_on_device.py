"""Compiled, exported, built, executed on an emulated processor: the bytes that `run` gives."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import find_board
from mizzen.cli.main import main
from mizzen.emulate import Core, EmulationResult, Fault, Options, emulate
from mizzen.export import Request, c_project
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder

Array = npt.NDArray[Any]
GCC = "arm-none-eabi-gcc"
BOARD = find_board("corstone300")
CPUS = {Core.M33: "cortex-m33", Core.M55: "cortex-m55"}
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")


def firmware(artifact: Artifact, inputs: Sequence[Array], folder: Path, core: Core) -> Path:
    write_project(c_project(artifact, Request(BOARD, inputs=inputs)).files, folder)
    return built(folder, core)


def built(folder: Path, core: Core) -> Path:
    for tool in (GCC, "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    done = subprocess.run(
        ["make", "-s", "-C", str(folder), f"CPU={CPUS[core]}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "build" / "firmware.elf"


def executed(
    artifact: Artifact, inputs: Sequence[Array], folder: Path, core: Core = Core.M33
) -> EmulationResult:
    if core is Core.M55 and shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    elf = firmware(artifact, inputs, folder, core)
    return emulate(elf, BOARD, artifact.accelerator or "", replace(Options(), core=core))


def shown(text: str) -> list[list[int]]:
    rows = re.findall(r"^output \d+:((?: -?\d+)+)$", text, re.MULTILINE)
    return [[int(word) for word in row.split()] for row in rows]


def test_a_project_without_inputs_has_an_example_that_runs(tmp_path: Path) -> None:
    network = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
    artifact = tmp_path / "digits_vela.tflite"
    mizzen.compile(network, accelerator="ethos-u55-128").save(artifact)
    words = ("--to", "c", "--board", "corstone300", "--output-dir", str(tmp_path / "project"))
    assert main(["export", str(artifact), *words, "--quiet"]) == 0
    result = emulate(built(tmp_path / "project", Core.M33), BOARD, "ethos-u55-128")
    assert result.ok
    (output,) = shown(result.output)
    assert len(set(output)) > 2


@pytest.mark.parametrize("core", list(Core), ids=lambda core: core.value)
def test_person_detection(core: Core, model_file: Callable[[str], Path], tmp_path: Path) -> None:
    artifact = mizzen.compile(model_file("person_detect.tflite"), "ethos-u55-128", prove="off")
    images = np.random.default_rng(0).integers(-128, 128, (2, 96, 96, 1), np.int8)
    result = executed(artifact, [images], tmp_path, core)
    assert result.ok, result.failures
    expected = artifact.run(images)
    assert isinstance(expected, np.ndarray)
    assert shown(result.output) == expected.tolist()
    assert result.output.splitlines()[-1] == "mizzen: ok"


def counting() -> bytes:
    """A variable that adds up what comes in, and what the NPU makes of it."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8), np.int8, 0.5)
    held = net.resource("total")
    net.operator("VAR_HANDLE", [], [held], ("VarHandleOptions", {"shared_name": "total"}))
    before = net.tensor("before", (1, 8), np.int8, 0.5)
    net.operator("READ_VARIABLE", [held], [before], ("ReadVariableOptions", {}))
    after = net.tensor("after", (1, 8), np.int8, 0.5)
    net.operator("ADD", [x, before], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [held, after], [], ("AssignVariableOptions", {}))
    net.initial("total", np.full((1, 8), 7, np.int8), 0.5)
    return net.finish([x], [after])


def test_state_is_kept_over_a_hundred_inferences(tmp_path: Path) -> None:
    artifact = mizzen.compile(counting(), accelerator="ethos-u55-128")
    inputs = np.random.default_rng(1).integers(-9, 10, (100, 8), np.int8)
    result = executed(artifact, [inputs], tmp_path)
    assert result.ok, result.failures
    expected = np.clip(7 + np.cumsum(inputs, axis=0, dtype=np.int64), -128, 127)
    found = np.array(shown(result.output))
    session = artifact.session()
    assert found.tolist() == [session.run(row[None])[0].tolist() for row in inputs]  # pyright: ignore[reportIndexIssue]
    assert found[:2].tolist() == expected[:2].tolist()
    assert result.invocation_count == 100


def test_a_wrong_output_is_said(tmp_path: Path) -> None:
    artifact = mizzen.compile(counting(), accelerator="ethos-u55-128")
    elf = firmware(artifact, [np.ones((1, 8), np.int8)], tmp_path, Core.M33)
    source = tmp_path / "example.c"
    source.write_text(source.read_text().replace("8,8,8", "8,9,8"))
    subprocess.run(["make", "-s", "-C", str(tmp_path), "CPU=cortex-m33"], check=True)
    result = emulate(elf, BOARD, "ethos-u55-128")
    assert result.output.splitlines()[-1] == "mizzen: other outputs than expected"
    assert result.exit_status == 1


FAULTS = {
    Fault.PARSE_ERROR: "mizzen: step 0: a fault of the NPU",
    Fault.BUS_ERROR: "mizzen: step 0: a fault of the NPU",
    Fault.WRONG_CONFIGURATION: "mizzen: step 0: a container for another NPU",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_npu_are_said(fault: Fault, tmp_path: Path) -> None:
    artifact = mizzen.compile(counting(), accelerator="ethos-u55-128")
    elf = firmware(artifact, [np.ones((1, 8), np.int8)], tmp_path, Core.M33)
    result = emulate(elf, BOARD, "ethos-u55-128", replace(Options(), fault=fault))
    assert result.output.splitlines()[-1] == FAULTS[fault]
    assert result.exit_status == 1


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_every_model(accelerator: str, models: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    for file in sorted(models.glob("*.tflite")):
        artifact = mizzen.compile(file, accelerator, prove="off")
        inputs = [
            (random.standard_normal((2, *row.shape)) * 40).astype(row.dtype)
            for row in artifact.inputs
        ]
        result = executed(artifact, inputs, tmp_path / file.stem)
        assert result.ok, (file.name, result.failures)
