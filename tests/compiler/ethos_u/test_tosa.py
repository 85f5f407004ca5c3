"""TOSA files compiled: the simulated NPU gives what TOSA's reference model gives, or an error."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write

ACCELERATOR = "ethos-u55-128"
MAP = TensorType((1, 8, 8, 16), DType.INT8)
RUN = """
import sys
import numpy as np
import tosa_reference_model

inputs = [np.load(name) for name in sys.argv[2:]]
results, _ = tosa_reference_model.run(open(sys.argv[1], "rb").read(), inputs)
np.savez(sys.argv[1] + ".npz", *results)
"""

Make = Callable[[Builder, Value], Value]


def rescale(b: Builder, value: Value, dtype: DType, shift: int, multiplier: int = 1 << 30) -> Value:
    operands = (
        b.constant([multiplier], DType.INT32),
        b.constant([shift], DType.INT8),
        b.constant([0], value.dtype),
        b.constant([0], dtype),
    )
    single = RoundingMode.SINGLE_ROUND
    return b("RESCALE", value, *operands, scale32=True, rounding_mode=single, per_channel=False)


def weights(b: Builder, *shape: int) -> Value:
    return b.constant(np.random.default_rng(0).integers(-9, 9, shape), DType.INT8)


def convolution(b: Builder, value: Value) -> Value:
    bias, zero = b.constant(np.arange(16), DType.INT32), b.constant([0], DType.INT8)
    operands = (value, weights(b, 16, 3, 3, 16), bias, b.constant([-3], DType.INT8), zero)
    sums = b("CONV2D", *operands, pad=(1, 1, 1, 1), stride=(1, 1))
    return rescale(b, sums, DType.INT8, 38, 1_234_567_890)


def reshaped(b: Builder, value: Value) -> Value:
    """Have a RESHAPE at both ends, whose shapes the compiler would give the inputs and outputs."""
    flat = b("RESHAPE", value, b.shape([1, 16, 8, 8]))
    plane = convolution(b, b("TRANSPOSE", flat, perms=(0, 2, 3, 1)))
    return b("RESHAPE", plane, b.shape([1, 1024]))


def transposed_convolution(b: Builder, value: Value) -> Value:
    bias, zero = b.constant([0] * 16, DType.INT32), b.constant([0], DType.INT8)
    operands = (value, weights(b, 16, 2, 2, 16), bias, zero, zero)
    sums = b("TRANSPOSE_CONV2D", *operands, out_pad=(0, 0, 0, 0), stride=(2, 2))
    return rescale(b, sums, DType.INT8, 36)


def joined(b: Builder, value: Value) -> Value:
    large = transposed_convolution(b, value)
    return b("CONCAT", large, transposed_convolution(b, convolution(b, value)), large, axis=3)


def begun(b: Builder, value: Value) -> Value:
    """Join channels behind a transposed convolution, which needs no parting there."""
    large = transposed_convolution(b, value)
    plane = b("MAX_POOL2D", large, kernel=(1, 1), stride=(1, 1), pad=(0, 0, 0, 0))
    whole = b("CONCAT", transposed_convolution(b, convolution(b, value)), plane, axis=3)
    bias, zero = b.constant(np.arange(16), DType.INT32), b.constant([0], DType.INT8)
    sums = b("CONV2D", whole, weights(b, 16, 3, 3, 32), bias, zero, zero,
             pad=(1, 1, 1, 1), stride=(1, 1))  # fmt: skip
    return rescale(b, sums, DType.INT8, 36, 1_234_567_890)


def padded(b: Builder, value: Value) -> Value:
    edge = b.shape([0, 0, 1, 2, 2, 1, 0, 0])
    return b("PAD", transposed_convolution(b, value), edge, b.constant([3], DType.INT8))


def greatest(b: Builder, value: Value) -> Value:
    rows = b("REDUCE_MAX", value, axis=1)
    return b("CONCAT", rows, value, axis=1)


def greatest_channels(b: Builder, value: Value) -> Value:
    channels = b("REDUCE_MAX", value, axis=3)
    return b("CONCAT", value, channels, axis=3)


def added(b: Builder, value: Value) -> Value:
    scaled = [
        rescale(b, each, DType.INT32, shift)
        for each, shift in ((value, 11), (convolution(b, value), 12))
    ]
    return rescale(b, b("ADD", *scaled), DType.INT8, 50)


def tied(b: Builder, value: Value) -> Value:
    """Weights that two operators share, with a bias for each."""
    zero, shared = b.constant([0], DType.INT8), weights(b, 16, 1, 1, 16)
    results = [
        b("CONV2D", value, shared, b.constant([bias] * 16, DType.INT32), zero, zero,
          pad=(0, 0, 0, 0), stride=(1, 1))
        for bias in (-2000, 3000)
    ]  # fmt: skip
    return b("CONCAT", *(rescale(b, each, DType.INT8, 37) for each in results), axis=3)


NETWORKS: list[Make] = [
    convolution,
    reshaped,
    joined,
    begun,
    padded,
    greatest,
    greatest_channels,
    added,
    tied,
]


def build(make: Make) -> Graph:
    graph = Graph()
    value = graph.add_input(MAP, "image")
    result = make(Builder(graph), value)
    result.name = "result"
    graph.set_outputs([result])
    return graph


@pytest.mark.parametrize("make", NETWORKS)
def test_the_npu_gives_what_tosa_says(make: Make, tmp_path: Path) -> None:
    python = os.environ.get("MIZZEN_TOSA_PYTHON")
    if not python:
        pytest.skip("no TOSA tools: set MIZZEN_TOSA_PYTHON to a Python that has tosa-tools")
    graph, file, given = build(make), tmp_path / "net.tosa", tmp_path / "x.npy"
    file.write_bytes(write(graph))
    image = np.random.default_rng(1).integers(-128, 128, MAP.shape).astype(np.int8)
    np.save(given, image)
    subprocess.run([python, "-c", RUN, file, given], capture_output=True, check=True)
    with np.load(f"{file}.npz") as results:
        (theirs,) = (results[name] for name in results.files)
    artifact = mizzen.compile(file, ACCELERATOR)
    ours: Any = artifact.run(image)
    assert np.ptp(theirs.astype(int)) > 50, "the case must not only saturate"
    np.testing.assert_array_equal(ours, theirs)


def test_inputs_and_outputs_have_their_names_and_shapes() -> None:
    artifact = mizzen.compile(write(build(reshaped)), ACCELERATOR)
    (taken,), (given,) = artifact.inputs, artifact.outputs
    assert (taken.name, taken.shape, taken.dtype) == ("image", MAP.shape, np.dtype(np.int8))
    assert (given.name, given.shape) == ("result", (1, 1024))
    again = artifact_of(artifact.data, "again.tflite")
    image = np.arange(1024, dtype=np.int8).reshape(MAP.shape)
    np.testing.assert_array_equal(again.run(image), artifact.run(image))


def test_the_report_has_each_operator_of_the_file_once(tmp_path: Path) -> None:
    (tmp_path / "net.tosa").write_bytes(write(build(padded)))
    artifact = mizzen.compile(tmp_path / "net.tosa", ACCELERATOR)
    report = artifact.report
    assert report is not None
    assert artifact.name == "net_vela.tflite"
    rows = [(row.kind, row.macs, row.device.value) for row in report.placements]
    # 8 x 8 inputs of 16 channels, each going into 2 x 2 outputs of 16
    macs = 8 * 8 * 16 * 2 * 2 * 16
    assert rows == [("TRANSPOSE_CONV2D", macs, "NPU"), ("RESCALE", 0, "NPU"), ("PAD", 0, "NPU")]
    assert sum(row.cycles for row in report.placements) > 0
    (origins,) = report.origins
    assert {origin.kind for origin in origins.values()} >= {"TRANSPOSE_CONV2D", "PAD"}


def refusal(graph: Graph, **keywords: Any) -> str:
    with pytest.raises(MizzenError) as caught:
        mizzen.compile(write(graph), ACCELERATOR, **keywords)
    return str(caught.value)


def test_an_operator_that_the_npu_does_not_have_is_told() -> None:
    def compare(b: Builder, value: Value) -> Value:
        wide = b("CAST", value, dtype=DType.INT32)
        return b("CAST", b("GREATER", wide, wide), dtype=DType.INT8)

    assert refusal(build(compare)) == (
        "error[E301]: ethos-u55-128 must run every operator, and cannot run GREATER (operators 1, "
        "2): the NPU does not compute this GREATER: no rule has a form of GREATER, but Ethos-U85 "
        "has one\n"
        '  at   model.tosa, operator 1 GREATER -> "value_0"\n'
        "  rule Mizzen's rules for Ethos-U\n"
        "  help lower it to other operators, choose another accelerator, or split the network there"
    )


def test_what_tosa_does_not_allow_is_told() -> None:
    graph = Graph()
    value = graph.add_input(MAP, "image")
    graph.set_outputs([graph.add("REVERSE", [value], [MAP], {"axis": 4}).result])
    assert refusal(graph).startswith("error[E806]: REVERSE: axis must be a dimension of")


def test_nothing_can_stay_on_the_cpu() -> None:
    assert refusal(build(convolution), ignore_ops=["CONV_2D"]) == (
        "error[E223]: every operator of a TOSA network must run on the NPU, and CONV_2D should "
        "stay on the CPU\n"
        "  help leave out `--ignore-ops`; split the network where it was made"
    )


def biases(b: Builder, value: Value) -> Value:
    """Two convolutions of the same weights, which have no room, with biases of their own."""
    zero = b.constant([0], DType.INT8)
    full = b.constant(np.linspace(-128, 127, 256).reshape(16, 1, 1, 16), DType.INT8)
    results = [
        b("CONV2D", value, full, b.constant([bias] * 16, DType.INT32), zero, zero,
          pad=(0, 0, 0, 0), stride=(1, 1))
        for bias in (-2000, 3000)
    ]  # fmt: skip
    return b("CONCAT", *(rescale(b, each, DType.INT8, 37) for each in results), axis=3)
