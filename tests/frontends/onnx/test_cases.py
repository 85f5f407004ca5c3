"""A sample of what `benchmarks/onnx_cases.py` does with all of ONNX's own cases."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from .cases import cases_of, outcome, tried, twin_of

KINDS = (
    "Abs", "Add", "ArgMax", "Clip", "Concat", "Conv", "ConvTranspose", "Expand",
    "Gather", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GRU", "HardSwish", "Hardmax",
    "LSTM", "LeakyRelu", "LayerNormalization", "MatMul", "Max", "Mean", "Mul", "PRelu",
    "ReduceMax", "ReduceMin", "Relu", "Reshape", "Resize", "RNN", "Sigmoid", "Slice", "Softmax",
    "Split", "Squeeze", "Sub", "Tanh", "Tile", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators with cases in modules of the package onnx that are called like them; quick ones."""

MODULES = {
    "batch_normalization": "BatchNormalization",
    "instance_normalization": "InstanceNormalization",
    "reducel1": "ReduceL1",
    "where": "Where",
    **{kind.lower(): kind for kind in KINDS},
}
"""Modules of the package onnx to the operator that each has cases of."""

MOST_CASES = 10
"""Of an operator; some have eighty."""

ENDS = {"lowered", "on host", "E189", "E190", "E191", "E192", "E194"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_cases_are_read_and_their_twins_right(module: str) -> None:
    cases = cases_of(module, MODULES[module])[:MOST_CASES]
    assert cases
    lowered = 0
    for case in cases:
        assert outcome(case.model.SerializeToString(), case.name) in ENDS
        for dtype in ("int8", "uint8"):
            twin = twin_of(case, dtype)
            if twin is None:
                continue
            trial = tried(twin, case.name)
            assert trial.most <= 1, case.name
            lowered += not trial.reason
    assert lowered


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sweep
def test_all_cases() -> None:
    from .cases import collected

    for case in collected():
        assert outcome(case.model.SerializeToString(), case.name) in ENDS
        twin = twin_of(case)
        if twin is not None:
            assert tried(twin, case.name).most <= 1, case.name


def test_a_twin_stands_for_the_cases_numbers() -> None:
    case = next(case for case in cases_of("relu", "Relu") if case.name == "test_relu")
    twin = twin_of(case)
    assert twin is not None
    (given,), (wanted,) = twin.given.values(), twin.wanted
    assert [node[0] for node in twin.network.nodes] == [
        "DequantizeLinear", "Relu", "QuantizeLinear",
    ]  # fmt: skip
    real = np.asarray(case.data_sets[0][0][0])
    scale = float(real.max() - real.min()) / 255
    zero = int(np.rint(-float(real.min()) / scale)) - 128
    assert np.abs((given.astype(float) - zero) * scale - real).max() <= scale
    assert wanted.max() == 127
