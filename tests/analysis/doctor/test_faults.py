"""Faults made in real firmware on an emulated board: named, mended as advised, and gone."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.doctor import Cause, Certainty, Firmware, doctor
from mizzen.artifact.artifact import Artifact
from mizzen.boards import find_board
from mizzen.emulate import EmulationResult, Fault, Options, emulate
from mizzen.export import Request, c_project, runner
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder

pytest.importorskip("unicorn", reason="Unicorn is not installed (pip install '.[emulate]')")

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"
BOARD = find_board("corstone300")
GCC = "arm-none-eabi-gcc"
CHIP = "ethos-u55-128"
Text = Callable[[str], str]


@pytest.fixture(scope="module")
def digits() -> Artifact:
    return mizzen.compile(DIGITS, CHIP, prove="off")


def run_here(artifact: Artifact, chip: str = CHIP, fault: Fault | None = None) -> EmulationResult:
    """Run an artifact in firmware that is built already, on a chip that may have another NPU."""
    zeros = [np.zeros(info.shape, info.dtype) for info in artifact.inputs]
    firmware = runner(artifact, BOARD, zeros)
    return emulate(firmware, "corstone300", chip, replace(Options(seconds=20.0), fault=fault))


def test_a_stream_for_another_size() -> None:
    wrong = mizzen.compile(DIGITS, "ethos-u55-64", prove="off")
    result = run_here(wrong)
    diagnosis = doctor(wrong, BOARD, Firmware(accelerator=CHIP), result.output)
    verdict = diagnosis.verdicts[0]
    assert (verdict.cause, verdict.certainty) == (Cause.OTHER_SIZE, Certainty.CONFIRMED)
    advised = re.search(r"--accelerator-config (\S+)", verdict.advice)
    assert advised is not None
    mended = mizzen.compile(DIGITS, advised[1], prove="off")
    result = run_here(mended)
    assert result.ok, result.failures
    assert not doctor(mended, BOARD, Firmware(accelerator=CHIP), result.output).failures


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault.BUS_ERROR, Cause.UNREACHED),
        (Fault.PARSE_ERROR, Cause.STREAM_UNREADABLE),
        (Fault.WRONG_CONFIGURATION, Cause.OTHER_SIZE),
        (Fault.SILENT, Cause.NO_INTERRUPT),
    ],
)
def test_a_fault_of_the_npu(fault: Fault, cause: Cause, digits: Artifact) -> None:
    result = run_here(digits, fault=fault)
    assert not result.ok
    status = result.invocations[0].status if result.invocations else None
    diagnosis = doctor(digits, BOARD, log=result.output, status=status)
    assert [verdict.cause for verdict in diagnosis.verdicts][:1] == [cause], result.output


def built(artifact: Artifact, folder: Path, file: str, change: Text) -> EmulationResult:
    """Build the exported project with a change in one file, and run it."""
    for tool in (GCC, "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    write_project(c_project(artifact, Request(BOARD)).files, folder)
    text = (folder / file).read_text()
    assert change(text) != text
    (folder / file).write_text(change(text))
    done = subprocess.run(
        ["make", "-s", "-C", str(folder), "CPU=cortex-m33"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    elf = folder / "build" / "firmware.elf"
    return emulate(elf, "corstone300", artifact.accelerator or CHIP, Options(seconds=20.0))


def halved(text: str) -> str:
    return re.sub(
        r"(#define MODEL_ARENA_BYTES )(\d+)u", lambda at: f"{at[1]}{int(at[2]) // 2}u", text
    )


def moved(text: str) -> str:
    """Give the runtime an arena that begins 8 bytes later."""
    return text.replace("arena, sizeof arena", "arena + 8, sizeof arena - 8")


def without_kernels(text: str) -> str:
    """Leave the end of the table alone."""
    return re.sub(r"    \{0x\w+, \w+\},\n", "", text)


def of_the_cpu(folder: Path) -> Artifact:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 4), "int8", 0.1, 0) for name in ("x", "y"))
    net.operator("ADD", [x, x], [y], ("AddOptions", {}))
    (folder / "add.tflite").write_bytes(net.finish([x], [y]))
    return mizzen.load(folder / "add.tflite")


def test_an_arena_that_is_too_small(digits: Artifact, tmp_path: Path) -> None:
    result = built(digits, tmp_path, "model.h", halved)
    diagnosis = doctor(digits, BOARD, Firmware(arena_bytes=768), result.output)
    assert diagnosis.verdicts[0].cause is Cause.ARENA_TOO_SMALL
    assert diagnosis.verdicts[0].certainty is Certainty.CONFIRMED


def test_an_arena_that_is_not_aligned(digits: Artifact, tmp_path: Path) -> None:
    result = built(digits, tmp_path, "network.c", moved)
    told = Firmware(arena_address=0x3100_0008)
    causes = [verdict.cause for verdict in doctor(digits, BOARD, told, result.output).verdicts]
    assert Cause.ARENA_UNALIGNED in causes


def test_a_kernel_that_is_missing(tmp_path: Path) -> None:
    artifact = of_the_cpu(tmp_path)
    result = built(artifact, tmp_path, "kernels.c", without_kernels)
    diagnosis = doctor(artifact, BOARD, log=result.output)
    assert [verdict.cause for verdict in diagnosis.verdicts] == [Cause.OPERATOR_MISSING]


def test_an_arena_in_memory_that_the_npu_does_not_reach(digits: Artifact, tmp_path: Path) -> None:
    def outside(text: str) -> str:
        return text.replace("BOARD_ARENA static", "__attribute__((aligned(16))) static")

    result = built(digits, tmp_path, "network.c", outside)
    (invocation,) = result.invocations
    diagnosis = doctor(digits, BOARD, log=result.output, status=invocation.status)
    (verdict,) = diagnosis.verdicts
    assert verdict.cause is Cause.UNREACHED
    assert diagnosis.status is not None
    assert diagnosis.status.wanted == "reading an input feature map"
    assert verdict.advice.startswith("it is about the arena or the fast memory: ")
    checked = doctor(digits, BOARD, Firmware(arena_address=0x3000_0000))
    assert [each.cause for each in checked.verdicts] == [Cause.UNREACHED]


def test_a_container_that_is_cut_off(digits: Artifact, tmp_path: Path) -> None:
    def cut(text: str) -> str:
        return re.sub(
            r"(#define MODEL_BYTES )(\d+)u", lambda at: f"{at[1]}{int(at[2]) // 2}u", text
        )

    result = built(digits, tmp_path, "model.h", cut)
    diagnosis = doctor(digits, BOARD, log=result.output)
    assert [verdict.cause for verdict in diagnosis.verdicts] == [Cause.FILE_FORMAT]
