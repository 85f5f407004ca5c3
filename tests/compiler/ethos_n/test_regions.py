"""Operators that the compiler has no room for go to the CPU alone, with what it says."""

from __future__ import annotations

import numpy as np

import mizzen
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report import Device

ONLY_3 = {f"strategy{number}": "false" for number in (0, 1, 4, 6, 7)}
"""Strategy 3 has everything in SRAM at once."""


def convolution(builder: NetworkBuilder, source: int, shape: tuple[int, int]) -> int:
    """Add a 1x1 convolution of an 8x8 plane from `shape[0]` to `shape[1]` channels."""
    channels, outputs = shape
    weights = np.random.default_rng(0).integers(-127, 128, (outputs, 1, 1, channels))
    held = builder.constant("weights", weights.astype(np.int8), 0.02)
    bias = builder.constant("bias", np.zeros(outputs, np.int32), 0.05 * 0.02)
    target = builder.tensor(f"to {outputs}", (1, 8, 8, outputs), np.int8, 0.05)
    options = {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    table = ("Conv2DOptions", options)
    builder.operator("CONV_2D", [source, held, bias], [target], table)
    return target


def test_what_does_not_fit_is_refused_alone() -> None:
    builder = NetworkBuilder("large in the middle")
    source = builder.tensor("image", (1, 8, 8, 64), np.int8, 0.05)
    value = convolution(builder, source, (64, 128))
    value = convolution(builder, value, (128, 6000))
    value = convolution(builder, value, (6000, 64))
    value = convolution(builder, value, (64, 128))
    network = builder.finish([source], [value])
    report = mizzen.compile(
        network, "ethos-n78-1tops-2ple", target_options=ONLY_3, prove="off"
    ).report
    assert report is not None
    assert [row.device for row in report.placements] == [
        Device.NPU, Device.CPU, Device.CPU, Device.NPU,
    ]  # fmt: skip
    assert {row.reasons[0].rule for row in report.on_cpu} == {"compiler"}
    assert all("must fit" in row.reasons[0].message for row in report.on_cpu)
