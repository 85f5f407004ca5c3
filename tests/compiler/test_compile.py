"""Compiling: placements and reasons, origins, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report import Area, Device
from mizzen.targets.ethos_u.machine.commands import Arch, decode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .ethos_u.networks import MAP, error, regions, report_of

ModelFile = Callable[[str], Path]


def test_a_network_goes_to_the_npu(model_file: ModelFile) -> None:
    artifact = mizzen.compile(model_file("kws_ref_model.tflite"), "ethos-u55-128")
    report = report_of(artifact)
    assert artifact.accelerator == "ethos-u55-128"
    assert artifact.name == "kws_ref_model_vela.tflite"
    assert report.model == "kws_ref_model.tflite"
    assert report.compiler == "Mizzen"
    assert len(report.placements) == 13
    assert not report.on_cpu
    assert report.placements[2].kind == "CONV_2D"
    assert report.placements[2].macs == 512_000
    assert report.areas == (
        Area("constants", "OffChipFlash", 30_400),
        Area("arena", "Sram", 16_000),
    )
    assert {row.memory: row.used_bytes for row in report.memories} == {
        "OffChipFlash": 30_400,
        "Sram": 16_000,
    }
    assert report.time is not None
    assert report.cycles == report.time.npu_cycles > 50_000
    assert 0 < report.time.compute_cycles < report.cycles, "some are waited for memory"
    assert sum(row.cycles for row in report.placements) == report.cycles
    assert report.configuration["accelerator"] == "ethos-u55-128"
    assert not report.diagnostics


@pytest.mark.parametrize("mode", ["Sram_Only", "Shared_Sram", "Dedicated_Sram_384KB"])
@pytest.mark.parametrize("model", ["micro_speech_quantized", "person_detect"])
def test_areas_add_up_to_what_the_compiler_counts(
    model_file: ModelFile, model: str, mode: str
) -> None:
    path = model_file(f"{model}.tflite")
    report = report_of(mizzen.compile(path, "ethos-u65-256", memory_mode=mode))
    by_memory: dict[str, int] = {}
    for area in report.areas:
        by_memory[area.memory] = by_memory.get(area.memory, 0) + area.used_bytes
    assert {row.memory: row.used_bytes for row in report.memories} == by_memory


@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_accelerator(model_file: ModelFile, name: str) -> None:
    artifact = mizzen.compile(model_file("hello_world_int8.tflite").read_bytes(), name)
    assert artifact.accelerator == name
    assert regions(artifact) == [("FULLY_CONNECTED", "NPU")] * 3


@pytest.mark.parametrize("model", ["kws_ref_model", "audio_preprocessor_int8", "ad01_int8"])
@pytest.mark.parametrize("name", ["ethos-u55-128", "ethos-u65-512"])
def test_every_operation_of_a_stream_has_an_origin(
    model_file: ModelFile, model: str, name: str
) -> None:
    path = model_file(f"{model}.tflite")
    artifact = mizzen.compile(path, name)
    rows = {row.index: row for row in report_of(artifact).placements}
    arch = Arch[name.split("-")[1].upper()]
    for step in artifact.steps:
        if not isinstance(step, NpuStep):
            continue
        places = {
            command.offset_words * 4: command.command.name
            for command in decode(step.program.words, arch)
        }
        operations = {
            place
            for place, command in places.items()
            if command in {"OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE"}
        }
        others = step.program.origins.keys() - operations
        assert operations <= step.program.origins.keys()
        assert {places[place] for place in others} <= {"OP_DMA_START"}
        for origin in step.program.origins.values():
            assert origin.operator is not None
            row = rows[origin.operator]
            assert (origin.model, origin.kind, origin.name) == (path.name, row.kind, row.name)
            assert row.device is Device.NPU


def test_the_report_and_origins_survive_the_file(model_file: ModelFile, tmp_path: Path) -> None:
    artifact = mizzen.compile(model_file("micro_speech_quantized.tflite"), "ethos-u55-64")
    path = tmp_path / artifact.name
    artifact.save(path)
    again = mizzen.load(path)
    assert again.report == artifact.report
    assert isinstance(again.steps[0], NpuStep)
    assert isinstance(artifact.steps[0], NpuStep)
    assert again.steps[0].program.origins == artifact.steps[0].program.origins
    assert again.data == artifact.data


def test_a_compilation_takes_little_more_than_its_imports(model_file: ModelFile) -> None:
    """Less than a second where the compiler core alone loads in a fifth of one.

    A code generator of our own searches, and takes what that takes.
    """
    path = model_file("kws_ref_model.tflite")
    core, whole = (
        min(_cpu_seconds(program) for _ in range(3))
        for program in (
            "import ethosu.vela.vela",
            f"import mizzen; mizzen.compile({str(path)!r}, 'ethos-u55-128', "
            "target_options={'generator': 'vela'})",
        )
    )
    assert whole < 5.5 * core


def _cpu_seconds(program: str) -> float:
    """Return what a program takes of the processor, with the processes that it starts."""
    start = os.times()
    subprocess.run([sys.executable, "-c", program], check=True)
    end = os.times()
    spent = end.children_user + end.children_system
    return spent - start.children_user - start.children_system


def test_reasons_of_a_network_of_many_kinds(model_file: ModelFile) -> None:
    artifact = mizzen.compile(model_file("audio_preprocessor_int8.tflite"), "ethos-u55-128")
    rows = report_of(artifact).placements
    assert {row.index for row in rows if row.device is Device.NPU} >= {1, 6, 7, 15, 16, 18, 19, 20}
    (reason,) = rows[17].reasons
    assert (rows[17].kind, reason.rule) == ("DIV", "no-form")
    assert rows[0].kind == "SignalWindow"


def test_operators_to_ignore(model_file: ModelFile) -> None:
    path = model_file("kws_ref_model.tflite")
    artifact = mizzen.compile(path, "ethos-u55-128", ignore_ops=["softmax", "RESHAPE"])
    (softmax,) = [row for row in report_of(artifact).placements if row.kind == "SOFTMAX"]
    assert softmax.device is Device.CPU
    (reason,) = softmax.reasons
    assert (reason.rule, reason.source) == ("asked-for", "--ignore-ops")
    assert reason.message == "every SOFTMAX was to stay on the CPU"
    assert [step.on_npu for step in artifact.steps][-1] is False


def test_an_unknown_type_to_ignore(model_file: ModelFile) -> None:
    assert error(model_file("hello_world_int8.tflite"), ignore_ops=["SOFTMAXX"]) == (
        "error[E222]: an operator type to keep on the CPU must be one of TFLite's, not 'SOFTMAXX'\n"
        "  help did you mean SOFTMAX?"
    )


def test_a_wrong_configuration_comes_before_the_file() -> None:
    assert error("no/such/file.tflite", "ethos-u55-99").startswith("error[E210]")


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.tflite"
    assert error(path) == (
        f"error[E110]: {path} must be a file that can be read: No such file or directory"
    )
    assert error(tmp_path) == (
        f"error[E110]: {tmp_path} must be a file that can be read: Is a directory"
    )
    assert error("a\0b").startswith("error[E110]")


def test_a_compiled_network(model_file: ModelFile) -> None:
    once = mizzen.compile(model_file("hello_world_int8.tflite"), "ethos-u55-32")
    assert error(once.data) == (
        "error[E109]: model.tflite must be a network as it was trained, and is already compiled "
        "for an NPU\n"
        '  at   model.tflite, operator 0 ethos-u -> "StatefulPartitionedCall:0"\n'
        "  help give the original .tflite; `mizzen check --artifact`, `mizzen run` and `mizzen "
        "inspect` take compiled ones"
    )


def test_a_float_network() -> None:
    net = NetworkBuilder()
    x, y = net.tensor("x", MAP, "float32"), net.tensor("y", MAP, "float32")
    net.operator("RELU", [x], [y])
    assert error(net.finish([x], [y])).startswith(
        'error[E107]: the network must be quantised to integers, but tensor 0 "x" is FLOAT32'
    )


def test_a_file_of_something_else() -> None:
    assert error(b"PK\x03\x04 and more").startswith("error[E101]")
    assert error(b"").startswith("error[E101]")


def test_a_network_with_nothing_for_the_npu() -> None:
    net = NetworkBuilder()
    x, y = net.tensor("x", MAP, "int8", 0.1), net.tensor("y", MAP, "int8", 0.1)
    net.operator("MyOwnOperator", [x], [y])
    artifact = mizzen.compile(net.finish([x], [y]), "ethos-u55-128")
    assert regions(artifact) == [("MyOwnOperator", "CPU")]
    assert artifact.accelerator is None
    (reason,) = report_of(artifact).placements[0].reasons
    assert reason.message == "Ethos-U55 has no form of MyOwnOperator"
