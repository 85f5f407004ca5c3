"""TFLite networks through placement, compiler and simulator, against TFLite Micro."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="TensorFlow Lite Micro is not installed")

import mizzen
from mizzen.artifact.steps import CpuStep, NpuStep
from mizzen.artifact.steps import read_network as read
from mizzen.cli.placement import proof_text
from mizzen.conformance.networks import Window, conv
from mizzen.report.compilation import read_sidecar
from mizzen.targets.ethos_n.commands_values import Location, McePle

from .kernels import STEP, differences

ModelFile = Callable[[str], Path]
ACCELERATOR = "ethos-n78-4tops-4ple"
MODELS = {
    "kws_ref_model": 10, "person_detect": 30, "ad01_int8": 10, "vww_96_int8": 30,
    "pretrainedResnet_quant": 15, "micro_speech_quantized": 1, "hello_world_int8": 3,
}  # fmt: skip
"""How many operators of each network are on the NPU."""


@pytest.mark.parametrize("name", MODELS)
def test_each_operator_is_at_most_one_step_from_the_kernel(
    model_file: ModelFile, name: str
) -> None:
    path = model_file(f"{name}.tflite")
    report = mizzen.compile(path, ACCELERATOR, prove="off").report
    assert report is not None
    model = read(path.read_bytes(), name)
    indices = [row.index for row in report.on_npu]
    assert len(indices) == MODELS[name]
    for operator, difference in differences(model, indices, ACCELERATOR, batch=3):
        assert difference <= STEP, (operator.index, operator.kind)


def test_an_artifact_keeps_everything(model_file: ModelFile, tmp_path: Path) -> None:
    artifact = mizzen.compile(model_file("pretrainedResnet_quant.tflite"), ACCELERATOR, prove="off")
    assert [type(step) for step in artifact.steps] == [NpuStep, CpuStep]
    assert artifact.name == "pretrainedResnet_quant_ethosn.tflite"
    path = tmp_path / artifact.name
    artifact.save(path)
    again = mizzen.load(path, ACCELERATOR)
    assert (again.data, again.report) == (artifact.data, artifact.report)
    image = np.zeros((2, 32, 32, 3), np.int8)
    assert np.array_equal(again.run(image), artifact.run(image))
    step = again.steps[0]
    assert isinstance(step, NpuStep)
    # The average is taken behind the last sum, in one pass with it.
    kinds = {origin.kind for origin in step.program.origins.values()}
    assert kinds == {"CONV_2D", "ADD", "FULLY_CONNECTED"}


def test_placement_says_why(model_file: ModelFile) -> None:
    report = mizzen.compile(model_file("kws_ref_model.tflite"), ACCELERATOR, prove="off").report
    assert report is not None
    reasons = {row.kind: row.reasons[0].message for row in report.on_cpu}
    assert reasons["CONV_2D"].startswith(
        "Convolution must have kernel extents of 1, 2, 3, 5, 7 or 9, and has 10x4"
    )
    assert report.cycles == sum(row.cycles for row in report.placements) > 0
    assert report.compiler == "Mizzen for Ethos-N78, command stream 3.1"


def test_the_report_has_the_performance_data_of_the_library(model_file: ModelFile) -> None:
    artifact = mizzen.compile(model_file("ad01_int8.tflite"), ACCELERATOR, prove="off")
    assert artifact.report is not None
    (found,) = artifact.report.performance
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    assert len(found["Stream"]) == len(step.program.program.commands)
    operations = sum(row["Mce"]["Operations"] for row in found["Stream"])
    # The library counts the zero points that a dense layer's input is filled up with, to 1024.
    dense = [row["Mce"]["Operations"] for row in found["Stream"]]
    assert dense[0] == 2 * 1024 * 128
    assert operations >= 2 * artifact.report.macs


def test_what_is_to_be_ignored_stays_on_the_cpu(model_file: ModelFile) -> None:
    path = model_file("person_detect.tflite")
    report = mizzen.compile(path, ACCELERATOR, ignore_ops=["DEPTHWISE_CONV_2D"], prove="off").report
    assert report is not None
    ignored = [row for row in report.on_cpu if row.kind == "DEPTHWISE_CONV_2D"]
    assert {row.reasons[0].rule for row in ignored} == {"asked-for"}
    assert len(ignored) == 14


def test_the_simulator_tells_what_arm_does_not_publish(model_file: ModelFile) -> None:
    artifact = mizzen.compile(model_file("hello_world_int8.tflite"), ACCELERATOR, prove="off")
    assert [note.code for note in artifact.notes] == ["N690"]
    assert artifact.hazards == ()


def test_a_pass_that_reads_what_nothing_wrote_is_found(model_file: ModelFile) -> None:
    artifact = mizzen.compile(model_file("pretrainedResnet_quant.tflite"), ACCELERATOR, prove="off")
    step = artifact.steps[0]
    assert isinstance(step, NpuStep)
    sound = step.program.program
    in_sram = [
        index
        for index, command in enumerate(sound.commands)
        if isinstance(command, McePle) and command.output.location is Location.SRAM
    ]
    without = [row for index, row in enumerate(sound.commands) if index != in_sram[0]]
    damaged = replace(step.program, program=replace(sound, commands=tuple(without)))
    report = step.family.hazards(damaged)
    (found,) = report.diagnostics
    assert found.code in ("E957", "E958", "E959")
    assert report.as_dict()["findings"] == [found.as_dict()]
    assert step.hazards.diagnostics == ()


def test_the_proof_says_to_what_it_is_exact(tmp_path: Path) -> None:
    """Its roundings are the NPU's, and neither TensorFlow Lite Micro's nor TOSA's."""
    data = conv((1, 6, 6, 4), 8, Window()).build()
    artifact = mizzen.compile(data, "ethos-n78-4tops-4ple")
    report = artifact.report
    assert report is not None
    assert report.proof.against == (
        "the network's integers with the NPU's own roundings (not TensorFlow Lite's)"
    )
    said = proof_text(report.proof)
    assert said.startswith(f"bit-exact to {report.proof.against} on 16 inputs")
    artifact.save(tmp_path / artifact.name)
    kept = read_sidecar(tmp_path / artifact.name, artifact.data)
    assert kept is not None
    assert kept.proof == report.proof
    other = mizzen.compile(data, "ethos-u55-128").report
    assert other is not None
    assert other.proof.against == ""
    assert proof_text(other.proof).startswith("bit-exact on 16 inputs")
