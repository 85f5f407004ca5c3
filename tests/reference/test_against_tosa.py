"""The reference against Arm's reference model, for every combination of element types.

Integers are equal, and so is the refusal to give a number. Floating-point numbers are compared
with the model's float64: a number is right if it is the nearest of its type. Both sides compute in
float64, so the model's number may itself be wrong by some of its last bits, see `bound`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.graph import INTEGER_BITS, Array, DType, Value, integer_range
from mizzen.ops import Definition, Row
from mizzen.reference import evaluate

from .cases import ROWS, Case, cases
from .tosa_oracle import OpenResultError, TosaOracle, find

EXAMPLES = 6
MANY_EXAMPLES = 300


@pytest.fixture(scope="module")
def oracle() -> TosaOracle:
    return find()


def named(value: object) -> str:
    if isinstance(value, Definition):
        return value.kind
    assert isinstance(value, Row)
    fixed = [str(getattr(each, "value", each)) for each in value.attributes.values()]
    return "-".join([*(dtype.value for dtype in value.types.values()), *fixed])


OPEN = "E822"
"""What is said where TOSA leaves the result open."""


def ours(case: Case) -> list[Array] | str:
    try:
        return evaluate(case.graph, case.inputs)
    except MizzenError as error:
        return error.diagnostic.code


def theirs(case: Case, oracle: TosaOracle) -> list[Array] | str:
    try:
        results = oracle(case.graph, case.inputs, precise=True)
    except OpenResultError:
        return OPEN
    # The model does not see overflow of i48, and gives numbers beyond it.
    return results if all(map(has, case.graph.outputs, results)) else OPEN


def has(value: Value, array: Array) -> bool:
    """Whether all elements are numbers of the value's type."""
    if value.dtype not in INTEGER_BITS:
        return True
    low, high = integer_range(value.dtype)
    return low <= array.min() and array.max() <= high


@pytest.mark.parametrize(("definition", "row"), ROWS, ids=named)
def test_row(definition: Definition, row: Row, oracle: TosaOracle) -> None:
    holds(definition, row, oracle, EXAMPLES)


@pytest.mark.sweep
@pytest.mark.parametrize(("definition", "row"), ROWS, ids=named)
def test_row_often(definition: Definition, row: Row, oracle: TosaOracle) -> None:
    holds(definition, row, oracle, MANY_EXAMPLES)


def holds(definition: Definition, row: Row, oracle: TosaOracle, examples: int) -> None:
    """Check the property on that many examples."""

    @settings(max_examples=examples)
    @given(st.data())
    def same(data: st.DataObject) -> None:
        case = data.draw(cases(definition, row))
        have, need = ours(case), theirs(case, oracle)
        if isinstance(have, str) or isinstance(need, str):
            assert have == need
            return
        for value, one, other in zip(case.graph.outputs, have, need, strict=True):
            assert one.dtype == value.dtype.numpy
            assert one.shape == value.shape
            if value.dtype.is_float:
                assert_nearest(case, value.dtype, one.astype(np.float64), other)
            else:
                np.testing.assert_array_equal(one, other)

    same()


FRACTION_BITS = {DType.FP16: 10, DType.BF16: 7, DType.FP32: 23}
LEAST_EXPONENT = {DType.FP16: -14, DType.BF16: -126, DType.FP32: -126}
GREATEST_EXPONENT = {DType.FP16: 15, DType.BF16: 127, DType.FP32: 127}


def assert_nearest(case: Case, dtype: DType, have: Array, need: Array) -> None:
    """Check that each number of the type is the one nearest to the exact one, or infinite."""
    finite = np.isfinite(need)
    half = half_step(dtype, np.where(finite, need, 0))
    limit = 2.0 ** (GREATEST_EXPONENT[dtype] + 1)  # the nearest to this and beyond is infinity
    infinite = np.abs(need) >= limit - half_step(dtype, np.asarray(limit / 2))
    np.testing.assert_array_equal(np.isnan(have), np.isnan(need))
    np.testing.assert_array_equal(have[infinite], np.copysign(np.inf, need[infinite]))
    rest = finite & ~infinite
    wrong = np.abs(have[rest] - need[rest]) > (half + bound(case, need))[rest]
    assert not wrong.any(), (have[rest][wrong], need[rest][wrong])


def half_step(dtype: DType, values: Array) -> Array:
    """Return half the distance between the numbers of a type around each value."""
    _, exponent = np.frexp(values)
    least = LEAST_EXPONENT[dtype]
    exponent = np.where(values == 0, least, np.maximum(exponent - 1, least))
    return np.ldexp(1.0, exponent - FRACTION_BITS[dtype] - 1)


def bound(case: Case, need: Array) -> Array:
    """Bound how far two results computed in float64 may be apart.

    A sum of n products in float64 is off by less than (n + 1) * 2**-53 of the sum of the products'
    absolute values; there are two, and twice that again for terms of second order and for the
    functions of the library, which are off by less than 2 units in the last place.
    """
    total = np.abs(need)
    if case.terms > 1:
        factors = [np.abs(each[np.isfinite(each)]).max(initial=1) for each in case.inputs]
        total = total + case.terms * np.prod([float(factor) for factor in factors])
    return np.where(np.isfinite(total), 4 * (case.terms + 1) * 2.0**-53 * total, 0)
