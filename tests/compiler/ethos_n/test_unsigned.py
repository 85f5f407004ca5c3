"""Networks of unsigned bytes: they go where those of signed bytes go, and compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.conformance.cases import cases as conformance_cases
from mizzen.conformance.networks import Case
from mizzen.conformance.suite import random_inputs
from mizzen.graph import other_sign
from mizzen.package.tflite.extract import extract

from .kernels import KEEP
from .unsigned import as_unsigned, per_tensor

ACCELERATOR = "ethos-n78-4tops-4ple"
CASES = {
    case.name: case
    for case in conformance_cases()
    if case.dtype == "int8"
    and case.operator
    in {
        "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED", "LEAKY_RELU", "LOGISTIC", "MAX_POOL_2D", "MEAN", "RELU", "RELU6",
        "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "SPLIT_V", "TANH", "TRANSPOSE_CONV",
    }
}  # fmt: skip
NETWORKS = {"N1_tvm_conv_3x1_s2": 0, "N1b_conv1x1_uint8": 1}
"""By how much a multiplier of 16 bits moves a network's output from the kernels' own."""
INPUTS = 4


def on_npu(artifact: mizzen.Artifact) -> list[int]:
    assert artifact.report is not None
    return [row.index for row in artifact.report.on_npu]


def outputs_of(artifact: mizzen.Artifact, arrays: list[np.ndarray]) -> list[np.ndarray]:
    found = artifact.run(*arrays)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_unsigned_bytes_goes_where_its_signed_twin_goes(name: str) -> None:
    case: Case = CASES[name]
    network = per_tensor(case.build())
    signed = mizzen.compile(network, ACCELERATOR, target_options=KEEP, prove="off")
    if not on_npu(signed):
        return
    unsigned = mizzen.compile(as_unsigned(network), ACCELERATOR, target_options=KEEP)
    assert on_npu(unsigned) == on_npu(signed)
    assert unsigned.report is not None
    assert unsigned.report.proof is not None
    assert unsigned.report.proof.equal == len(unsigned.outputs)
    shapes = [(info.shape, info.dtype) for info in signed.inputs]
    arrays = random_inputs(shapes, INPUTS, case.limit)
    twins = outputs_of(unsigned, [other_sign(array) for array in arrays])
    for output, twin in zip(outputs_of(signed, arrays), twins, strict=True):
        np.testing.assert_array_equal(other_sign(output), twin)


def test_a_whole_network_of_unsigned_bytes_computes_what_its_signed_twin_does(
    repository: Path,
) -> None:
    digits = (repository / "examples/digits/digits.tflite").read_bytes()
    model = read_network(digits, "digits")
    before_softmax = [row.index for row in model.main.operators if row.kind != "SOFTMAX"]
    network = per_tensor(extract(model.record, before_softmax).network)
    signed = mizzen.compile(network, ACCELERATOR, prove="off")
    unsigned = mizzen.compile(as_unsigned(network), ACCELERATOR)
    assert on_npu(unsigned) == on_npu(signed)
    assert len(on_npu(signed)) > 1
    shapes = [(info.shape, info.dtype) for info in signed.inputs]
    arrays = random_inputs(shapes, INPUTS)
    for output, twin in zip(
        outputs_of(signed, arrays),
        outputs_of(unsigned, [other_sign(array) for array in arrays]),
        strict=True,
    ):
        np.testing.assert_array_equal(other_sign(output), twin)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_reported_network_of_unsigned_bytes_is_on_the_npu(cases: Path, name: str) -> None:
    artifact = mizzen.compile(cases / f"{name}.tflite", ACCELERATOR)
    assert on_npu(artifact) == [0]
    values = np.load(cases / f"{name}.npz")
    output = outputs_of(artifact, [values["input_0"]])[0]
    right = values["output_0"]
    assert output.dtype == right.dtype == np.uint8
    assert np.abs(output.astype(int) - right.astype(int)).max() == NETWORKS[name]
