"""Projects for real boards: sources for the vendor's software, or a firmware of their own."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import Role, find_board, missing_keys
from mizzen.diagnostics import MizzenError
from mizzen.export import RUNTIMES, Request, c_container, with_page
from mizzen.export.project import Project
from mizzen.package.firmware import write_project

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
GCC = "arm-none-eabi-gcc"
REAL = (
    "alif_ensemble_e7", "alif_ensemble_e7_he", "alif_ensemble_e8", "grove_vision_ai_v2",
    "infineon_pse84", "nuvoton_m55m1", "nxp_imx93", "openmv_ae3", "renesas_ra8p1",
)  # fmt: skip


@cache
def artifact_for(name: str) -> Artifact:
    return mizzen.compile(DIGITS, board=name, prove="off")


def project_for(name: str, runtime: str, *, bare_metal: bool = False) -> Project:
    artifact, board = artifact_for(name), find_board(name)
    request = Request(board, bare_metal=bare_metal)
    project = RUNTIMES[runtime].project(artifact, request)
    return with_page(project, board, artifact.accelerator)


@pytest.mark.parametrize("runtime", ["c", "tflm", "tflite"])
@pytest.mark.parametrize("name", REAL)
def test_every_board_has_a_page(name: str, runtime: str) -> None:
    project, board = project_for(name, runtime), find_board(name)
    text = project.files["ONTO_YOUR_BOARD.md"].decode()
    headings = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    assert headings == [
        f"# Onto your board: {board.title}", "## Files", "## Model and arena", "## Driver",
        "## Operators", "## Measure", "## Check",
    ]  # fmt: skip
    mode = board.mode(project.memory_mode)
    arena = board.memory(Role.ARENA, mode).name
    assert f"| arena | {project.needed[Role.ARENA]:,} bytes in {arena} |" in text
    assert f"| NPU | {board.accelerators[0]} |" in text


@pytest.mark.parametrize("name", REAL)
def test_sources_for_the_vendors_software_lie_in_one_flat_folder(name: str) -> None:
    for runtime, source in (("c", "mizzen.c"), ("tflm", "operators.cc")):
        files = project_for(name, runtime).files
        inside = {path.removeprefix("onto_board/") for path in files if "onto_board/" in path}
        assert {source, "sdk.c", "mizzen_example.c", "mizzen_board_config.h"} <= inside
        assert not any("/" in path for path in inside)
        assert not inside & {"startup.c", "board.h", "board.ld", "Makefile", "main.c"}
        assert set(files) - {f"onto_board/{path}" for path in inside} <= {
            "ONTO_YOUR_BOARD.md", "model.bin",
        }  # fmt: skip


def test_a_model_that_flash_has_by_itself_is_a_file() -> None:
    """Grove's firmware reads it where xmodem wrote it."""
    for runtime in ("c", "tflm"):
        files = project_for("grove_vision_ai_v2", runtime).files
        assert "onto_board/model.c" not in files
        assert b"BOARD_MODEL_ADDRESS 0x3ab7b000u" in files["onto_board/mizzen_board_config.h"]
    assert project_for("grove_vision_ai_v2", "c").files["model.bin"] == (
        c_container(artifact_for("grove_vision_ai_v2")).data
    )
    assert files["model.bin"] == artifact_for("grove_vision_ai_v2").data


def test_the_names_of_the_vendors_software_are_in_the_header() -> None:
    text = project_for("nuvoton_m55m1", "c").files["onto_board/mizzen_board_config.h"].decode()
    assert '#define BOARD_SDK_HEADER "NuMicro.h"\n' in text
    assert "#define BOARD_SDK_NPU_HANDLER NPU_IRQHandler\n" in text
    assert '#define BOARD_SECTION_ARENA ".bss.NoInit.activation_buf_sram"\n' in text
    assert "BOARD_SDK_SET_VECTOR" not in text


def test_comments_name_sources_that_are_there() -> None:
    for name in ("grove_vision_ai_v2", "alif_ensemble_e7", "renesas_ra8p1"):
        for runtime in ("c", "tflm"):
            files = project_for(name, runtime).files
            there = {Path(path).name for path in files}
            for path, data in files.items():
                comments = re.findall(r"/\*.*?\*/|//[^\n]*", data.decode(errors="ignore"), re.S)
                named = re.findall(r"[\w/]+\.(?:cc|c|h)\b", "".join(comments))
                assert {Path(each).name for each in named} <= there, path


def block(name: str, language: str) -> str:
    """Return the first block of a language of the page of a board's project."""
    text = project_for(name, "c").files["ONTO_YOUR_BOARD.md"].decode()
    return text.split(f"```{language}\n")[1].split("```")[0]


@pytest.mark.parametrize("name", ["alif_ensemble_e7", "alif_ensemble_e7_he", "alif_ensemble_e8"])
def test_the_entry_that_alifs_kit_calls_compiles(name: str, tmp_path: Path) -> None:
    """Its `Main.cc` has `extern void MainLoop();`."""
    compiler = GCC.replace("gcc", "g++")
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    write_project(project_for(name, "c").files, tmp_path)
    (tmp_path / "onto_board" / "MainLoop.cc").write_text(block(name, "cpp"))
    command = [compiler, "-mcpu=cortex-m55", "-Wall", "-Wextra", "-Werror", "-c", "MainLoop.cc"]
    subprocess.run(command, cwd=tmp_path / "onto_board", check=True)
    command = ["arm-none-eabi-nm", "-C", "MainLoop.o"]
    symbols = subprocess.run(
        command, cwd=tmp_path / "onto_board", check=True, capture_output=True, text=True
    ).stdout
    assert " T MainLoop()\n" in symbols
    assert " U mizzen_example\n" in symbols


def test_groves_page_has_every_step() -> None:
    text = project_for("grove_vision_ai_v2", "tflm").files["ONTO_YOUR_BOARD.md"].decode()
    steps = ("Create the file `mizzen_app.mk`", "enable_XIP", "return app_main();", "make APP_TYPE",
             "we2_local_image_gen project_case1_blp_wlcsp.json", "xmodem_send.py")  # fmt: skip
    places = [text.index(step) for step in steps]
    assert places == sorted(places)


CPUS = {"cortex-m85": "cortex-m55"}
"""What GCC before 13 takes in the place of processors that it does not know."""

OF_VENDOR = frozenset({"sdk.c", "sdk_cache.c", "mizzen_driver.c", "npu_driver.c"})
"""Sources that include headers of the vendor's software."""


@pytest.mark.parametrize("name", ["grove_vision_ai_v2", "nxp_imx93", "renesas_ra8p1"])
def test_the_other_sources_compile_without_the_vendors_software(name: str, tmp_path: Path) -> None:
    if shutil.which(GCC) is None:
        pytest.skip(f"{GCC} is not installed")
    write_project(project_for(name, "c").files, tmp_path)
    sources = [
        path.name
        for path in sorted((tmp_path / "onto_board").glob("*.c"))
        if path.name not in OF_VENDOR
    ]
    core = CPUS.get(find_board(name).cpu.core, find_board(name).cpu.core)
    flags = [f"-mcpu={core}", "-mthumb", "-mfloat-abi=hard", "-std=c99", "-Wall", "-Wextra"]
    done = subprocess.run(
        [GCC, *flags, "-Werror", "-fsyntax-only", *sources],
        cwd=tmp_path / "onto_board",
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


KEYS = {
    "infineon_pse84": "cpu.interrupts = 200\nnpu.base = 0x5000_0000\n",
    "renesas_ra8p1": "npu.irq = 5\n",
}
"""What a user gives whose project says it; the numbers are the test's own."""


@pytest.mark.parametrize("name", sorted(set(REAL) - {"alif_ensemble_e7_he", "openmv_ae3"}))
def test_a_firmware_of_its_own_is_linked_for_the_boards_memories(name: str, tmp_path: Path) -> None:
    if shutil.which(GCC) is None or shutil.which("make") is None:
        pytest.skip(f"{GCC} or make is not installed")
    board = find_board(name)
    if name in KEYS:
        assert list(missing_keys(board, board.modes[0]))
        path = tmp_path / "mine.toml"
        path.write_text(f'inherits = "{name}"\nname = "mine"\n{KEYS[name]}')
        board = find_board(str(path))
    artifact = artifact_for(name)
    project = RUNTIMES["c"].project(artifact, Request(board, bare_metal=True))
    write_project(project.files, tmp_path / "made")
    cpu = CPUS.get(board.cpu.core, board.cpu.core)
    command = ["make", "-s", "-j2", "-C", str(tmp_path / "made"), f"CPU={cpu}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = subprocess.run(
        ["arm-none-eabi-nm", str(tmp_path / "made" / "build" / "firmware.elf")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in table.splitlines()}
    mode = board.mode(project.memory_mode)
    for symbol, role in (("arena", Role.ARENA), ("model_container", Role.MODEL)):
        memory = board.memory(role, mode)
        assert memory.base <= places[symbol] < memory.base + memory.size_bytes, symbol


def test_a_firmware_of_its_own_asks_for_what_is_not_public() -> None:
    with pytest.raises(MizzenError) as caught:
        project_for("infineon_pse84", "c", bare_metal=True)
    assert caught.value.diagnostic.code == "E441"


def test_the_file_alone_is_what_was_compiled() -> None:
    artifact = artifact_for("openmv_ae3")
    project = RUNTIMES["tflite"].project(artifact, Request(find_board("openmv_ae3")))
    assert project.files == {"digits_vela.tflite": artifact.data}
    assert RUNTIMES["tflite"].commands("made", ()) == ()
