"""Operators that do nothing, and those on real numbers inside a quantised network."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import Record

from .networks import Net, regions, report_of

ACCELERATORS = ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256", "ethos-n78-4tops-4ple"]
PADS = {"PAD": "PadOptions", "PADV2": "PadV2Options", "MIRROR_PAD": "MirrorPadOptions"}
REAL: dict[str, tuple[int, tuple[str, Record] | None]] = {
    "ADD": (2, ("AddOptions", {})),
    "MAXIMUM": (2, ("MaximumMinimumOptions", {})),
    "SOFTMAX": (1, ("SoftmaxOptions", {"beta": 1.0})),
    "TANH": (1, None),
    "ABS": (1, None),
}


def exact(data: bytes, artifact: mizzen.Artifact) -> bool:
    rng = np.random.default_rng(5)
    inputs = [rng.integers(-128, 128, (3, 1, *row.shape[1:])).astype(np.int8)
              for row in artifact.inputs]  # fmt: skip
    expected = CpuKernels(data).run(inputs)
    found = artifact.run(*(row[:, 0] for row in inputs))
    outputs = found if isinstance(found, tuple) else (found,)
    return all(np.array_equal(a.ravel(), b.ravel()) for a, b in zip(outputs, expected, strict=True))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("kind", PADS)
def test_padding_by_nothing(kind: str, accelerator: str) -> None:
    net = Net()
    padded, first = net.map("padded"), net.map("padded-first")
    rows = net.constant("rows", np.zeros((4, 2), np.int32))
    value = [net.constant("value", np.zeros(1, np.int8), 0.1)] if kind == "PADV2" else []
    net.operator(kind, [net.sum, rows, *value], [padded], (PADS[kind], {}))
    net.operator(kind, [net.first, rows, *value], [first], (PADS[kind], {}))
    data = net.finish([net.first, net.second], [net.twice(padded), first])
    artifact = mizzen.compile(data, accelerator)
    assert report_of(artifact).proof.unproved == ()
    assert exact(data, artifact)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("kind", REAL)
def test_real_numbers_inside_are_on_the_cpu(kind: str, accelerator: str) -> None:
    inputs, options = REAL[kind]
    net = Net()
    real, result = net.map("real", "float32"), net.map("result", "float32")
    back = net.map("back")
    net.operator("DEQUANTIZE", [net.sum], [real])
    net.operator(kind, [real] * inputs, [result], options)
    net.operator("QUANTIZE", [result], [back])
    data = net.finish([net.first, net.second], [net.twice(back)])
    artifact = mizzen.compile(data, accelerator)
    assert regions(artifact)[2] == (kind, "CPU")
    assert exact(data, artifact)


@pytest.mark.parametrize("accelerator", ACCELERATORS[:3])
def test_complex_numbers_inside_are_on_the_cpu(accelerator: str) -> None:
    """What comes before and after a spectrum is compiled."""
    net = Net()
    real, back = net.map("real", "float32"), net.map("back")
    spectrum = net.tensor("spectrum", (1, 4, 4, 5), "complex64")
    length = net.constant("length", np.array([4, 8], np.int32))
    size = net.tensor("size", (1, 4, 4, 5), "float32")
    whole = net.map("whole", "float32")
    net.operator("DEQUANTIZE", [net.sum], [real])
    net.operator("RFFT2D", [real, length], [spectrum])
    net.operator("COMPLEX_ABS", [spectrum], [size])
    places = net.constant("places", np.array([[0, 0], [0, 0], [0, 0], [0, 3]], np.int32))
    net.operator("PAD", [size, places], [whole], ("PadOptions", {}))
    net.operator("QUANTIZE", [whole], [back])
    data = net.finish([net.first, net.second], [net.twice(back)])
    report = report_of(mizzen.compile(data, accelerator))
    kinds = {placed.kind for placed in report.on_cpu}
    assert kinds == {"DEQUANTIZE", "RFFT2D", "COMPLEX_ABS", "PAD", "QUANTIZE"}
