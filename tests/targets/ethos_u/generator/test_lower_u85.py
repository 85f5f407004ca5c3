"""Rules for U85 compute what those for U55 do, which are compared with the kernels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mizzen.conformance.cases import cases
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Bytes,
    MatrixProduct,
    Pooling,
    Sequence,
)
from mizzen.targets.ethos_u.machine.commands_values import Arch, Layout

from .interpreter import interpret, random_inputs
from .rule_networks import NETWORKS

SEEDS = range(4)

MOST = 1 << 20
"""What integers of 32 bits are at most, so that their sums have as many."""


def lowered(data: bytes, arch: Arch) -> Sequence | None:
    """Return what rules make of a network; None if they refuse it."""
    made = lower_with_state(read(data, "network"))
    graph = made.graph
    unsigned = [row for row in (*graph.inputs, *graph.outputs) if made.is_unsigned(row)]
    return lower(graph, unsigned, arch).sequence


def assert_same(data: bytes, limit: int | None = None) -> Sequence | None:
    """Compare the sequences for both; return that for U85.

    limit  of numbers of more than 8 bits
    """
    one, other = lowered(data, Arch.U55), lowered(data, Arch.U85)
    if one is None or other is None:
        assert one is None, "U85 takes what U55 does"
        return other
    assert_in_bricks(other)
    inputs = [
        row.clip(-limit, limit) if limit and row.dtype.itemsize > 1 else row
        for row in random_inputs(one)
    ]
    for wanted, given in zip(interpret(one, inputs), interpret(other, inputs), strict=True):
        assert np.array_equal(wanted, given)
    return other


def assert_in_bricks(sequence: Sequence) -> None:
    """Check that second operands of products are where the machine takes them."""
    for operation in sequence.operations:
        if isinstance(operation, MatrixProduct):
            view = operation.ifm2.view
            tensor = sequence.tensors[view.tensor]
            layout = view.layout if isinstance(view, Bytes) else tensor.layout
            assert layout is Layout.NHCWB16
            assert view.shape[0] == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_random_networks_are_the_same(name: str) -> None:
    for seed in SEEDS:
        assert_same(NETWORKS[name](seed))


@pytest.mark.parametrize("operator", sorted({case.operator for case in cases()}))
def test_operators_are_the_same(operator: str) -> None:
    for case in cases():
        if case.operator == operator:
            assert_same(case.build(), case.limit or MOST)


def test_a_product_is_one_operation_for_each_matrix() -> None:
    sequence = assert_same(NETWORKS["products"](0))
    assert sequence is not None
    kinds = Counter(type(row) for row in sequence.operations)
    assert kinds[MatrixProduct] + kinds[Pooling] == len(sequence.operations)


def test_what_is_transposed_is_one_operation() -> None:
    (case,) = (row for row in cases() if row.name == "transpose_0321_int8")
    sequence = assert_same(case.build())
    assert sequence is not None
    (operation,) = sequence.operations
    assert isinstance(operation, Pooling)
    assert operation.order != AS_COMPUTED
