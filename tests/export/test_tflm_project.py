"""Projects of TensorFlow Lite Micro: their files, and what is refused. No checkout is needed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.boards import Role, find_board
from mizzen.diagnostics import MizzenError
from mizzen.export import Request, tflm_project
from mizzen.export.tflm.arena import variables_of
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder

pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")

BOARD = find_board("corstone300")
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
IMAGE = np.arange(-32, 32, dtype=np.int8).reshape(1, 8, 8, 1)
DOWNLOADS = "tensorflow/lite/micro/tools/make/downloads"
ONCE = (
    "(run once in the checkout of tflite-micro: make -f "
    "tensorflow/lite/micro/tools/make/Makefile third_party_downloads)"
)


@pytest.fixture(scope="module")
def digits() -> Artifact:
    return mizzen.compile(DIGITS, accelerator="ethos-u55-128")


def between() -> bytes:
    """Integers from real numbers, an addition that the NPU takes, and back."""
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 8), np.float32), net.tensor("y", (1, 8), np.float32)
    q, s = (net.tensor(name, (1, 8), np.int8, 0.5, 3) for name in "qs")
    net.operator("QUANTIZE", [x], [q], ("QuantizeOptions", {}))
    net.operator("ADD", [q, q], [s], ("AddOptions", {}))
    net.operator("DEQUANTIZE", [s], [y], ("DequantizeOptions", {}))
    return net.finish([x], [y])


def counting() -> bytes:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8), np.int8, 0.5)
    held = net.resource("total")
    net.operator("VAR_HANDLE", [], [held], ("VarHandleOptions", {"shared_name": "total"}))
    before, after = (net.tensor(name, (1, 8), np.int8, 0.5) for name in ("before", "after"))
    net.operator("READ_VARIABLE", [held], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [x, before], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [held, after], [], ("AssignVariableOptions", {}))
    net.initial("total", np.full((1, 8), 7, np.int8), 0.5)
    return net.finish([x], [after])


def test_the_model_and_its_operators_are_in_the_project(digits: Artifact) -> None:
    project = tflm_project(digits, Request(BOARD, inputs=[IMAGE]))
    numbers = re.findall(r"\b(\d+),", project.files["model.c"].decode())
    assert bytes(map(int, numbers)) == digits.data
    assert project.kernels == ["ethos-u"]
    assert project.missing == ["TFLM", "DRIVER"]
    operators = project.files["operators.cc"].decode()
    assert "MicroMutableOpResolver<1>" in operators
    assert re.findall(r"operators\.(\w+)\(", operators) == ["AddEthosU"]
    header = project.files["model.h"].decode()
    assert f"#define MODEL_ARENA_BYTES {project.needed[Role.ARENA]}\n" in header
    assert "#define MODEL_ON_NPU 1\n" in header
    assert "#define EXAMPLE_INFERENCES 1\n" in header
    expected = digits.run(IMAGE)
    assert isinstance(expected, np.ndarray)
    outputs = project.files["example.c"].decode().rpartition("{")[2]
    assert bytes(map(int, re.findall(r"\b(\d+),", outputs))) == expected.tobytes()


def test_kernels_of_the_processor_are_named_for_make_and_cmake() -> None:
    artifact = mizzen.compile(between(), accelerator="ethos-u55-128")
    project = tflm_project(artifact, Request(BOARD))
    folder = "tensorflow/lite/micro/kernels"
    names = [
        f"{folder}/{name}.cc"
        for name in (
            "quantize", "quantize_common", "ethos_u/ethosu", "dequantize", "dequantize_common",
        )
    ]  # fmt: skip
    settings = project.files["model.mk"].decode().replace(" \\\n   ", "")
    assert f"KERNELS := {' '.join(names)}\n" in settings
    assert "ON_NPU := yes\n" in settings
    assert f"set(MODEL_KERNELS [[{';'.join(names)}]])\n".encode() in project.files["model.cmake"]
    assert project.kernels == ["QUANTIZE", "ethos-u", "DEQUANTIZE"]


def test_what_needs_no_npu_needs_no_driver() -> None:
    net = NetworkBuilder()
    x, q = net.tensor("x", (1, 4), np.float32), net.tensor("q", (1, 4), np.int8, 0.5, 3)
    net.operator("QUANTIZE", [x], [q], ("QuantizeOptions", {}))
    artifact = mizzen.compile(net.finish([x], [q]), accelerator="ethos-u55-128")
    project = tflm_project(artifact, Request(BOARD))
    assert project.missing == ["TFLM"]
    assert b"ON_NPU := \n" in project.files["model.mk"]
    assert b"set(MODEL_ON_NPU [[OFF]])\n" in project.files["model.cmake"]


def test_variables_are_counted() -> None:
    kept = ["READ_VARIABLE", "ASSIGN_VARIABLE"]
    artifact = mizzen.compile(counting(), accelerator="ethos-u55-128", ignore_ops=kept)
    assert variables_of(read_network(artifact.data, "net")) == 1
    project = tflm_project(artifact, Request(BOARD))
    assert b"#define MODEL_VARIABLES 1\n" in project.files["model.h"]
    assert project.kernels == [
        "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ethos-u", "ASSIGN_VARIABLE",
    ]  # fmt: skip


def test_memory_for_staging_is_of_the_board() -> None:
    artifact = mizzen.compile(DIGITS, accelerator="ethos-u65-256", prove="off")
    project = tflm_project(artifact, Request(BOARD))
    assert project.needed[Role.FAST] > 0
    header = project.files["model.h"].decode()
    assert f"#define MODEL_FAST_BYTES {project.needed[Role.FAST]}\n" in header


def test_an_operator_that_there_is_not_is_refused(tmp_path: Path) -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 4), np.int8, 0.5) for name in "xy")
    net.operator("RELU_N1_TO_1", [x], [y])
    file = tmp_path / "net.tflite"
    file.write_bytes(net.finish([x], [y]))
    artifact = mizzen.load(file)
    with pytest.raises(MizzenError) as caught:
        tflm_project(artifact, Request(BOARD))
    assert str(caught.value) == (
        "error[E471]: TensorFlow Lite Micro must have a kernel for RELU_N1_TO_1, and has none\n"
        f'  at   {artifact.name}, operator 0 RELU_N1_TO_1 -> "y"\n'
        "  help replace the operator in the model, or export --to c"
    )


def test_what_is_no_tflite_network_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import mizzen.torch

    x = torch.linspace(-1, 1, 8).reshape(1, 8)
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    artifact = mizzen.torch.compile(module.eval(), (x,), "ethos-u55-128", calibration=[x])
    artifact.save(tmp_path / "net.pte")
    help_line = (
        "\n  help choose --to c or --to executorch; what was compiled of a .tflite goes as it is"
    )
    with pytest.raises(MizzenError) as caught:
        tflm_project(artifact, Request(BOARD))
    assert str(caught.value) == (
        f"error[E472]: TensorFlow Lite Micro executes TFLite networks, and {artifact.name} has "
        f"numbers around it that PyTorch converts{help_line}"
    )
    with pytest.raises(MizzenError) as caught:
        tflm_project(mizzen.load(tmp_path / "net.pte"), Request(BOARD))
    assert str(caught.value) == (
        "error[E472]: TensorFlow Lite Micro executes TFLite networks, and net.pte is a .pte "
        f"file{help_line}"
    )


def test_another_npu_is_refused() -> None:
    artifact = mizzen.compile(DIGITS, accelerator="ethos-n78-4tops-4ple")
    with pytest.raises(MizzenError) as caught:
        tflm_project(artifact, Request(BOARD))
    assert str(caught.value) == (
        "error[E415]: the NPU on corstone300 must be of ethos-u55, ethos-u65, ethos-u85, not "
        "'ethos-n78-4tops-4ple'\n"
        "  help compile the network with --accelerator-config ethos-u55-256"
    )


def make(folder: Path, *options: str) -> str:
    done = subprocess.run(
        ["make", "-C", str(folder), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    return done.stderr


def checkout(folder: Path, *files: str) -> Path:
    for name in ("tensorflow/lite/micro/micro_interpreter.h", *files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_make_says_what_is_missing(digits: Artifact, tmp_path: Path) -> None:
    write_project(tflm_project(digits, Request(BOARD)).files, tmp_path)
    assert (
        "TFLM= must name a checkout of tflite-micro: there is no "
        "tensorflow/lite/micro/micro_interpreter.h in it"
    ) in make(tmp_path)
    tflm = checkout(tmp_path / "the tflm")
    option = f"TFLM={tflm}"
    folder = f"{tflm}/{DOWNLOADS}"
    assert (
        f"FLATBUFFERS={folder}/flatbuffers/include must name the headers of flatbuffers {ONCE}: "
        "there is no flatbuffers/flatbuffers.h in it"
    ) in make(tmp_path, option)
    checkout(tflm, f"{DOWNLOADS}/flatbuffers/include/flatbuffers/flatbuffers.h")
    assert (
        f"GEMMLOWP={folder}/gemmlowp must name the headers of gemmlowp {ONCE}: there is no "
        "fixedpoint/fixedpoint.h in it"
    ) in make(tmp_path, option)
    checkout(tflm, f"{DOWNLOADS}/gemmlowp/fixedpoint/fixedpoint.h")
    assert "must have the kernels of the model, and has no tensorflow/lite/micro/kernels/" in make(
        tmp_path, option
    )
    checkout(tflm, "tensorflow/lite/micro/kernels/ethos_u/ethosu.cc")
    assert (
        "DRIVER= must name a checkout of ethos-u-core-driver: there is no src/ethosu_driver.c in it"
    ) in make(tmp_path, option)


def test_make_refuses_a_build_folder_with_spaces(digits: Artifact, tmp_path: Path) -> None:
    write_project(tflm_project(digits, Request(BOARD)).files, tmp_path)
    assert "BUILD=my build must be a path without spaces" in make(tmp_path, "BUILD=my build")
