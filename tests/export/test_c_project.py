"""Projects of the C runtime: their files, and that a cross compiler makes firmware of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.verifying import doubts_of
from mizzen.boards import Board, Role, find_board
from mizzen.diagnostics import MizzenError
from mizzen.export import Request, c_project
from mizzen.package.firmware import sources as firmware
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.manifest import manifest_of

GCC = "arm-none-eabi-gcc"
BOARD = find_board("corstone300")
IMAGE = np.arange(-32, 32, dtype=np.int8).reshape(1, 8, 8, 1)
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


@pytest.fixture(scope="module")
def digits() -> Artifact:
    return mizzen.compile(DIGITS, accelerator="ethos-u55-128")


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def symbols(elf: Path) -> dict[str, int]:
    """Return the address of each symbol."""
    said = subprocess.run(
        ["arm-none-eabi-nm", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in said.splitlines()]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def make(folder: Path, *options: str) -> Path:
    done = subprocess.run(
        ["make", "-C", str(folder), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return folder / "build" / "firmware.elf"


def test_firmware_has_the_digest_of_its_model_and_the_manifest_is_beside(digits: Artifact) -> None:
    project = c_project(digits, Request(BOARD))
    digest = sha256(project.model).digest()
    macro = "#define MODEL_SHA256 {" + ", ".join(f"{byte:#04x}" for byte in digest) + "}\n"
    assert macro in project.files["model.h"].decode()
    line = project.files["manifest.json"].removesuffix(b"\n")
    manifest = manifest_of(json.loads(line))
    assert manifest.text() == line
    assert manifest.file_sha256 == digest.hex()
    assert manifest.bytes == len(project.model)
    assert digits.manifest is not None
    assert manifest.facts == digits.manifest.facts
    assert manifest.npu == digits.manifest.npu


def test_a_changed_artifact_gives_a_project_without_a_manifest(digits: Artifact) -> None:
    changed = Artifact(digits.data, digits.name, digits.contents, doubts=doubts_of(
        digits.data.replace(b'"tool"', b'"tall"'), digits.name))  # fmt: skip
    assert [doubt.code for doubt in changed.doubts] == ["W333"]
    assert "manifest.json" not in c_project(changed, Request(BOARD)).files


@pytest.mark.parametrize("cpu", ["cortex-m33", "cortex-m55"])
def test_a_project_builds(digits: Artifact, tmp_path: Path, cpu: str) -> None:
    need(GCC)
    project = c_project(digits, Request(BOARD, inputs=[IMAGE]))
    write_project(project.files, tmp_path)
    elf = make(tmp_path, f"CPU={cpu}")
    found = symbols(elf)
    for name, role in (("model_container", Role.MODEL), ("arena", Role.ARENA)):
        memory = BOARD.memory(role)
        assert memory.base <= found[name] < memory.base + memory.size_bytes
        assert found[name] % 16 == 0
    assert "mz_kernel_quantize" not in found


def test_a_project_builds_without_a_c_library(digits: Artifact, tmp_path: Path) -> None:
    need(GCC)
    write_project(c_project(digits, Request(BOARD)).files, tmp_path)
    own = subprocess.run(
        [GCC, "-print-file-name=include"], capture_output=True, text=True, check=True
    ).stdout.strip()
    makefile = tmp_path / "Makefile"
    text = makefile.read_text()
    makefile.write_text(text.replace("-ffreestanding", f"-ffreestanding -nostdinc -isystem {own}"))
    assert make(tmp_path).is_file()


def test_cmake_builds_it_too(digits: Artifact, tmp_path: Path) -> None:
    need(GCC)
    need("cmake")
    write_project(c_project(digits, Request(BOARD)).files, tmp_path)
    build = tmp_path / "out"
    for command in (
        ["cmake", "-S", str(tmp_path), "-B", str(build), "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"],
        ["cmake", "--build", str(build)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert symbols(build / "firmware.elf")["model_container"]


def test_only_used_kernels_are_copied() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4), np.float32)
    q = net.tensor("q", (1, 4), np.int8, 0.5, 3)
    net.operator("QUANTIZE", [x], [q], ("QuantizeOptions", {}))
    artifact = mizzen.compile(net.finish([x], [q]), accelerator="ethos-u55-128")
    project = c_project(artifact, Request(BOARD))
    assert project.kernels == ["quantize"]
    kernels = [name for name in project.files if "/kernels/" in name and name.endswith(".c")]
    assert kernels == ["runtime/kernels/elements.c", "runtime/kernels/quantize.c"]


def test_the_example_has_what_the_simulated_npu_gives(digits: Artifact) -> None:
    images = np.stack([IMAGE[0], -IMAGE[0]])
    project = c_project(digits, Request(BOARD, inputs=[images]))
    text = project.files["example.c"].decode()
    numbers = [int(word) for word in re.findall(r"\b(\d+),", text.rpartition("{")[2])]
    expected = digits.run(images)
    assert isinstance(expected, np.ndarray)
    assert bytes(numbers) == expected.tobytes()
    assert project.inferences == 2
    assert b"#define EXAMPLE_INFERENCES 2\n" in project.files["model.h"]


def board_whose_model_has(room: int, digits: Artifact) -> Board:
    """Return the board with so many bytes beside the model."""
    place = BOARD.memory(Role.MODEL).name
    size = c_project(digits, Request(BOARD)).needed[Role.MODEL] + room
    memories = tuple(
        replace(memory, size_bytes=size) if memory.name == place else memory
        for memory in BOARD.memories
    )
    return replace(BOARD, memories=memories)


def test_an_example_must_have_room_beside_the_model(digits: Artifact) -> None:
    size = IMAGE.nbytes + 10
    request = Request(board_whose_model_has(size, digits), inputs=[IMAGE])
    assert c_project(digits, request).inferences == 1
    with pytest.raises(MizzenError) as caught:
        c_project(digits, replace(request, board=board_whose_model_has(size - 1, digits)))
    assert str(caught.value) == (
        "error[E468]: DDR of corstone300 must hold an example of 74 bytes beside the model, and "
        "has 73 left\n"
        "  help give fewer inferences with --input"
    )


def test_a_made_example_is_left_out_where_it_would_fill_the_board(digits: Artifact) -> None:
    room = 2 * (IMAGE.nbytes + 10)
    request = Request(board_whose_model_has(room, digits), made=[IMAGE])
    assert c_project(digits, request).inferences == 1
    less = replace(request, board=board_whose_model_has(room - 1, digits))
    assert c_project(digits, less).inferences == 0


def test_a_board_with_little_memory_is_refused(digits: Artifact) -> None:
    memories = tuple(
        replace(row, size_bytes=1024) if row.name == "SRAM" else row for row in BOARD.memories
    )
    with pytest.raises(MizzenError) as caught:
        c_project(digits, Request(replace(BOARD, memories=memories)))
    assert str(caught.value) == (
        "error[E468]: SRAM of corstone300 must hold 1536 bytes (arena 1536, fast 0), and has 1024\n"
        "  help use a network with smaller feature maps or fewer weights, or a board with more "
        "memory"
    )


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runtime").write_text("")
    with pytest.raises(MizzenError, match=r"E201.*must be a file that can be written"):
        write_project({"runtime/mizzen.c": b""}, tmp_path)


def test_sources_are_found_or_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (firmware.firmware_folder() / "board" / "startup.c").is_file()
    monkeypatch.setattr(firmware, "CHECKOUT", tmp_path)
    installed = tmp_path / "installed"
    monkeypatch.setattr(firmware, "INSTALLED", installed)
    with pytest.raises(MizzenError) as caught:
        firmware.firmware_folder()
    assert str(caught.value) == (
        f"error[E463]: the C sources of the runtime must be in {installed}, and are not\n"
        "  help install Mizzen from a wheel, or from a checkout"
    )
    (installed / "runtime").mkdir(parents=True)
    (installed / "runtime" / "mizzen.h").write_text("")
    assert firmware.firmware_folder() == installed


def test_no_kernel_is_an_error_that_says_where() -> None:
    net = NetworkBuilder()
    x, y, z = (net.tensor(name, (1, 4), np.int32) for name in "xyz")
    net.operator("FLOOR_MOD", [x, y], [z])
    artifact = mizzen.compile(net.finish([x, y], [z]), accelerator="ethos-u55-128")
    with pytest.raises(MizzenError) as caught:
        c_project(artifact, Request(BOARD))
    assert str(caught.value) == (
        "error[E464]: the C runtime must have a kernel for tflite::FLOOR_MOD, and has none\n"
        f'  at   {artifact.name}, operator 0 FLOOR_MOD -> "z"\n'
        "  help export for a runtime that has it, or replace the operator in the model; "
        "`mizzen run` executes it on the host"
    )


def test_a_wheel_brings_the_sources(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    root = Path(__file__).resolve().parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    script = "from mizzen.package.firmware import firmware_folder as f; print(f())"
    said = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={"PYTHONPATH": str(tmp_path / "installed")},
    ).stdout.strip()  # fmt: skip
    assert said == str(tmp_path / "installed" / "mizzen" / "firmware")
    assert (Path(said) / "example" / "main.c").is_file()
