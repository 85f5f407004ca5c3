"""Changing one rule of Ethos-U85 must show: a network then differs from the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.conformance.oracles import expected
from mizzen.conformance.suite import random_inputs
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim import elementwise_kernel as elementwise
from mizzen.targets.ethos_u.judge.sim import pooling_kernel as pooling
from mizzen.targets.ethos_u.judge.sim import registers_u85, weights_u85
from mizzen.targets.ethos_u.judge.sim.operations import Activation, Binary, FeatureMap
from mizzen.targets.ethos_u.judge.sim.registers_u85 import RegistersU85
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS, Rounding, Scale
from mizzen.targets.ethos_u.judge.sim.weights_u85 import LayoutU85

from .cases_u85 import cases_u85

Array = npt.NDArray[Any]
CASES = {case.name: case for case in [*cases(), *cases_u85()]}
Mutation = Callable[[pytest.MonkeyPatch], None]


def rounding(mode: str, instead: Rounding) -> Mutation:
    return lambda patch: patch.setitem(registers_u85.ROUNDING, mode, instead)


def late_rounding(patch: pytest.MonkeyPatch) -> None:
    original = RegistersU85._operand_scale

    def late(self: RegistersU85, prefix: str, mode: Binary | None = None) -> Scale | None:
        scale = original(self, prefix, mode)
        return scale and replace(scale, doubling_bit=DOUBLING_BITS)

    patch.setattr(RegistersU85, "_operand_scale", late)


def saturation(patch: pytest.MonkeyPatch) -> None:
    original = RegistersU85._activation

    def clipped(self: RegistersU85, fm: FeatureMap) -> Activation:
        found = original(self, fm)
        assert found.clip is not None
        return replace(found, clip=replace(found.clip, wraps=False))

    patch.setattr(RegistersU85, "_activation", clipped)


def floored_average(patch: pytest.MonkeyPatch) -> None:
    def half_up(sums: Array, counts: Array) -> Array:
        counts = np.maximum(counts, 1)
        return (2 * sums.astype(np.int64) + counts) // (2 * counts)

    patch.setattr(pooling, "divide", half_up)


def ones(patch: pytest.MonkeyPatch) -> None:
    for mode in (Binary.CMP_EQ, Binary.CMP_NE, Binary.CMP_GE, Binary.CMP_GT):
        original = elementwise.BINARY[mode]
        patch.setitem(elementwise.BINARY, mode, lambda a, b, out, f=original: -f(a, b, out))


def straight_rows(patch: pytest.MonkeyPatch) -> None:
    def straight(layout: LayoutU85, rows: range, columns: range) -> Iterator[tuple[int, int]]:
        yield from ((y, x) for y in rows for x in columns)

    patch.setattr(weights_u85, "_elements", straight)


def no_gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LayoutU85, "gap_elements", 0)


CONV = "conv_1x7x9x5_o11_k3x3_s1x1_d1x1_same_int8"
DEPTHWISE = "dw_1x16x16x5_m1_k9x10_s1x3_d1x1_same_int8"
MUTATIONS: dict[str, tuple[Mutation, str]] = {
    "double rounding is natural": (rounding("DOUBLE_SYMMETRIC", Rounding.NATURAL), CONV),
    "natural rounding truncates": (
        rounding("NATURAL", Rounding.TRUNCATE),
        "conv_1x7x7x6_o9_k3x3_s1x1_d1x1_same_int16",
    ),
    "symmetric rounding is natural": (
        rounding("SYMMETRIC", Rounding.NATURAL),
        "resize_bilinear_5x7_20x28_half_int8",
    ),
    "operands are rounded late": (late_rounding, "add_1x5x6x7_1x5x6x7_int8"),
    "results without a range saturate": (saturation, "cast_int32_int8"),
    "ties of averages are rounded up": (
        floored_average,
        "average_pool_2d_1x5x6x20_k3x2_s1x1_d1x1_same_int8",
    ),
    "comparisons give one": (ones, "select_v2_int8"),
    "kernel rows are walked in one direction": (straight_rows, CONV),
}


def differences(case: Case, accelerator: str) -> int:
    data = case.build()
    artifact = mizzen.compile(data, accelerator, prove="off", target_options={"generator": "vela"})
    inputs = random_inputs([(tensor.shape, tensor.dtype) for tensor in artifact.inputs], 64)
    result = artifact.run(*inputs)
    assert isinstance(result, np.ndarray)
    (oracle,), _ = expected(case, data, inputs)
    return int((result.reshape(oracle.shape) != oracle).sum())


@pytest.fixture(autouse=True)
def _orders() -> Iterator[None]:
    """Orders of weights are remembered: forget those of other rules."""
    weights_u85.positions.cache_clear()
    yield
    weights_u85.positions.cache_clear()


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_shows(monkeypatch: pytest.MonkeyPatch, mutation: str) -> None:
    mutate, name = MUTATIONS[mutation]
    assert differences(CASES[name], "ethos-u85-256") == 0
    weights_u85.positions.cache_clear()
    mutate(monkeypatch)
    assert differences(CASES[name], "ethos-u85-256") > 0


def test_natural_rounding_is_not_double(
    monkeypatch: pytest.MonkeyPatch, model_file: Callable[[str], Path]
) -> None:
    """Only a large sum with a shift of over 31 bits tells them apart: speech has one."""
    data = model_file("kws_ref_model.tflite").read_bytes()
    case = Case("kws_ref_model", "MEAN", "int8", lambda: data)
    assert differences(case, "ethos-u85-256") == 0
    rounding("NATURAL", Rounding.DOUBLE)(monkeypatch)
    assert differences(case, "ethos-u85-256") > 0


@pytest.mark.parametrize("accelerator", ["ethos-u85-512", "ethos-u85-2048"])
def test_weights_of_depthwise_kernels_have_gaps(
    monkeypatch: pytest.MonkeyPatch, accelerator: str
) -> None:
    """Without them the weights that are left over lie where padding should be."""
    assert differences(CASES[DEPTHWISE], accelerator) == 0
    weights_u85.positions.cache_clear()
    no_gap(monkeypatch)
    with pytest.raises(MizzenError, match="E622"):
        differences(CASES[DEPTHWISE], accelerator)
