"""Lines of the NPU's counters: an instrumented artifact, exported, built, emulated."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.checking.artifacts import example_for
from mizzen.analysis.instrumenting import Instrumented, instrument
from mizzen.artifact.artifact import Artifact
from mizzen.boards import find_board
from mizzen.emulate import Core, EmulationResult, Options, emulate
from mizzen.export import Request, c_project
from mizzen.package.firmware import write_project
from mizzen.package.firmware.sources import firmware_folder
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.counters import measured_sets

GCC = "arm-none-eabi-gcc"
LINE = re.compile(
    r"^mizzen-counters: inference (\d+), part (\d+) of (\d+), cycles (\d+)"
    r"((?:, [A-Z0-9_]+ \d+)+)$"
)


def emulated(artifact: Artifact, board: str, folder: Path) -> EmulationResult:
    for tool in (GCC, "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    chosen = find_board(board)
    request = Request(chosen, made=example_for(artifact))
    write_project(c_project(artifact, request).files, folder)
    subprocess.run(["make", "-s", "-C", str(folder), "CPU=cortex-m33", "COUNTERS=1"], check=True)
    elf = folder / "build" / "firmware.elf"
    return emulate(elf, chosen, artifact.accelerator or "", Options(core=Core.M33))


def digits(repository: Path, accelerator: str) -> Artifact:
    network = repository / "examples" / "digits" / "digits.tflite"
    return mizzen.compile(network, accelerator, prove="off")


@pytest.mark.parametrize(
    ("accelerator", "board"),
    [("ethos-u65-256", "corstone300"), ("ethos-u85-256", "corstone320")],
)
def test_each_part_has_a_line(
    accelerator: str, board: str, repository: Path, tmp_path: Path
) -> None:
    made = instrument(digits(repository, accelerator))
    result = emulated(made.artifact, board, tmp_path)
    assert result.ok, "outputs are those of the simulated NPU"
    _require_lines(result.output, made)


def _require_lines(output: str, made: Instrumented) -> None:
    arch = Arch.U85 if "u85" in (made.artifact.accelerator or "") else Arch.U65
    sets = measured_sets(arch)
    found = [match for line in output.splitlines() if (match := LINE.match(line))]
    assert len(found) == len(sets) * len(made.parts)
    for place, match in enumerate(found):
        inference, part = divmod(place, len(made.parts))
        assert [int(match[at]) for at in (1, 2, 3)] == [inference + 1, part + 1, len(made.parts)]
        assert int(match[4]) == made.parts[part].cycles
        names = re.findall(r"[A-Z][A-Z0-9_]+", match[5])
        assert names == [event.name for event in sets[inference]]


def test_an_artifact_that_is_not_cut_has_one_line_an_inference(
    repository: Path, tmp_path: Path
) -> None:
    artifact = digits(repository, "ethos-u55-128")
    result = emulated(artifact, "corstone300", tmp_path)
    assert result.ok
    lines = [line for line in result.output.splitlines() if line.startswith("mizzen-counters")]
    assert [line.partition(", NPU")[0].partition(", AXI")[0] for line in lines] == [
        "mizzen-counters: inference 1, cycles 14456",
        "mizzen-counters: inference 2, cycles 14456",
    ]


def test_firmware_counts_the_events_of_the_table() -> None:
    text = (firmware_folder() / "example" / "npu_counters.h").read_text()
    blocks = text.split("#define COUNTERS_EVENTS(E)")[1:]
    for block, arch in zip(blocks, (Arch.U85, Arch.U55), strict=True):
        rows = re.findall(r"E\((\w+), (0x\w+)u\)", block.partition("#")[0])
        wanted = [event for events in measured_sets(arch) for event in events]
        assert [(name, int(number, 16)) for name, number in rows] == [
            (event.name, event.number) for event in wanted
        ]
