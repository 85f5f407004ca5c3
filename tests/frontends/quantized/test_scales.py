"""Scales as multiplier and shift, and what a RESCALE is added for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.frontends.quantized.scales import (
    SHIFT_MAX,
    SHIFT_MIN,
    as_target,
    clamped,
    multiplier_of,
    requantize,
)
from mizzen.frontends.quantized.terms import Real, Target
from mizzen.graph import DType, Graph, Quantization, TensorType, Value
from mizzen.ops import Builder
from mizzen.reference import evaluate


def values(dtype: DType = DType.INT8, scale: float = 0.5) -> tuple[Builder, Value]:
    graph = Graph()
    type = TensorType((1, 4), dtype).quantized(Quantization((scale,), (3,)))
    return Builder(graph), graph.add_input(type, "x")


def target(scale: float, zero_point: int = 3, low: int = -128) -> Target:
    return Target(DType.INT8, Quantization((scale,), (zero_point,)), low, 127)


@given(st.floats(1e-8, 1e3), st.sampled_from([15, 31]))
def test_a_multiplier_is_the_nearest_of_its_bits(scale: float, bits: int) -> None:
    multiplier, shift = multiplier_of(scale, bits)
    assert SHIFT_MIN <= shift <= SHIFT_MAX
    assert 0 < multiplier < 1 << bits
    if multiplier >= 1 << (bits - 1):
        error = abs(Fraction(multiplier, 1 << shift) - Fraction(scale))
        assert error <= Fraction(1, 1 << (shift + 1))


def test_scales_beyond_all_shifts_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond what RESCALE can do"):
        multiplier_of(2.0**40)


def test_the_same_scale_needs_no_operation() -> None:
    b, x = values()
    assert as_target(b, Real(x), target(0.5)) is x


def test_another_scale_is_one_rounding() -> None:
    b, x = values()
    b.graph.set_outputs([requantize(b, x, 0.5, target(0.25, -1), 3)])
    assert [row.kind for row in b.graph if "CONST" not in row.kind] == ["RESCALE"]
    (found,) = evaluate(b.graph, [np.array([[3, 4, -128, 100]], np.int8)])
    assert found.tolist() == [[-1, 1, -128, 127]]


def test_bounds_are_a_clamp_but_for_those_of_the_type() -> None:
    b, x = values()
    assert clamped(b, x, target(0.5)) is x
    narrow = clamped(b, x, target(0.5, low=-100))
    assert narrow.producer is not None
    assert narrow.producer.kind == "CLAMP"
    wide, y = values(DType.INT16)
    symmetric = Target(DType.INT16, Quantization((0.5,), (0,)), -32767, 32767)
    assert clamped(wide, y, symmetric) is y
