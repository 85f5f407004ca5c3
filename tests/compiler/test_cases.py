"""Small networks that went wrong once, with the numbers that are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.comparison.exactness import compare
from mizzen.package.tflite.builder import NetworkBuilder

ETHOS_U = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")

ON_NPU = (
    "D3_sparse_block",
    "DN_densify",
    "D20_tconv_weights_unfolded",
    "T4c_conv_int4",
    "EDGE_constant_output",
)
"""Those whose operators are all for the NPU."""

ONE_STEP = "ethos-n78-4tops-4ple"
"""Ethos-N scales with 16 bits, and is at most one step away."""

KEPT = {("D20_tconv_weights_unfolded", ONE_STEP)}
"""Those with operators that the NPU does not have."""


@pytest.mark.parametrize("accelerator", [*ETHOS_U, ONE_STEP])
@pytest.mark.parametrize("name", ON_NPU)
def test_right_numbers(name: str, accelerator: str, cases: Path) -> None:
    artifact = mizzen.compile(cases / f"{name}.tflite", accelerator)
    arrays = np.load(cases / f"{name}.npz")
    found = artifact.run(arrays["input_0"])
    furthest = 1 if accelerator == ONE_STEP else 0
    for place, array in enumerate(found if isinstance(found, tuple) else (found,)):
        expected = arrays[f"output_{place}"]
        far = np.abs(array.reshape(expected.shape).astype(int) - expected.astype(int))
        assert far.max() <= furthest
    assert artifact.report is not None
    assert bool(artifact.report.on_cpu) == ((name, accelerator) in KEPT)
    assert not artifact.report.diagnostics


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", ONE_STEP])
@pytest.mark.parametrize("name", ["DN_densify", "EDGE_constant_output"])
def test_compared_layer_by_layer(name: str, accelerator: str, cases: Path) -> None:
    found = compare(cases / f"{name}.tflite", accelerator)
    if accelerator != ONE_STEP:
        assert not any(row.differing for row in found.outputs)
    assert [row.kind for row in found.layers] in (["FULLY_CONNECTED"], ["CONV_2D"])


def weights_with_a_zero_point(kind: str) -> bytes:
    net = NetworkBuilder("zero")
    x = net.tensor("x", (1, 6, 6, 8), np.int8, 0.05)
    shape = (5, 3, 3, 8) if kind == "CONV_2D" else (1, 3, 3, 8)
    channels = 5 if kind == "CONV_2D" else 8
    w = net.constant("my_weights", np.ones(shape, np.int8), 0.01, 3)
    b = net.constant("b", np.zeros(channels, np.int32), 0.0005)
    y = net.tensor("y", (1, 6, 6, channels), np.int8, 0.3)
    options = {"padding": 0, "stride_w": 1, "stride_h": 1}
    if kind == "CONV_2D":
        net.operator(kind, [x, w, b], [y], ("Conv2DOptions", options))
    else:
        options["depth_multiplier"] = 1
        net.operator(kind, [x, w, b], [y], ("DepthwiseConv2DOptions", options))
    return net.finish([x], [y])


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256", ONE_STEP])
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_zero_points_of_weights_are_named(kind: str, accelerator: str) -> None:
    report = mizzen.compile(weights_with_a_zero_point(kind), accelerator).report
    assert report is not None
    (row,) = report.on_cpu
    (reason,) = row.reasons
    if accelerator == ONE_STEP:
        said = 'its weights "my_weights" have a zero point of 3, and its kernels take 0'
    else:
        said = f'{kind} must have weights with zero points of 0, and has 3 of "my_weights"'
    assert reason.message == said
