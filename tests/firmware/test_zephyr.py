"""The Zephyr module: what it names is there; with a workspace, it is built and runs.

MIZZEN_ZEPHYR names a folder with zephyr, modules/hal/cmsis and modules/hal/ethos_u;
MIZZEN_ZEPHYR_PYTHON a Python that has the packages of Zephyr's build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import mizzen
from mizzen.analysis.doctor import Cause, doctor
from mizzen.boards import find_board
from mizzen.emulate import Core, EmulationResult, Options, emulate
from mizzen.export import Request, c_project
from mizzen.package.firmware import write_project

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "zephyr"
SAMPLE = MODULE / "samples" / "network"
DIGITS = ROOT / "examples" / "digits"
WORKSPACE = os.environ.get("MIZZEN_ZEPHYR", "")
BOARD = """inherits = "corstone300"
name = "an547"
title = "MPS3 AN547 as Zephyr maps it"

[[memory]]
name = "DDR"
base = 0x6000_0000
size_kib = 262144
"""


def test_the_module_names_folders_that_are_there() -> None:
    module = yaml.safe_load((MODULE / "module.yml").read_text())
    assert module["name"] == "mizzen"
    assert (ROOT / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (ROOT / module["build"]["kconfig"]).is_file()
    for folder in module["samples"]:
        assert list((ROOT / folder).glob("*/sample.yaml"))


def test_options_that_are_used_are_declared() -> None:
    declared = set(re.findall(r"config (MIZZEN\w*)", (MODULE / "Kconfig").read_text()))
    texts = [path.read_text() for path in MODULE.rglob("*") if path.is_file()]
    used = {name for text in texts for name in re.findall(r"\bCONFIG_(MIZZEN\w*)", text)}
    assert used <= declared
    assert declared - used == set()


def test_the_sample_has_every_function_of_the_board_that_an_export_calls() -> None:
    exported = [ROOT / "firmware" / name for name in ("example/main.c", "project/network.c")]
    called = {
        name for path in exported for name in re.findall(r"\b(board_\w+)\(", path.read_text())
    }
    defined = set(
        re.findall(r"^\S.*\b(board_\w+)\(", (SAMPLE / "src" / "board.c").read_text(), re.M)
    )
    assert called <= defined


def workspace() -> Path:
    if not WORKSPACE or not Path(WORKSPACE, "zephyr", "kernel").is_dir():
        pytest.skip("MIZZEN_ZEPHYR names no workspace with Zephyr")
    for tool in ("cmake", "ninja", "dtc", "arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return Path(WORKSPACE)


def built(folder: Path, project: Path, *options: str) -> Path:
    """Build the sample, and return the image."""
    top = workspace()
    compiler = shutil.which("arm-none-eabi-gcc") or ""
    python = os.environ.get("MIZZEN_ZEPHYR_PYTHON", "python3")
    modules = [top / "modules/hal/cmsis", top / "modules/hal/ethos_u", ROOT]
    environment = {
        **os.environ,
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
        "ZEPHYR_BASE": str(top / "zephyr"),
        "ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile",
        "CROSS_COMPILE": compiler.removesuffix("gcc"),
    }
    environment.pop("PYTHONPATH", None)
    configure = [
        "cmake", "-GNinja", "-B", folder, "-S", SAMPLE, "-DBOARD=mps3/an547",
        f"-DZEPHYR_MODULES={';'.join(map(str, modules))}", f"-DMIZZEN_PROJECT={project}",
        *options,
    ]  # fmt: skip
    for command in (configure, ["ninja", "-C", folder]):
        words = list(map(str, command))
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "zephyr" / "zephyr.elf"


def exported(accelerator: str, folder: Path) -> mizzen.Artifact:
    artifact = mizzen.compile(DIGITS / "digits.tflite", accelerator, prove="off")
    (info,) = artifact.inputs
    images = np.load(DIGITS / "images.npy")[:3].reshape(-1, *info.shape[1:])
    request = Request(find_board("corstone300"), inputs=[images])
    write_project(c_project(artifact, request).files, folder)
    return artifact


def run(image: Path, accelerator: str, folder: Path) -> EmulationResult:
    (folder / "an547.toml").write_text(BOARD)
    options = replace(Options(), core=Core.M55, seconds=10.0)
    return emulate(image, str(folder / "an547.toml"), accelerator, options)


def test_zephyrs_driver_runs_a_network_and_its_log_is_understood(tmp_path: Path) -> None:
    workspace()
    artifact = exported("ethos-u55-128", tmp_path / "net")
    image = built(tmp_path / "build", tmp_path / "net")
    result = run(image, "ethos-u55-128", tmp_path)
    assert "mizzen: ok" in result.output
    assert result.invocation_count == 3
    verdicts = doctor(artifact, log=run(image, "ethos-u55-256", tmp_path).output).verdicts
    assert [verdict.cause for verdict in verdicts] == [Cause.OTHER_SIZE]
    assert verdicts[0].advice == "compile the network with --accelerator-config ethos-u55-256"


def test_a_driver_that_is_built_for_another_product(tmp_path: Path) -> None:
    workspace()
    exported("ethos-u65-256", tmp_path / "net")
    wrong = built(tmp_path / "wrong", tmp_path / "net")
    verdict = doctor(log=run(wrong, "ethos-u65-256", tmp_path).output).verdicts[0]
    assert verdict.cause is Cause.DRIVER_PRODUCT
    assert "-DETHOSU_TARGET_NPU_CONFIG" in verdict.advice
    option = "-DETHOSU_TARGET_NPU_CONFIG=ethos-u65-256"
    right = built(tmp_path / "right", tmp_path / "net", "-DCONFIG_ARM_ETHOS_U65_256=y", option)
    assert "mizzen: ok" in run(right, "ethos-u65-256", tmp_path).output
