"""Real factors as multipliers and shifts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.emit.pass_commands import accumulator_scale, ple_scale

# Above 2 to the -32 a multiplier has all of its 16 bits; the shift has reached its limit there.
FACTORS = st.floats(2.0**-32, 65535.0, width=32)


@given(FACTORS)
def test_accumulator_scale_is_the_nearest_of_16_bits(factor: float) -> None:
    multiplier, shift = accumulator_scale(factor)
    assert 1 << 15 <= multiplier < 1 << 16
    assert 0 <= shift <= 47
    assert abs(math.ldexp(factor, shift) - multiplier) <= 0.5


@given(FACTORS)
def test_ple_scale_is_cut_off(factor: float) -> None:
    multiplier, shift = ple_scale(factor)
    if factor < 2.0**-17:
        assert (multiplier, shift) == (0, 0)
    elif factor < 65536:
        assert 0 <= math.ldexp(factor, shift) - multiplier < 1


@pytest.mark.parametrize(
    ("factor", "scale"),
    [
        (0.0, (0, 0)),
        (1.0, (1 << 15, 15)),
        (0.5, (1 << 15, 16)),
        # Rounds up to a power of two, which has one bit more: halved.
        (1 - 2.0**-20, (1 << 15, 15)),
        # The shift is at its limit: fewer bits.
        (2.0**-40, (1 << 7, 47)),
    ],
)
def test_accumulator_scale(factor: float, scale: tuple[int, int]) -> None:
    assert accumulator_scale(factor) == scale
