"""`mizzen emulate`: what it prints, its document, its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mizzen.cli.emulate import CORES, FAULTS
from mizzen.cli.main import main
from mizzen.emulate import Core, Fault

from .firmware import Build

TEXT = """\
Output
  | sum 5050, product in thousandths -499, ends 100
  | mizzen: ok

NPU (cycles are estimates)
  run  cycles  STATUS
    0     292  0xffff0022
    1     292  0xffff0022
    2     292  0xffff0022
    3     292  0xffff0022
    4     292  0xffff0022
    5     292  0xffff0022
    6     292  0xffff0022
    7     292  0xffff0022
    8     292  0xffff0022
    9     292  0xffff0022
  and 90 more

Run
  ended  the firmware ended itself, status 0
  NPU    100 runs
"""


def emulate(build: Build, *words: str) -> int:
    return main(["emulate", str(build.prebuilt), "--accelerator-config", "ethos-u55-128", *words])


def test_success_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate(Build("floats")) == 0
    shown = capsys.readouterr()
    assert shown.out == TEXT
    assert shown.err == (
        "  board        Arm Corstone-300 (corstone300)\n"
        "  accelerator  ethos-u55-128\n  processor    Cortex-M33\n"
    )


def test_failure_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate(Build("careful"), "--inject", "bus-error") == 1
    shown = capsys.readouterr()
    assert "  injected     bus-error\n" in shown.err
    assert shown.err.endswith(
        "error[E437]: the firmware must end with status 0, and ended with 5\n"
        "  help what it wrote last says why; --accelerator-config names the NPU that firmware was "
        "built for\n"
    )


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate(Build("ends", "DEADLOCK"), "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["holds"] is False
    assert [found["code"] for found in document["failures"]] == ["E435"]
    assert (document["reason"], document["exit_status"]) == ("deadlock", None)
    assert document["invocations"] == []


def test_the_trace_is_written(tmp_path: Path) -> None:
    path = tmp_path / "bus.json"
    assert emulate(Build("careful"), "--trace", str(path)) == 0
    rows = json.loads(path.read_text())
    assert rows[0] == {
        "access": "read", "register": "CONFIG", "offset": 0x28, "value": 0x1807, "count": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--timeout", "soon"), "seconds of 0..86400 are needed, not 'soon'"),
        (("--timeout", "nan"), "seconds of 0..86400 are needed, not 'nan'"),
        (("--board", "corstone320"), "the NPU on corstone320 must be of ethos-u85"),
        (("--trace", "/nowhere/bus.json"), "/nowhere/bus.json must be a file that can be written"),
    ],
)
def test_wrong_words_are_two(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert emulate(Build("careful"), *words) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "none.elf"]) == 2
    assert "error[E110]: none.elf must be a file that can be read: " in capsys.readouterr().err


def test_the_words_are_those_of_the_library() -> None:
    assert tuple(core.value for core in Core) == CORES
    assert tuple(fault.value for fault in Fault) == FAULTS


DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"

ARTIFACT_TEXT = """\
Output
  | output 0: -128 -128 -128 -128 -128 -128 127 -128 -128 -128
  | mizzen: ok
"""


def test_an_artifact_is_run_by_firmware_that_is_built_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--accelerator-config", "ethos-u55-128", "--output-dir", str(tmp_path), "--quiet"]
    assert main(["compile", str(DIGITS / "digits.tflite"), *options]) == 0
    image = tmp_path / "image.npy"
    np.save(image, np.load(DIGITS / "images.npy")[:1])
    capsys.readouterr()
    artifact = str(tmp_path / "digits_vela.tflite")
    assert main(["emulate", artifact, "--input", str(image)]) == 0
    assert capsys.readouterr().out.startswith(ARTIFACT_TEXT)
    assert main(["emulate", artifact, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accelerator"] == "ethos-u55-128"


def test_firmware_has_its_own_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate(Build("floats"), "--input", "x.npy") == 2
    assert capsys.readouterr().err == (
        "error[E200]: the command line is wrong: --input is of an artifact, and firmware has its "
        "own\n  help mizzen emulate --help\n"
    )
