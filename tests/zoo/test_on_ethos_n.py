"""The zoo on Ethos-N: how much of each network is on the NPU, and each operator against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")
pytest.importorskip("sklearn", reason="scikit-learn, whose digits are trained on, is not installed")

import mizzen.torch

from .test_on_the_npu import NETWORKS, converted, networks

ACCELERATOR = "ethos-n78-4tops-4ple"

MACS = {
    "digits": 1.0,
    "ds_cnn": 0.87,  # the first layer's kernel is 10x4
    "mobilenet_v2": 1.0,
    "mobilenet_v3_small": 0.99,
    "resnet18": 1.0,
    "efficientnet_lite0": 1.0,
    "unet": 1.0,
    "yolo": 1.0,
    "vit_tiny": 0.83,  # patches of 16x16; products of two tensors
    "convnext": 0.96,  # patches of 4x4
    "encoder": 0.95,  # products of two tensors
    "decoder": 0.9,  # products of two tensors
    "lstm": 0.38,  # steps with a state of 16 bits
    "gru": 0.38,
    "tcn": 0.23,  # dilated kernels
}
"""The share of multiplications that is on the NPU at least."""

QUICK = ("digits", "ds_cnn", "encoder")
WHOLE = ("digits", "mobilenet_v2", "resnet18", "efficientnet_lite0", "unet")
COMPOSED = ("mizzen.lstm_steps_quantized", "mizzen.gru_steps_quantized")
"""What is a network of its own."""


@pytest.mark.parametrize("name", networks(*QUICK))
def test_what_computes_is_on_the_npu(name: str) -> None:
    report = mizzen.torch.compile_converted(
        converted(name), ACCELERATOR, name=name, prove="off"
    ).report
    assert report is not None
    assert report.macs_on_npu / report.macs >= MACS[name]
    assert all(row.reasons and row.reasons[0].help for row in report.on_cpu)
    if name in WHOLE:
        assert report.on_cpu == ()


@pytest.mark.parametrize("name", networks(*QUICK))
def test_each_operator_is_at_most_one_step_off_pytorch(name: str, off_pytorch: Any) -> None:
    call = NETWORKS[name].calibration()[0]
    found = list(off_pytorch(converted(name), call, ACCELERATOR, {}))
    assert found
    assert [row for row in found if row.steps > 1 and row.kind not in COMPOSED] == []


@pytest.mark.parametrize("name", networks("digits"))
def test_the_artifact_runs(name: str) -> None:
    """How far whole networks are off is for the documentation: each operator adds its step."""
    call = NETWORKS[name].calibration()[0]
    artifact = mizzen.torch.compile_converted(converted(name), ACCELERATOR, name=name, prove="off")
    wanted = converted(name).module(check_guards=False)(*call)
    found = artifact.run(*(value.numpy() for value in call))
    wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    found = found if isinstance(found, tuple) else (found,)
    assert [array.shape for array in found] == [tuple(value.shape) for value in wanted]
