"""Transpositions in parts: small enough for the compiler, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.graph import DType, Graph, TensorType
from mizzen.ops import Builder
from mizzen.reference import evaluate
from mizzen.targets.ethos_u.vela.transpositions import AXIS_MAXIMUM, cut_transpositions

DEEP = AXIS_MAXIMUM

CASES = {
    "long rows": ((DEEP + 1, 2), (1, 0), 2),
    "as long as can be": ((DEEP, 2), (1, 0), 1),
    "three axes as they are": ((1, 257, 2, 257), (0, 2, 3, 1), 1),
    "two that become one": ((2, 2, 257, 257), (0, 2, 3, 1), 2),
    "two that do not": ((2, 257, 2, 257), (0, 3, 2, 1), 1),
    "with one element between": ((2, 257, 1, 257), (1, 2, 3, 0), 2),
    "several pieces": ((3, 7, 300, 300, 2), (4, 0, 2, 3, 1), 2),
    "many matrices": ((DEEP + 1, 3, 2), (0, 2, 1), 0),
    "of few rows": ((DEEP + 1, 2, 3), (0, 2, 1), 0),
    "nothing turned": ((1, DEEP + 1, 3), (1, 0, 2), 1),
}


def _transposition(shape: tuple[int, ...], perms: tuple[int, ...]) -> Graph:
    graph = Graph()
    value = graph.add_input(TensorType(shape, DType.INT8))
    graph.set_outputs([Builder(graph)("TRANSPOSE", value, perms=perms)])
    return graph


@pytest.mark.parametrize("name", CASES)
def test_long_axes_are_cut(name: str) -> None:
    shape, perms, pieces = CASES[name]
    graph = _transposition(shape, perms)
    graph.outputs[0].name = "kept"
    cut_transpositions(graph)
    kinds = [row.kind for row in graph]
    assert kinds.count("TRANSPOSE") == pieces
    assert kinds.count("CONCAT") == (pieces != 1)
    assert graph.outputs[0].name == "kept"
    given = np.random.default_rng(0).integers(-128, 128, shape).astype(DType.INT8.numpy)
    (found,) = evaluate(graph, [given])
    assert np.array_equal(found, given.transpose(perms))


def test_pieces_that_are_too_long_are_cut_again() -> None:
    graph = _transposition((3, DEEP // 2, 3, DEEP // 2, 1), (2, 3, 4, 0, 1))
    cut_transpositions(graph)
    shapes = [row.result.shape for row in graph if row.kind == "TRANSPOSE"]
    assert len(shapes) == 4
    assert all(max(shape) <= DEEP for shape in shapes)
