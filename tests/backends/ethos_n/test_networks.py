"""TFLite networks through placement, compiler and simulator, against TFLite Micro.

Ethos-N requantises with a 16-bit multiplier and rounds half up, TFLite Micro with one of 32 bits:
an operator's result is at most one step away from the kernel's for the same inputs. Networks carry
such steps on, so each operator is held to the kernel's results at its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="TensorFlow Lite Micro is not installed")

import mizzen
from mizzen.artifact import CpuStep, NpuStep
from mizzen.cpu.tflm import CpuKernels
from mizzen.frontends.tflite import Model, read
from mizzen.package.tflite.extract import extract

ModelFile = Callable[[str], Path]
ACCELERATOR = "ethos-n78-4tops-4ple"
KEEP = {"inline_non_compute_intensive_partitions": "false"}
STEP = 1
MODELS = (
    "kws_ref_model", "person_detect", "ad01_int8", "vww_96_int8", "pretrainedResnet_quant",
    "micro_speech_quantized", "hello_world_int8",
)  # fmt: skip


@cache
def kernels(network: bytes) -> CpuKernels:
    return CpuKernels(network, [])


def inputs_of(model: Model, batch: int, seed: int = 0) -> list[Any]:
    generator = np.random.default_rng(seed)
    found: list[Any] = []
    for tensor in model.main.present(model.main.inputs):
        assert tensor.dtype is not None
        limits = np.iinfo(tensor.dtype)
        shape = (batch, *tensor.shape)
        found.append(generator.integers(limits.min, limits.max + 1, shape).astype(tensor.dtype))
    return found


def every_tensor(model: Model, batch: int) -> dict[int, Any]:
    """Compute every tensor of a network on TFLite Micro's kernels, operator by operator."""
    values = dict(zip(model.main.inputs, inputs_of(model, batch), strict=True))
    for operator in model.main.operators:
        part = extract(model.record, [operator.index])
        results = kernels(part.network).run([values[index] for index in part.inputs], batch)
        values.update(zip(part.outputs, results, strict=True))
    return values


@pytest.mark.parametrize("name", MODELS)
def test_each_operator_is_at_most_one_step_from_the_kernel(
    model_file: ModelFile, name: str
) -> None:
    model = read(model_file(f"{name}.tflite").read_bytes(), name)
    report = mizzen.compile(model_file(f"{name}.tflite"), ACCELERATOR).report
    assert report is not None
    batch = 3
    values = every_tensor(model, batch)
    for row in report.on_npu:
        part = extract(model.record, [row.index])
        artifact = mizzen.compile(part.network, ACCELERATOR, target_options=KEEP)
        (step,) = artifact.steps
        assert isinstance(step, NpuStep), row.kind
        found = artifact.run(*(values[index] for index in part.inputs))
        arrays = found if isinstance(found, tuple) else (found,)
        for index, array in zip(part.outputs, arrays, strict=True):
            difference = np.abs(array.astype(int) - values[index].astype(int))
            assert difference.max() <= STEP, (row.index, row.kind)


def test_an_artifact_keeps_everything(model_file: ModelFile, tmp_path: Path) -> None:
    artifact = mizzen.compile(model_file("pretrainedResnet_quant.tflite"), ACCELERATOR)
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
    report = mizzen.compile(model_file("kws_ref_model.tflite"), ACCELERATOR).report
    assert report is not None
    reasons = {row.kind: row.reasons[0].message for row in report.on_cpu}
    assert reasons["CONV_2D"].startswith(
        "Convolution must have kernel extents of 1, 2, 3, 5, 7 or 9, and has 10x4"
    )
    assert report.cycles == sum(row.cycles for row in report.placements) > 0
    assert report.compiler == "Mizzen for Ethos-N78, command stream 3.1"


def test_what_is_to_be_ignored_stays_on_the_cpu(model_file: ModelFile) -> None:
    path = model_file("person_detect.tflite")
    report = mizzen.compile(path, ACCELERATOR, ignore_ops=["DEPTHWISE_CONV_2D"]).report
    assert report is not None
    ignored = [row for row in report.on_cpu if row.kind == "DEPTHWISE_CONV_2D"]
    assert {row.reasons[0].rule for row in ignored} == {"asked-for"}
    assert len(ignored) == 14


def test_the_simulator_tells_what_arm_does_not_publish(model_file: ModelFile) -> None:
    artifact = mizzen.compile(model_file("hello_world_int8.tflite"), ACCELERATOR)
    assert [note.code for note in artifact.notes] == ["N690"]
    assert artifact.hazards == ()
