"""Sums of 16-bit numbers on Ethos-U85: of 32-bit numbers, and the same."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.ops.reduction import ReduceSum
from mizzen.ops.type_conversion import Rescale
from mizzen.reference import evaluate
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.vela.defects import avoid_defects
from mizzen.targets.ethos_u.vela.sums import TERMS_MAXIMUM

ONE = 30
"""The shift by which a multiplier of 2**30 changes nothing."""


def summed(axis: int = 2, terms: int = 8, shift: int = ONE) -> Graph:
    """Return a sum of 16-bit numbers, rescaled to 16 bits."""
    graph = Graph()
    b = Builder(graph)
    shape = [1, 4, 4]
    shape[axis] = terms
    numbers = graph.add_input(TensorType(tuple(shape), DType.INT16))
    total = b("REDUCE_SUM", rescaled(b, numbers, DType.INT32, shift), axis=axis)
    graph.set_outputs([rescaled(b, total, DType.INT16, 34)])
    return graph


def rescaled(b: Builder, value: Value, dtype: DType, shift: int) -> Value:
    """Return a value times 2**30 over a power of two."""
    zeros = (b.constant([0], each) for each in (value.dtype, dtype))
    factor = (b.constant([1 << 30], DType.INT32), b.constant([shift], DType.INT8))
    single = RoundingMode.SINGLE_ROUND
    return b(
        "RESCALE", value, *factor, *zeros, scale32=True, rounding_mode=single, per_channel=False
    )


def multiplied_before(graph: Graph) -> float:
    """Return what numbers are multiplied by before they are summed."""
    (total,) = (row for row in graph if isinstance(row, ReduceSum))
    rescale = total.operand.producer
    assert isinstance(rescale, Rescale)
    assert rescale.multiplier.constant is not None
    assert rescale.shift.constant is not None
    return float(rescale.multiplier.constant[0]) / (1 << int(rescale.shift.constant[0]))


@pytest.mark.parametrize("axis", [1, 2])
def test_numbers_are_doubled_and_their_sum_is_halved(axis: int) -> None:
    """So the compiler cannot read 16 bits in the sum; the result is the same."""
    graph = summed(axis)
    generator = np.random.default_rng(1)
    inputs = [generator.integers(-(1 << 15), 1 << 15, graph.inputs[0].shape).astype(np.int16)]
    before = evaluate(graph, inputs)
    avoid_defects(graph, Arch.U85)
    assert multiplied_before(graph) == 2
    np.testing.assert_array_equal(evaluate(graph, inputs)[0], before[0])


@pytest.mark.parametrize(
    ("graph", "arch"),
    [
        (summed(), Arch.U55),
        (summed(shift=ONE + 1), Arch.U85),
        (summed(terms=TERMS_MAXIMUM + 1), Arch.U85),
    ],
    ids=["another machine", "rescaled anyway", "too many terms to double"],
)
def test_other_sums_stay_as_they_are(graph: Graph, arch: Arch) -> None:
    before = multiplied_before(graph)
    avoid_defects(graph, arch)
    assert multiplied_before(graph) == before
