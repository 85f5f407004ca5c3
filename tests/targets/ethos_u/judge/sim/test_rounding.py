"""Scaling against the definitions of the rounding modes, in unbounded integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim.rounding import Rounding, scaling


def doubling_high_mul(a: int, b: int) -> int:
    """gemmlowp: the high half of 2ab, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def divide_by_power_of_two(x: int, exponent: int) -> int:
    """gemmlowp: rounded half away from zero."""
    quotient, remainder = divmod(abs(x), 1 << exponent)
    rounded = quotient + (2 * remainder >= 1 << exponent)
    return rounded if x >= 0 else -rounded


def half_up(x: int, shift: int) -> int:
    return x if shift == 0 else (x >> (shift - 1)) + 1 >> 1


def expected(v: int, multiplier: int, shift: int, rounding: Rounding) -> int:
    product = v * multiplier
    match rounding:
        case Rounding.SYMMETRIC:
            return divide_by_power_of_two(product, shift)
        case Rounding.FLOOR:
            return product >> shift
        case Rounding.DOUBLE | Rounding.ASYMMETRIC if shift > 31:
            return divide_by_power_of_two(doubling_high_mul(v, multiplier), shift - 31)
        case Rounding.DOUBLE | Rounding.ASYMMETRIC | Rounding.NATURAL:
            return half_up(product, shift)
        case Rounding.TRUNCATE:
            magnitude = abs(product) >> shift
            return magnitude if product >= 0 else -magnitude


values = st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=8)
multipliers = st.integers(0, (1 << 31) - 1)


@given(values, multipliers, st.integers(0, 62), st.sampled_from(Rounding))
def test_scaling_is_the_definition(
    values: list[int], multiplier: int, shift: int, rounding: Rounding
) -> None:
    prepared = scaling(multiplier, shift, rounding)
    inside = [v for v in values if abs(v) <= prepared.bound]
    result = prepared.apply(np.array(inside, np.int64))
    assert result.tolist() == [expected(v, multiplier, shift, rounding) for v in inside]


@given(
    st.lists(
        st.tuples(
            st.integers(-(1 << 24), 1 << 24),
            multipliers,
            st.integers(0, 62),
            st.integers(-(1 << 28), 1 << 28),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(Rounding),
)
def test_channels_are_independent(
    channels: list[tuple[int, int, int, int]], rounding: Rounding
) -> None:
    v, multiplier, shift, bias = (
        np.array(column, np.int64) for column in zip(*channels, strict=True)
    )
    prepared = scaling(multiplier, shift, rounding, bias)
    result = prepared.apply(v[None, :].copy())
    assert result[0].tolist() == [
        expected(v_ + bias_, multiplier_, shift_, rounding)
        for v_, multiplier_, shift_, bias_ in channels
    ]


def test_ties_tell_the_modes_apart() -> None:
    halves = np.array([-3, -1, 1, 3], np.int64)  # in units of one half
    by_mode = {mode: scaling(1 << 31, 32, mode).apply(halves.copy()).tolist() for mode in Rounding}
    assert by_mode == {
        Rounding.DOUBLE: [-2, -1, 1, 2],
        Rounding.NATURAL: [-1, 0, 1, 2],
        Rounding.TRUNCATE: [-1, 0, 0, 1],
        Rounding.SYMMETRIC: [-2, -1, 1, 2],
        Rounding.FLOOR: [-2, -1, 0, 1],
        Rounding.ASYMMETRIC: [-2, -1, 1, 2],
    }


@given(values, multipliers, st.integers(0, 62), st.integers(0, 31))
def test_the_first_of_two_roundings_may_come_early(
    values: list[int], multiplier: int, shift: int, early: int
) -> None:
    """As if the value were shifted left by as many bits, then scaled with so much more shift."""
    scale = scaling(multiplier, shift, Rounding.DOUBLE, 0, 31 - early)
    inside = [v for v in values if abs(v) <= scale.bound]
    result = scale.apply(np.array(inside, np.int64))
    assert result.tolist() == [
        expected(v << early, multiplier, shift + early, Rounding.DOUBLE) for v in inside
    ]


def test_a_bias_beyond_64_bits_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        scaling((1 << 31) - 1, 31, Rounding.DOUBLE, 1 << 39)
    assert str(caught.value) == (
        "error[E602]: a scaled bias must fit 64 bits, not 549755813888 * 2147483647\n"
        "  help this is beyond what the simulator computes exactly; please report the network"
    )
