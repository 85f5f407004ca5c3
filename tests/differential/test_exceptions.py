"""Where Vela's code differs from the kernels by its doing, or the oracle's.

Each test shows two things: that the difference is there and how large it is, and that the
simulator computed what the stream says, by a formula or table that shares no code with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases.elementwise_cases import mul_of_scales
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.networks import SCALE, ZERO, Case, Q, binary, i32, one, reduce, unary
from mizzen.conformance.oracles import litert
from mizzen.conformance.suite import judge, random_inputs
from mizzen.conformance.verdict import Verdict
from mizzen.cpu.tflm import CpuKernels
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.sim.operations import Convolution, Elementwise
from mizzen.targets.ethos_u.judge.sim.plan import Step
from mizzen.targets.ethos_u.judge.sim.pooling_kernel import PoolingKernel
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

Array = npt.NDArray[Any]
ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
"""One of each family; Ethos-U85 last, where not all of the defects are."""
VELA = {"generator": "vela"}
EVERY_BYTE = np.arange(-128, 128).astype(np.int8).reshape(1, 1, 16, 16, 1)


def run(case: Case, accelerator: str, *inputs: Array) -> tuple[Array, list[Step]]:
    artifact = mizzen.compile(case.build(), accelerator, prove="off", target_options=VELA)
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    result = artifact.run(*inputs)
    assert isinstance(result, np.ndarray)
    return result, step.simulator.plan.steps


def table_of(steps: list[Step]) -> Array:
    (step,) = steps
    assert isinstance(step.kernel, PoolingKernel)
    assert step.kernel.table is not None
    return step.kernel.table.view(np.int8)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_gelu_tables_differ_by_one(accelerator: str) -> None:
    """The compiler computes the table in another precision than LiteRT's kernel."""
    case = unary("GELU", options=("GeluOptions", {"approximate": False}), out_q=Q(0.04, -70),
                 shape=(1, 16, 16, 1))  # fmt: skip
    ours, steps = run(case, accelerator, EVERY_BYTE[0])
    assert np.array_equal(ours.ravel(), table_of(steps))
    (kernel,) = litert(case.build(), [EVERY_BYTE])
    difference = np.abs(ours.astype(int).ravel() - kernel.ravel())
    assert (difference.max(), (difference > 0).sum()) == (1, 1)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_negation_saturates_where_the_kernel_wraps(accelerator: str) -> None:
    """-(-128) is 127 on the NPU; LiteRT's kernel computes in 8 bits and gives -128."""
    case = unary("NEG", in_q=Q(0.05, 0), out_q=Q(0.05, 0), shape=(1, 16, 16, 1))
    ours, _ = run(case, accelerator, EVERY_BYTE[0])
    assert np.array_equal(ours.ravel(), np.minimum(-EVERY_BYTE.astype(int).ravel(), 127))
    (kernel,) = litert(case.build(), [EVERY_BYTE])
    differs = ours.ravel() != kernel.ravel()
    assert EVERY_BYTE.ravel()[differs].tolist() == [-128]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_rescaled_sum_is_rounded_to_nearest(accelerator: str) -> None:
    """TFLite Micro rounds the fraction of a rescaled sum away from zero instead."""
    scale, zero = SCALE["int8"], ZERO["int8"]
    case = reduce("SUM", (1, 6, 5, 7), (3,), out_q=Q(scale * 3, 3))
    (x,) = random_inputs([((1, 6, 5, 7), np.int8)], 20)
    ours, _ = run(case, accelerator, x)
    sums = (x.astype(int) - zero).sum(axis=-1)
    nearest = (2 * sums + 3) // 6  # a third of an integer is never halfway
    assert np.array_equal(ours.reshape(sums.shape), np.clip(nearest + 3, -128, 127))
    (kernel,) = CpuKernels(case.build()).run([x])
    away = np.sign(sums) * -(-np.abs(sums) // 3)
    assert np.array_equal(kernel.reshape(sums.shape), np.clip(away + 3, -128, 127))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_sum_over_two_axes_is_not_one(accelerator: str) -> None:
    """The stream sums one axis of the two: its weights reach over a row, not over the plane."""
    case = reduce("SUM", (1, 3, 3, 5), (1, 2))
    (x,) = random_inputs([((1, 3, 3, 5), np.int8)], 8)
    ours, steps = run(case, accelerator, x)
    summed = [
        step.operation.kernel.height * step.operation.kernel.width
        for step in steps
        if isinstance(step.operation, Convolution)
    ]
    assert 9 not in summed
    (kernel,) = CpuKernels(case.build()).run([x])
    assert (ours.reshape(kernel.shape) != kernel).mean() > 0.5


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_int16_products_are_scaled_in_single_precision(accelerator: str) -> None:
    """The compiler multiplies the scales as float32, the kernel as float64; off by one at most."""
    scale = SCALE["int16"]
    case = mul_of_scales()
    a, b = random_inputs([((1, 5, 6, 7), np.int16), ((1, 1, 1, 7), np.int16)], 200)
    ours, steps = run(case, accelerator, a, b)
    operation = steps[0].operation
    assert isinstance(operation, Elementwise)
    assert operation.output.scale is not None
    multiplier, shift = operation.output.scale
    in_a, in_b, out = (np.float32(s) for s in (scale, scale * 0.375, scale * scale * 8000))
    single = float(np.float32(in_a * in_b / out))
    double = float(in_a) * float(in_b) / float(out)
    assert multiplier == round(single * 2.0**shift)
    assert multiplier != round(double * 2.0**shift)
    (kernel,) = CpuKernels(case.build()).run([a, b])
    difference = np.abs(ours.astype(int).reshape(kernel.shape) - kernel)
    assert difference.max() == 1
    assert difference.mean() < 1e-3


@pytest.mark.parametrize("accelerator", [*ACCELERATORS, "ethos-u85-256"])
def test_int32_products_lose_their_lowest_bits(accelerator: str) -> None:
    """The stream's scale is 2^30 / 2^30 for a factor of 1; 32-bit MUL takes only its shift.

    The same scales in SOFTMAX, whose products the kernels confirm, show that it does.
    """
    case = binary("MUL", (1, 5, 6, 7), (1, 5, 6, 7), "int32")
    a, b = random_inputs([((1, 5, 6, 7), np.int32)] * 2, 20, 1 << 20)
    ours, steps = run(case, accelerator, a, b)
    operation = steps[0].operation
    assert isinstance(operation, Elementwise)
    assert operation.output.scale == (1, 30)  # only the shift: the multiplier is dropped
    product = a.astype(np.int64) * b
    assert np.array_equal(ours.ravel(), ((product + (1 << 29)) >> 30).ravel())
    (kernel,) = CpuKernels(case.build()).run([a, b])
    assert np.array_equal(kernel.ravel(), product.astype(np.int32).ravel())


@pytest.mark.parametrize("accelerator", ACCELERATORS[:2])
def test_transposed_bytes_are_taken_to_be_signed(accelerator: str) -> None:
    """The stream reads UINT8 as INT8 and writes 0 for all below; the other core's does not."""
    perm = (0, 2, 1, 3)
    case = one("transpose_uint8", "TRANSPOSE", [(1, 4, 5, 6)], [(1, 5, 4, 6)], "uint8",
               constants=[i32(*perm)])  # fmt: skip
    (x,) = random_inputs([((1, 4, 5, 6), np.uint8)], 8)
    ours, _ = run(case, accelerator, x)
    right = x.transpose(0, 1, *(axis + 1 for axis in perm[1:]))
    assert np.array_equal(ours.ravel(), np.where(right < 128, right, 0).ravel())
    (kernel,) = litert(case.build(), [x])
    assert np.array_equal(kernel.ravel(), right.ravel())
    row = judge(case, Compiler.LEGACY, resolve(accelerator), 8)
    assert row.verdict is Verdict.EXACT


def test_the_suite_avoids_exactly_these_scales() -> None:
    """With powers of two the product is exact, and the suite's int16 MUL equals the kernel."""
    case = binary("MUL", (1, 5, 6, 7), (1, 1, 1, 7), "int16")
    a, b = random_inputs([((1, 5, 6, 7), np.int16), ((1, 1, 1, 7), np.int16)], 50)
    ours, _ = run(case, "ethos-u55-128", a, b)
    (kernel,) = CpuKernels(case.build()).run([a, b])
    assert np.array_equal(ours.reshape(kernel.shape), kernel)


def reciprocals(precision: type[np.float32 | np.float64]) -> Array:
    """The table of 1 / (1 + x) for x in 0..1 that int16 SOFTMAX interpolates, int16 [513].

    As TFLite's `LUTPopulate` makes it, in `precision`: samples at 513 places, moved by half the
    error that interpolation makes midway.
    """
    unit, step = precision(32768), precision(1) / precision(512)
    x = np.arange(513, dtype=precision) * step

    def value(at: Array) -> Array:
        return precision(1) / (precision(1) + at)

    def rounded(v: Array) -> Array:
        return np.floor(np.abs(v) + precision(0.5)) * np.sign(v)

    samples = rounded(value(x) * unit)
    midway = rounded((value(x[1:]) * unit + samples[:-1]) / precision(2))
    error = midway - rounded(value(x[:-1] + step / precision(2)) * unit)
    samples[:-1] -= rounded(error / precision(2))
    return np.clip(samples, -32768, 32767).astype(np.int16)


def segments(table: Array) -> Array:
    """Base and slope of each of 512 segments, as the NPU takes them, int16 [512, 2]."""
    return np.stack([table[:-1], np.diff(table)], axis=1)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_int16_softmax_has_a_table_of_double_precision(accelerator: str) -> None:
    """The kernel makes the same table in single precision; two entries of 513 differ by one.

    With the kernel's table among the constants, the same stream gives the kernel's results.
    """
    case = unary("SOFTMAX", "int16", ("SoftmaxOptions", {"beta": 1.0}), Q(2.0**-11),
                 Q(1 / 32768), (1, 20))  # fmt: skip
    (x,) = random_inputs([((1, 20), np.int16)], 500)
    (kernel,) = CpuKernels(case.build()).run([x])
    (step,) = mizzen.compile(case.build(), accelerator, prove="off", target_options=VELA).steps
    assert isinstance(step, NpuStep)
    constants = step.program.constants[0].tobytes()
    compiled, other = (segments(reciprocals(kind)).tobytes() for kind in (np.float64, np.float32))
    assert constants.count(compiled) == 1
    assert (reciprocals(np.float64) != reciprocals(np.float32)).sum() == 2

    def outputs(program: Program) -> Array:
        return Simulator(program).run([x], len(x)).outputs[0].reshape(kernel.shape)

    difference = np.abs(outputs(step.program).astype(int) - kernel)
    assert difference.max() == 1
    assert difference.mean() < 1e-2
    patched = np.frombuffer(constants.replace(compiled, other), np.uint8)
    same = replace(step.program, constants={0: patched})
    np.testing.assert_array_equal(outputs(same), kernel)
