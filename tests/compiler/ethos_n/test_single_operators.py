"""Networks of one operator: what goes to the NPU is at most one step from the CPU's kernels.

The networks are those of `mizzen conformance`, in the 8-bit types; the oracle is TFLite Micro, and
LiteRT for what it has no kernel of.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="TensorFlow Lite Micro is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.conformance.oracles import expected
from mizzen.conformance.suite import random_inputs

from .kernels import KEEP, STEP

CASES = {case.name: case for case in cases() if case.dtype in ("int8", "uint8")}
INPUTS = 16
ACCELERATOR = "ethos-n78-1tops-2ple"
ON_NPU = {
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED",
    "LEAKY_RELU", "LOGISTIC", "MAX_POOL_2D", "MEAN", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1",
    "RELU_N1_TO_1", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "SPLIT_V", "TANH", "TRANSPOSE_CONV",
}  # fmt: skip
"""Operators of which some network, not each, goes to the NPU."""


@cache
def compiled(name: str) -> Artifact:
    return mizzen.compile(CASES[name].build(), ACCELERATOR, target_options=KEEP, prove="off")


def is_on_npu(name: str) -> bool:
    return any(isinstance(step, NpuStep) for step in compiled(name).steps)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_at_most_one_step_from_the_kernel(name: str) -> None:
    case: Case = CASES[name]
    artifact = compiled(name)
    assert artifact.report is not None
    if not is_on_npu(name):
        assert all(row.reasons for row in artifact.report.placements)
        return
    shapes = [(info.shape, info.dtype) for info in artifact.inputs]
    arrays = random_inputs(shapes, INPUTS, case.limit)
    found = artifact.run(*arrays)
    outputs = found if isinstance(found, tuple) else (found,)
    wanted, _ = expected(case, case.build(), arrays)
    for output, correct in zip(outputs, wanted, strict=True):
        difference = np.abs(output.astype(int) - correct.astype(int))
        assert difference.max() <= STEP


def test_these_operators_go_to_the_npu() -> None:
    assert {case.operator for name, case in CASES.items() if is_on_npu(name)} == ON_NPU
