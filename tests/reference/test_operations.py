"""Single operations: what TOSA leaves open is refused, and corners that chance seldom meets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.graph import Array, DType, Graph, NanMode, RoundingMode, TensorType
from mizzen.ops import Builder
from mizzen.reference import evaluate
from mizzen.reference.kernel import rounded

I4, I8, I16, I32, I48 = DType.INT4, DType.INT8, DType.INT16, DType.INT32, DType.INT48
F16, BF16, F32 = DType.FP16, DType.BF16, DType.FP32
NAN, INFINITY = float("nan"), float("inf")

Typed = tuple[Any, DType]
"""Elements as nested lists, and their type."""


def compute(kind: str, *inputs: Typed, constants: tuple[Typed, ...] = (), **attributes: Any) -> Any:
    """Return the result of one operation as nested lists."""
    graph = Graph()
    builder = Builder(graph)
    operands = [graph.add_input(TensorType(np.shape(each), dtype)) for each, dtype in inputs]
    operands += [
        builder.shape(each) if dtype is DType.SHAPE else builder.constant(each, dtype)
        for each, dtype in constants
    ]
    graph.set_outputs([builder(kind, *operands, **attributes)])
    return evaluate(graph, [np.array(each, dtype.numpy) for each, dtype in inputs])[0].tolist()


def refused(kind: str, *inputs: Typed, **rest: Any) -> str:
    with pytest.raises(MizzenError) as caught:
        compute(kind, *inputs, **rest)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "E822"
    assert diagnostic.rule == f"TOSA 1.0, REQUIRE of {kind}"
    return diagnostic.message


LEAST, GREATEST = -(2**31), 2**31 - 1


@pytest.mark.parametrize(("kind", "inputs", "rest", "message"), [
    ("SUB", (([LEAST], I32), ([1], I32)), {},
     "must give i32, from -2147483648 to 2147483647, not -2147483649"),
    ("ABS", (([LEAST], I32),), {},
     "must give i32, from -2147483648 to 2147483647, not 2147483648"),
    ("INTDIV", (([5], I32), ([0], I32)), {}, "the divisor must not be 0"),
    ("INTDIV", (([LEAST], I32), ([-1], I32)), {},
     "must give i32, from -2147483648 to 2147483647, not 2147483648"),
    ("ARITHMETIC_RIGHT_SHIFT", (([1], I16), ([16], I16)), {"round": False},
     "shifts must be from 0 to 15, and one is 16"),
    ("LOGICAL_LEFT_SHIFT", (([1], I8), ([-1], I8)), {},
     "shifts must be from 0 to 7, and one is -1"),
    ("POW", (([-2.0], F32), ([2.0], F32)), {},
     "the base must be positive, or 0 with a positive exponent"),
    ("POW", (([0.0], F32), ([0.0], F32)), {},
     "the base must be positive, or 0 with a positive exponent"),
    ("POW", (([2.0], F32), ([NAN], F32)), {}, "base and exponent must be finite"),
    ("REDUCE_SUM", (([GREATEST, 1, -5], I32),), {"axis": 0},
     "must give i32, from -2147483648 to 2147483647, not 2147483648"),
    ("GATHER", (([[[1], [2]]], I8), ([[2]], I32)), {}, "indices must be from 0 to 1, and one is 2"),
    ("SCATTER", (([[[1], [2]]], I8), ([[1, 1]], I32), ([[[3], [4]]], I8)), {},
     "indices must differ, and 1 is there twice"),
    ("CAST", (([NAN], F32),), {"dtype": I8}, "a number must be cast to i8, not NaN"),
    ("MUL", (([2**30], I32), ([16], I32)), {"constants": (([3], I8),)},
     "must give i32, from -2147483648 to 2147483647, not 2147483648"),
])  # fmt: skip
def test_what_tosa_leaves_open_is_refused(
    kind: str, inputs: tuple[Typed, ...], rest: dict[str, Any], message: str
) -> None:
    assert refused(kind, *inputs, **rest) == f"{kind}: {message}"


@pytest.mark.parametrize(("data", "weight", "bias", "sums"), [
    (I8, I8, I32, (2**31 - 1, 2**31)),
    (I8, I4, I32, (-(2**31), -(2**31) - 1)),
    (I16, I8, I48, (2**47 - 1, 2**47)),
])  # fmt: skip
def test_a_sum_and_its_bias_must_not_overflow(
    data: DType, weight: DType, bias: DType, sums: tuple[int, int]
) -> None:
    def sum_of(total: int) -> Any:
        product = 7 if total > 0 else -7
        return compute(
            "CONV2D",
            ([[[[product]]]], data),
            constants=(
                ([[[[1]]]], weight),
                ([total - product], bias),
                ([0], data),
                ([0], weight),
            ),
            pad=(0, 0, 0, 0),
            stride=(1, 1),
        )

    fits, overflows = sums
    assert sum_of(fits) == [[[[fits]]]]
    with pytest.raises(MizzenError, match=f"not {overflows}"):
        sum_of(overflows)


def test_many_products_are_added_up_exactly() -> None:
    """More than float32 holds exactly, in one dot product and over several blocks of BLAS."""
    random = np.random.default_rng(1)
    a, b = (random.integers(-(2**15), 2**15, shape) for shape in ((1, 3, 5000), (1, 5000, 2)))
    result = compute("MATMUL", (a, I16), (b, I16), constants=(([0], I16), ([0], I16)))
    assert result == (a @ b).tolist()


def scale(values: list[int], mode: RoundingMode, multiplier: int, shift: int) -> list[int]:
    zero = ([0], I32)
    constants = (([multiplier], I32), ([shift], I8), zero, zero)
    return compute(
        "RESCALE",
        (values, I32),
        constants=constants,
        scale32=True,
        rounding_mode=mode,
        per_channel=False,
    )


HALVES = [-5, -3, -2, -1, 0, 1, 2, 3, 5]


def test_rescaling_rounds_ties_up() -> None:
    expected = [-2, -1, -1, 0, 0, 1, 1, 2, 3]
    assert scale(HALVES, RoundingMode.SINGLE_ROUND, 1 << 30, 31) == expected


def test_inexact_rounding_is_single_rounding() -> None:
    inexact = scale(HALVES, RoundingMode.INEXACT_ROUND, 1 << 30, 31)
    assert inexact == scale(HALVES, RoundingMode.SINGLE_ROUND, 1 << 30, 31)


def test_double_rounding_goes_away_from_zero_in_its_first_step() -> None:
    # 1/4 of 1 is 0.25, which the first step makes 0.5 with shift 32, and the second 1.
    assert scale([1, -1], RoundingMode.SINGLE_ROUND, 1 << 30, 32) == [0, 0]
    assert scale([1, -1], RoundingMode.DOUBLE_ROUND, 1 << 30, 32) == [1, 0]
    assert scale([2, -2], RoundingMode.DOUBLE_ROUND, 1 << 30, 32) == [1, -1]


def test_values_must_be_small_for_a_small_shift() -> None:
    assert scale([-2, 1], RoundingMode.SINGLE_ROUND, 1 << 30, 2) == [-(2**29), 2**28]
    with pytest.raises(MizzenError, match="values must be from -2 to 1, not 2"):
        scale([2], RoundingMode.SINGLE_ROUND, 1 << 30, 2)


def test_each_channel_has_its_own_scale_and_bound() -> None:
    def per_channel(values: list[list[int]]) -> Any:
        zero = ([0], I32)
        return compute(
            "RESCALE",
            (values, I32),
            constants=(([1 << 30, 1 << 30], I32), ([30, 4], I8), zero, zero),
            scale32=True,
            rounding_mode=RoundingMode.SINGLE_ROUND,
            per_channel=True,
        )

    assert per_channel([[9, 7], [1000, -8]]) == [[9, 7 << 26], [1000, -(1 << 29)]]
    with pytest.raises(MizzenError, match="values must be from -8 to 7, not 8"):
        per_channel([[9, 8]])


def test_unsigned_values_are_the_bits_of_signed_ones() -> None:
    result = compute(
        "RESCALE",
        ([-1, 0, 127], I8),
        constants=(([1 << 30], I32), ([30], I8), ([-128], I8), ([0], I16)),
        scale32=True,
        rounding_mode=RoundingMode.SINGLE_ROUND,
        per_channel=False,
        input_unsigned=True,
    )
    assert result == [255 - 128, 0 - 128, 127 - 128]


def test_a_product_and_its_rounding_must_fit_64_bits() -> None:
    """TOSA adds them in 64 bits, signed; 2**62 + 2**62 is too much, and the model gives -1."""
    shift = (([63], I8),)
    numbers = ([LEAST], I32)
    assert compute("MUL", numbers, ([LEAST + 1], I32), constants=shift) == [0]
    assert refused("MUL", numbers, numbers, constants=shift) == (
        "MUL: products must leave room in 64 bits to round by 63 bits"
    )
    assert compute("MUL", numbers, numbers, constants=(([62], I8),)) == [1]


def test_a_table_of_i16_is_interpolated() -> None:
    entries = np.arange(513) * 3 - 700
    values = [-32768, -32767, 0, 127, 128, 32767]
    result = compute("TABLE", (values, I16), constants=((entries, I16),))
    assert result == [3 * (value + 32768) - 700 * 128 for value in values]


def test_a_table_must_not_rise_by_more_than_i16() -> None:
    entries = np.where(np.arange(513) < 100, -20000, 20000)
    place = (99 << 7) - 32768
    with pytest.raises(MizzenError, match="must give i16, from -32768 to 32767, not 40000"):
        compute("TABLE", ([place], I16), constants=((entries, I16),))
    assert compute("TABLE", ([place + 128], I16), constants=((entries, I16),)) == [20000 << 7]


@pytest.mark.parametrize(("mode", "greatest", "place", "clamped"), [
    (NanMode.PROPAGATE, NAN, 1, NAN),
    (NanMode.IGNORE, 3.0, 2, -1.0),
])  # fmt: skip
def test_nan_modes(mode: NanMode, greatest: float, place: int, clamped: float) -> None:
    values = ([1.0, NAN, 3.0], F32)
    reduced = compute("REDUCE_MAX", values, axis=0, nan_mode=mode)
    np.testing.assert_array_equal(reduced, [greatest])
    assert compute("ARGMAX", values, axis=0, nan_mode=mode) == place
    result = compute("CLAMP", values, min_val=-1.0, max_val=2.0, nan_mode=mode)
    np.testing.assert_array_equal(result, [1.0, clamped, 2.0])
    pairs = compute("MAXIMUM", ([NAN, 1.0], F32), ([2.0, NAN], F32), nan_mode=mode)
    other = NAN if mode is NanMode.PROPAGATE else 0.0
    np.testing.assert_array_equal(pairs, [2.0 + other, 1.0 + other])


def test_a_place_that_is_no_number_is_none() -> None:
    values = ([NAN, -INFINITY, NAN], F32)
    assert compute("ARGMAX", values, axis=0, nan_mode=NanMode.IGNORE) == 1


UNIT = 2.0**-7  # between 1 and 2, numbers of bf16 are that far apart


@pytest.mark.parametrize(("exact", "nearest"), [
    (1 + UNIT / 2, 1.0),
    (1 + 3 * UNIT / 2, 1 + 2 * UNIT),
    # Rounded to float32 first, these would be ties, and go the wrong way.
    (1 + UNIT / 2 + 2.0**-40, 1 + UNIT),
    (1 + 3 * UNIT / 2 - 2.0**-40, 1 + UNIT),
    (-1 - UNIT / 2 - 2.0**-40, -1 - UNIT),
    (2.0**-133 * 1.5, 2.0**-132),
    (2.0**-134, 0.0),
    (2.0**128 - 2.0**119, INFINITY),
    (2.0**128 - 2.0**119 - 2.0**80, 2.0**128 - 2.0**120),
    (-INFINITY, -INFINITY),
])  # fmt: skip
def test_bf16_is_rounded_once(exact: float, nearest: float) -> None:
    assert rounded(np.array([exact]), BF16).tolist() == [nearest]


def test_every_nan_becomes_a_nan_of_bf16() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32)
    assert np.isnan(rounded(bits.view(np.float32), BF16)).all()


def test_an_average_is_of_what_lies_within_the_image() -> None:
    image: Array = np.arange(4).reshape(1, 2, 2, 1) * 10 + 5
    zero = ([0], I8)
    pooled = compute(
        "AVG_POOL2D",
        (image, I8),
        constants=(zero, zero),
        kernel=(2, 2),
        stride=(1, 1),
        pad=(1, 0, 1, 0),
    )
    # The corner has one number, the edges two, the middle four; halves go up.
    assert pooled == [[[[5], [10]], [[15], [20]]]]


def test_a_window_without_numbers_has_no_greatest() -> None:
    """Padding is no number either."""
    result = compute(
        "MAX_POOL2D",
        ([[[[NAN], [NAN], [1.0]]]], F32),
        kernel=(1, 2),
        stride=(1, 1),
        pad=(0, 0, 1, 0),
        nan_mode=NanMode.IGNORE,
    )
    np.testing.assert_array_equal(result, [[[[NAN], [NAN], [1.0]]]])
