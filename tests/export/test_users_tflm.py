"""Projects with the user's own checkouts of TensorFlow Lite Micro and of Arm's driver.

MIZZEN_TFLM names the folder of tflite-micro, whose own make brought its downloads once,
MIZZEN_ETHOSU_DRIVER that of ethos-u-core-driver. What is compiled of the former is the same for
all networks, so that these tests share a folder of objects for each processor.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import find_board
from mizzen.emulate import Core, EmulationResult, Options, emulate
from mizzen.export import Project, Request, checkouts_for, tflm_project
from mizzen.package.firmware import write_project

BOARD = find_board("corstone300")
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
MODELS = {
    "person_detect.tflite": ACCELERATORS,
    "kws_ref_model.tflite": ACCELERATORS,
    "dnn_s_quantized.tflite": ACCELERATORS,
    "rnnoise_INT8.tflite": ("ethos-u55-128",),
    "audio_preprocessor_int8.tflite": ("ethos-u55-128",),
}
"""One operator of the NPU; CPU operators around it; several inputs and outputs, with state; the
operators on sound."""
PAIRS = [(name, accelerator) for name, row in MODELS.items() for accelerator in row]
CPUS = {Core.M33: "cortex-m33", Core.M55: "cortex-m55"}
USED = re.compile(r"^tflm: (\d+) bytes of the arena's (\d+) are used$", re.MULTILINE)


@pytest.fixture(scope="module")
def checkouts() -> dict[str, str]:
    """Return the folders by option; skip where there are none, or nothing that builds."""
    found = {
        "tflm": os.environ.get("MIZZEN_TFLM", ""),
        "driver": os.environ.get("MIZZEN_ETHOSU_DRIVER", ""),
    }
    known = {
        "tflm": "tensorflow/lite/micro/tools/make/downloads/flatbuffers/include",
        "driver": "src/ethosu_driver.c",
    }
    for name, folder in found.items():
        if not Path(folder, known[name]).exists():
            pytest.skip(
                "MIZZEN_TFLM and MIZZEN_ETHOSU_DRIVER name no checkouts of tflite-micro, with its "
                "downloads, and of ethos-u-core-driver"
            )
    for tool in ("arm-none-eabi-g++", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return found


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for what is compiled."""
    return tmp_path_factory.mktemp("objects")


def project_of(artifact: Artifact, checkouts: dict[str, str]) -> Project:
    random = np.random.default_rng(3)
    inputs = [
        (random.standard_normal((2, *row.shape)) * 40).astype(row.dtype) for row in artifact.inputs
    ]
    request = Request(BOARD, inputs=inputs, checkouts=checkouts_for("tflm", checkouts))
    return tflm_project(artifact, request)


def run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def executed(artifact: Artifact, elf: Path, core: Core) -> EmulationResult:
    options = replace(Options(), core=core)
    return emulate(elf, BOARD, artifact.accelerator or "", options)


def check(artifact: Artifact, elf: Path, core: Core = Core.M33) -> None:
    """Run it: the outputs are the example's, and the interpreter uses its arena."""
    result = executed(artifact, elf, core)
    assert result.ok, (result.failures, result.output)
    ((used, size),) = USED.findall(result.output)
    assert int(used) <= int(size) <= int(used) * 1.02


def build(project: Project, folder: Path, objects: Path, cpu: str, npu: str) -> Path:
    """Build a project where objects of others are; those of the runtime do not differ."""
    write_project(project.files, folder)
    shared = objects / cpu / npu
    for other in (objects / cpu).glob("*/tflm"):
        if not shared.exists():
            shutil.copytree(other, shared / "tflm")
    run("make", "-s", "-j2", "-o", "model.mk", "-C", folder, f"CPU={cpu}", f"BUILD={shared}")
    return shared / "firmware.elf"


@pytest.mark.filterwarnings("ignore::mizzen.diagnostics.MizzenWarning")
@pytest.mark.parametrize(("name", "accelerator"), PAIRS)
def test_tensorflow_lite_micro_gives_what_run_gives(
    name: str,
    accelerator: str,
    model_file: Callable[[str], Path],
    checkouts: dict[str, str],
    objects: Path,
    tmp_path: Path,
) -> None:
    artifact = mizzen.compile(model_file(name), accelerator, prove="off")
    npu = accelerator.split("-")[1]
    elf = build(project_of(artifact, checkouts), tmp_path, objects, "cortex-m33", npu)
    check(artifact, elf)


def test_on_a_processor_with_vector_instructions(
    model_file: Callable[[str], Path], checkouts: dict[str, str], objects: Path, tmp_path: Path
) -> None:
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    artifact = mizzen.compile(model_file("dnn_s_quantized.tflite"), "ethos-u55-128", prove="off")
    elf = build(project_of(artifact, checkouts), tmp_path, objects, "cortex-m55", "u55")
    check(artifact, elf, Core.M55)


def test_cmake_builds_it_from_folders_with_spaces(
    model_file: Callable[[str], Path], checkouts: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    linked: dict[str, str] = {}
    for name, folder in checkouts.items():
        link = tmp_path / f"the {name}"
        link.symlink_to(Path(folder).resolve())
        linked[name] = str(link)
    artifact = mizzen.compile(model_file("kws_ref_model.tflite"), "ethos-u55-128", prove="off")
    project = project_of(artifact, checkouts)
    folder = tmp_path / "my project"
    write_project(project.files, folder)
    given = [f"-D{name.upper()}={path}" for name, path in linked.items()]
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"
    target = folder / "out"
    run("cmake", "-S", folder, "-B", target, toolchain, "-DCPU=cortex-m33", *given)
    run("cmake", "--build", target, "--parallel", "2")
    check(artifact, target / "firmware.elf")
