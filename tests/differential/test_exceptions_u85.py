"""Where Ethos-U85 differs from the kernels by the compiler's doing, as the documentation lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.artifact.loading import artifact_of
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Built, Compiler, build
from mizzen.conformance.networks import SCALE, Case, Q, i32, one
from mizzen.conformance.oracles import litert
from mizzen.conformance.suite import judge, random_inputs
from mizzen.conformance.verdict import Verdict
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.system_config import resolve

from .cases_u85 import typed

Array = npt.NDArray[Any]

ACCELERATOR = "ethos-u85-256"
CASES = {case.name: case for case in cases()}


def run(case: Case, *inputs: Array) -> Array:
    built = build(case.build(), "net.tflite", Compiler.REGOR, resolve(ACCELERATOR))
    assert isinstance(built, Built)
    artifact = artifact_of(built.network, case.name)
    assert [step.on_npu for step in artifact.steps] == [True]
    result = artifact.run(*inputs)
    assert isinstance(result, np.ndarray)
    return result


def test_quotients_of_bytes_are_not_rescaled() -> None:
    """The stream divides the integers as they are, towards zero; the kernel divides real values."""
    case = CASES["div_1x5x6x7_1x5x6x7_int8"]
    a, b = random_inputs([((1, 5, 6, 7), np.int8)] * 2, 20)
    b[b == 0] = 1
    ours = run(case, a, b).ravel().astype(int)
    quotient = np.trunc(a.ravel() / b.ravel())
    np.testing.assert_array_equal(ours, np.clip(quotient, -128, 127))
    (kernel,) = CpuKernels(case.build()).run([a, b])
    assert (kernel.ravel() != ours).mean() > 0.9


def test_a_quotient_by_nothing_is_a_fault() -> None:
    """What the machine gives is in no source."""
    case = CASES["div_1x5x6x7_1x5x6x7_int8"]
    a, b = random_inputs([((1, 5, 6, 7), np.int8)] * 2, 20)
    b[0, 0, 0, 0] = 0
    with pytest.raises(MizzenError, match=r"E642.*a divisor must not be 0, and one is"):
        run(case, a, b)


@pytest.mark.parametrize(("scale", "number"), [(0.00046344351721927524, -22927), (0.0005, None)])
def test_one_number_of_int16_is_another_one_for_logistic(scale: float, number: int | None) -> None:
    """The function of the machine and the kernel's table differ at one number of some scales."""
    shape = (1, 1, 256, 256)
    case = one("logistic", "LOGISTIC", [shape], [shape], "int16", in_q=[Q(scale)],
               out_q=Q(1 / 32768))  # fmt: skip
    every = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(shape)
    (kernel,) = CpuKernels(case.build()).run([every[np.newaxis]])
    apart = run(case, every).astype(int).ravel() - kernel.astype(int).ravel()
    assert np.abs(apart).max() <= 1
    assert every.ravel()[apart != 0].tolist() == ([] if number is None else [number])


def tenth(values: Array) -> Array:
    """256 times the scale, rounded at bit 31 and again, halves away from zero."""
    multiplier = int(float(np.float32(SCALE["int16"])) * 256 * 2**34)
    high = (values.astype(np.int64) * multiplier + (1 << 30)) >> 31
    return np.sign(high) * ((np.abs(high) + 4) >> 3)


def test_comparisons_of_int16_are_of_rounded_values() -> None:
    """Without a scale of the result, the stream compares about a tenth of the values."""
    shape = (1, 5, 6, 7)
    case = typed("greater", "GREATER", [(shape, "int16")] * 2, (shape, "bool"),
                 ("GreaterOptions", {}))  # fmt: skip
    a, b = random_inputs([(shape, np.int16)] * 2, 400)
    ours = run(case, a, b)
    assert np.array_equal(ours, tenth(a) > tenth(b))
    (kernel,) = litert(case.build(), [a, b])
    assert np.array_equal(kernel, a > b)
    assert 0 < (ours != kernel).mean() < 1e-3


def test_nearest_neighbours_are_those_of_half_pixels() -> None:
    """With a broken factor, the stream samples as if `half_pixel_centers` were set."""

    def resize(half: bool) -> Case:
        options = {"align_corners": False, "half_pixel_centers": half}
        return one("resize", "RESIZE_NEAREST_NEIGHBOR", [(1, 4, 5, 7)], [(1, 6, 7, 7)],
                   options=("ResizeNearestNeighborOptions", options),
                   constants=[i32(6, 7)])  # fmt: skip

    (x,) = random_inputs([((1, 4, 5, 7), np.int8)], 8)
    ours = run(resize(False), x)
    plain, half = (CpuKernels(resize(kind).build()).run([x])[0] for kind in (False, True))
    assert np.array_equal(ours.ravel(), half.ravel())
    assert (ours.ravel() != plain.ravel()).mean() > 0.3


def test_a_short_bias_loses_the_scale() -> None:
    """Records of a scale with 31 bits go where 15 bits are: nothing is left of the result."""
    case = CASES["conv_1x6x6x5_o4_k3x3_s1x1_d1x1_same_int16_bias_int32"]
    (x,) = random_inputs([((1, 6, 6, 5), np.int16)], 8)
    (kernel,) = CpuKernels(case.build()).run([x])
    assert (run(case, x).ravel() != kernel.ravel()).mean() > 0.9


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("read_variable", Verdict.FAULTY),
        ("assign_variable", Verdict.FAULTY),
        ("relu_1x5x7x9_int32", Verdict.CRASHED),
        ("quantize_int32_int8", Verdict.CRASHED),
    ],
)
def test_what_does_not_compile_to_a_network(name: str, verdict: Verdict) -> None:
    row = judge(CASES[name], Compiler.REGOR, resolve(ACCELERATOR), 2)
    assert row.verdict is verdict
    assert row.exception is not None
