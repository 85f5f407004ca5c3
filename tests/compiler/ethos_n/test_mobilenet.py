"""MobileNet v1 of Arm's answers, as TFLite, from partition to simulator with the CPU's part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="TensorFlow Lite Micro is not installed")

import mizzen
from mizzen.artifact.steps import CpuStep, NpuStep
from mizzen.artifact.steps import read_network as read
from mizzen.package.tflite.extract import extract
from mizzen.targets.ethos_n.network import Network

from .golden_tflite import with_softmax
from .kernels import STEP, differences, every_tensor, inputs_of, kernels

BATCH = 2


@pytest.mark.parametrize(
    "accelerator",
    ["ethos-n78-1tops-2ple", pytest.param("ethos-n78-4tops-4ple", marks=pytest.mark.sweep)],
)
def test_mobilenet(golden_network: Callable[[str], Network], accelerator: str) -> None:
    data = with_softmax(golden_network("mobilenet_v1_025_224"))
    artifact = mizzen.compile(data, accelerator, prove="off")
    assert [type(step) for step in artifact.steps] == [NpuStep, CpuStep]
    assert artifact.report is not None
    assert [row.kind for row in artifact.report.on_cpu] == ["SOFTMAX"]
    model = read(data, "mobilenet.tflite")
    indices = [row.index for row in artifact.report.on_npu]
    assert len(indices) == 27 + 27 + 2
    for operator, difference in differences(model, indices, accelerator, BATCH):
        assert difference <= STEP, (operator.index, operator.kind)
    (image,) = inputs_of(model, BATCH)
    step = artifact.steps[0]
    assert isinstance(step, NpuStep)
    scores = step.simulator.run([image], BATCH).outputs[0]
    softmax = extract(model.record, [len(model.main.operators) - 1])
    (expected,) = kernels(softmax.network).run([scores], BATCH)
    assert np.array_equal(artifact.run(image), expected)
    (wanted,) = (every_tensor(model, BATCH)[index] for index in softmax.inputs)
    assert np.array_equal(scores.argmax(axis=-1), wanted.argmax(axis=-1))
