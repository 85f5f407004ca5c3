"""What Vela gets wrong on Ethos-U85 is on the NPU by our rules, and what the kernels compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.artifact.loading import artifact_of
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Built, Compiler, build
from mizzen.conformance.networks import Case, Q, i32, one
from mizzen.conformance.oracles import expected
from mizzen.conformance.suite import random_inputs
from mizzen.targets.ethos_u.machine.system_config import resolve

from .cases_u85 import typed

Array = npt.NDArray[Any]
CASES = {case.name: case for case in cases()}
SHAPE = (1, 5, 6, 7)


def require_exact(case: Case, *inputs: Array, wanted: Array | None = None) -> None:
    network = case.build()
    built = build(network, "net.tflite", Compiler.OWN, resolve("ethos-u85-256"))
    assert isinstance(built, Built)
    artifact = artifact_of(built.network, case.name)
    assert [step.on_npu for step in artifact.steps] == [True]
    result = artifact.run(*inputs)
    assert isinstance(result, np.ndarray)
    if wanted is None:
        (wanted,), _ = expected(case, network, inputs)
    assert np.array_equal(result.ravel(), wanted.ravel())


def test_quotients_of_bytes_also_by_nothing() -> None:
    a, b = random_inputs([(SHAPE, np.int8)] * 2, 40)
    b[0, 0, 0, 0] = 0
    require_exact(CASES["div_1x5x6x7_1x5x6x7_int8"], a, b)


def test_every_number_of_16_bits_for_logistic() -> None:
    shape = (1, 1, 256, 256)
    case = one("logistic", "LOGISTIC", [shape], [shape], "int16",
               in_q=[Q(0.00046344351721927524)], out_q=Q(1 / 32768))  # fmt: skip
    every = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, *shape)
    require_exact(case, every)


@pytest.mark.parametrize(
    ("kind", "table"), [("GREATER", "GreaterOptions"), ("LESS_EQUAL", "LessEqualOptions")]
)
def test_comparisons_of_16_bits_that_are_nearly_equal(kind: str, table: str) -> None:
    case = typed("compared", kind, [(SHAPE, "int16")] * 2, (SHAPE, "bool"), (table, {}))
    (a,) = random_inputs([(SHAPE, np.int16)], 40)
    b = (a.astype(int) + np.random.default_rng(1).integers(-2, 3, a.shape)).clip(-32768, 32767)
    wanted = a > b if kind == "GREATER" else a <= b
    require_exact(case, a, b.astype(np.int16), wanted=wanted)


@pytest.mark.parametrize("half", [False, True])
def test_nearest_neighbours_by_broken_factors(half: bool) -> None:
    options = {"align_corners": False, "half_pixel_centers": half}
    case = one("resize", "RESIZE_NEAREST_NEIGHBOR", [(1, 4, 5, 7)], [(1, 6, 7, 7)],
               options=("ResizeNearestNeighborOptions", options),
               constants=[i32(6, 7)])  # fmt: skip
    require_exact(case, *random_inputs([((1, 4, 5, 7), np.int8)], 8))


def test_a_short_bias_of_16_bits() -> None:
    case = CASES["conv_1x6x6x5_o4_k3x3_s1x1_d1x1_same_int16_bias_int32"]
    require_exact(case, *random_inputs([((1, 6, 6, 5), np.int16)], 8))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_whole_numbers_of_32_bits_are_requantised(dtype: str) -> None:
    case = one("quantised", "QUANTIZE", [SHAPE], [SHAPE], "int32", in_q=[Q(0.001)],
               out_q=Q(0.05, 7 if dtype == "int8" else 0), out_dtype=dtype)  # fmt: skip
    require_exact(case, *random_inputs([(SHAPE, np.int32)], 8, 1 << 21))
