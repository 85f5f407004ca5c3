"""What the help of a rule says was tried: it does what the operator did, on the NPU."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="TensorFlow Lite Micro is not installed")

import mizzen
from mizzen.diagnostics import Device
from mizzen.package.tflite.builder import NetworkBuilder

IMAGE: tuple[int, ...] = (1, 8, 9, 6)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_a_convolution_picks_channels_as_a_strided_slice_does(accelerator: str) -> None:
    picked = np.zeros((3, 1, 1, 6), np.int8)
    picked[np.arange(3), 0, 0, [1, 3, 5]] = 1
    net = NetworkBuilder()
    x = net.tensor("x", IMAGE, np.int8, 0.05, 7)
    y = net.tensor("y", (*IMAGE[:3], 3), np.int8, 0.05, 7)
    weights = net.constant("w", picked, 1.0)
    bias = net.constant("b", np.zeros(3, np.int32), 0.05)
    options = {"padding": 1, "stride_h": 1, "stride_w": 1}
    net.operator("CONV_2D", [x, weights, bias], [y], ("Conv2DOptions", options))
    artifact = mizzen.compile(net.finish([x], [y]), accelerator)
    assert artifact.report is not None
    assert [row.device for row in artifact.report.placements] == [Device.NPU]
    values = np.random.default_rng(1).integers(-128, 128, (4, *IMAGE)).astype(np.int8)
    np.testing.assert_array_equal(artifact.run(values), values[..., 1::2])
