"""Projects of ExecuTorch: their files, and what is refused. No checkout is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import Role, find_board
from mizzen.diagnostics import MizzenError
from mizzen.export import RUNTIMES, Request, executorch_project
from mizzen.package.executorch import reading
from mizzen.package.executorch.project import operator_lists
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

BOARD = find_board("corstone300")


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """A network with a state and operators of PyTorch's, saved as an ExecuTorch program."""
    import mizzen.torch

    class Listen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = torch.nn.Linear(16, 4)
            self.register_buffer("mean", torch.zeros(1, 16))

        def forward(self, x: Any) -> Any:
            mean = 0.75 * self.mean + 0.25 * torch.relu(x)  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType] a buffer
            self.mean.copy_(mean)  # pyright: ignore[reportCallIssue, reportUnknownMemberType, reportUnknownArgumentType] a buffer
            return torch.topk(self.scores(mean), 2)

    torch.manual_seed(0)
    inputs = [torch.randn(1, 16) for _ in range(4)]
    artifact = mizzen.torch.compile(
        Listen().eval(), (inputs[0],), "ethos-u55-128", calibration=inputs
    )
    path = tmp_path_factory.mktemp("listen") / "listen.pte"
    artifact.save(path)
    return mizzen.load(path)


def test_the_program_and_its_operators_are_in_the_project(listening: Artifact) -> None:
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)
    project = executorch_project(listening, Request(BOARD, inputs=[x]))
    numbers = re.findall(r"\b(\d+),", project.files["model.c"].decode())
    assert bytes(map(int, numbers)) == listening.data
    program = reading.read(listening.data, "net")
    named = {row.kernel for row in program.instructions if isinstance(row, reading.CallKernel)}
    assert set(project.kernels) == named
    assert "aten::topk.values" in named
    settings = dict(
        re.findall(r"set\(MODEL_(\w+) \[\[(.*?)\]\]\)", project.files["model.cmake"].decode())
    )
    lists = operator_lists(project.kernels)
    assert {name: settings[name].split(";") for name, row in lists.items() if row} == {
        name: list(row) for name, row in lists.items() if row
    }
    assert settings["ON_NPU"] == "ON"
    assert project.missing == ["EXECUTORCH", "DRIVER"]
    readme = project.files["README.txt"].decode()
    assert all(f"  {name}\n" in readme for name in named)


def test_memory_is_what_the_program_plans_and_delegates_take(listening: Artifact) -> None:
    project = executorch_project(listening, Request(BOARD))
    macros = dict(re.findall(r"#define MODEL_(\w+) (\d+)\n", project.files["model.h"].decode()))
    program = reading.read(listening.data, "net")
    assert int(macros["PLANNED_BYTES"]) == program.memory_bytes
    assert macros["MEMORIES"] == "1"
    assert int(macros["TEMPORARY_BYTES"]) + program.memory_bytes == project.needed[Role.ARENA]
    assert int(macros["METHOD_BYTES"]) > 4096


def test_schemas_that_name_operators() -> None:
    assert operator_lists(
        ["quantized_decomposed::quantize_per_tensor.out", "executorch_prim::et_view.default",
         "aten::add.out"]
    ) == {
        "OPERATORS_FUNCTIONS_YAML": ["aten::add.out"],
        "OPERATORS_CUSTOM_OPS_YAML": ["quantized_decomposed::quantize_per_tensor.out"],
        "OPERATORS_PRIMITIVE": ["executorch_prim::et_view.default"],
    }  # fmt: skip


def test_the_program_is_an_array_that_compiles(listening: Artifact, tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    write_project(executorch_project(listening, Request(BOARD)).files, tmp_path)
    for name in ("model", "example", "main"):
        words = f"arm-none-eabi-gcc -mcpu=cortex-m33 -std=c99 -Wall -Werror -Iboard -c {name}.c"
        subprocess.run(words.split(), cwd=tmp_path, check=True)
    command = ["arm-none-eabi-nm", "-S", "model.o"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert f"{len(listening.data):08x} R model_program" in said


def test_cmake_says_what_is_missing(listening: Artifact, tmp_path: Path) -> None:
    for tool in ("cmake", "arm-none-eabi-gcc", "arm-none-eabi-g++"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    write_project(executorch_project(listening, Request(BOARD)).files, tmp_path)
    fake = tmp_path / "a checkout"
    (fake / "runtime" / "executor").mkdir(parents=True)
    for option, text in (
        (f"-DEXECUTORCH={tmp_path}", "has no runtime/executor/program.h"),
        (f"-DEXECUTORCH={fake}", "must have its submodule third-party/flatbuffers"),
    ):
        toolchain = "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"
        (fake / "runtime" / "executor" / "program.h").write_text("")
        done = subprocess.run(
            ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), toolchain, option],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert text in " ".join(done.stderr.split())


def test_operators_of_tflite_are_no_program_of_executorch() -> None:
    net = NetworkBuilder()
    x, y, z = (net.tensor(name, (1, 4), np.int32) for name in "xyz")
    net.operator("FLOOR_MOD", [x, y], [z])
    artifact = mizzen.compile(net.finish([x, y], [z]), accelerator="ethos-u55-128")
    with pytest.raises(MizzenError) as caught:
        executorch_project(artifact, Request(BOARD))
    assert caught.value.diagnostic.code == "E174"
    assert "start from the PyTorch program" in (caught.value.diagnostic.help or "")


def test_commands_that_build() -> None:
    commands = RUNTIMES["executorch"].commands("fw", ["EXECUTORCH"])
    assert list(commands) == [
        "cmake -S fw -B fw/build -DCMAKE_TOOLCHAIN_FILE=toolchain.cmake -DEXECUTORCH=DIR",
        "cmake --build fw/build",
    ]
    assert list(RUNTIMES["tflm"].commands("fw", ["TFLM"])) == ["make -C fw TFLM=DIR"]
