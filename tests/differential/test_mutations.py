"""Changing one rule of the machine must show: a network then differs from the kernels.

Without this, a test that passes would prove little about the rules it passes through.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mizzen
from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.conformance.oracles import expected
from mizzen.conformance.suite import random_inputs
from mizzen.targets.ethos_u.judge.sim import pooling_kernel as pooling
from mizzen.targets.ethos_u.judge.sim import registers_u55
from mizzen.targets.ethos_u.judge.sim.operations import Clip, Kernel
from mizzen.targets.ethos_u.judge.sim.registers_u55 import RegistersU55
from mizzen.targets.ethos_u.judge.sim.rounding import Rounding

CASES = {case.name: case for case in cases()}
Mutation = Callable[[pytest.MonkeyPatch], None]


def rounding(mode: str, instead: Rounding) -> Mutation:
    return lambda patch: patch.setitem(registers_u55.ROUNDING, mode, instead)


def operand_order(patch: pytest.MonkeyPatch) -> None:
    original = RegistersU55._second_operand

    def swapped(self: RegistersU55, mode: object, shape: object) -> object:
        operand, reversed_ = original(self, mode, shape)  # pyright: ignore[reportArgumentType] the patched signature is the original's
        return operand, not reversed_

    patch.setattr(RegistersU55, "_second_operand", swapped)


def padded_average(patch: pytest.MonkeyPatch) -> None:
    def all_counted(kernel: Kernel, height: int, width: int) -> np.ndarray:
        return np.full((height, width, 1), kernel.height * kernel.width)

    patch.setattr(pooling, "window_counts", all_counted)


def clip_of_32_bits(patch: pytest.MonkeyPatch) -> None:
    original = registers_u55.clip_of

    def always(dtype: object, forced: object, zero_point: int, low: int, high: int) -> Clip:
        found = original(dtype, forced, zero_point, low, high)  # pyright: ignore[reportArgumentType] the patched signature is the original's
        return found or Clip(zero_point, low, high, np.dtype(np.int16))

    patch.setattr(registers_u55, "clip_of", always)


def operand_left_shift(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(registers_u55.LEFT_SHIFT, 1, 15)


CONV = "conv_1x7x9x5_o11_k3x3_s1x1_d1x1_same_int8"
MUTATIONS: dict[str, tuple[Mutation, str]] = {
    "double rounding is natural": (rounding("DBL", Rounding.NATURAL), CONV),
    "double rounding truncates": (rounding("DBL", Rounding.TRUNCATE), CONV),
    "natural rounding truncates": (
        rounding("NATURAL", Rounding.TRUNCATE),
        "conv_1x7x7x6_o9_k3x3_s1x1_d1x1_same_int16",
    ),
    "operands are swapped": (operand_order, "sub_1x1x6x7_1x5x6x7_int8"),
    "a padded average counts its padding": (
        padded_average,
        "average_pool_2d_1x5x6x20_k3x2_s1x1_d1x1_same_int8",
    ),
    "32-bit results are clipped": (clip_of_32_bits, "softmax_1x12_int8"),
    "operands of ADD have fewer bits": (operand_left_shift, "add_1x5x6x7_1x5x6x7_int8"),
}


def differences(case: Case) -> int:
    data = case.build()
    artifact = mizzen.compile(data, "ethos-u55-128", allow_inexact=True, prove="off")
    inputs = random_inputs([(tensor.shape, tensor.dtype) for tensor in artifact.inputs], 64)
    result = artifact.run(*inputs)
    assert isinstance(result, np.ndarray)
    (oracle,), _ = expected(case, data, inputs)
    return int((result.reshape(oracle.shape) != oracle).sum())


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_shows(monkeypatch: pytest.MonkeyPatch, mutation: str) -> None:
    mutate, name = MUTATIONS[mutation]
    assert differences(CASES[name]) == 0
    mutate(monkeypatch)
    assert differences(CASES[name]) > 0
