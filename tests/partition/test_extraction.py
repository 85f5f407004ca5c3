"""A region's own graph: what it takes and gives, in which order, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Graph, TensorType, Value
from mizzen.ops import Builder
from mizzen.ops.verify import verify
from mizzen.partition import extract

MAP = TensorType((4,), DType.INT32)


@pytest.fixture
def graph() -> Graph:
    """(x, y) -> (x ^ c) & (x ^ c ^ y), and x ^ c; groups 0, 1, 2 in order; c in no group."""
    graph = Graph("whole")
    x, y = graph.add_input(MAP, "x"), graph.add_input(MAP, "y")
    b = Builder(graph, Origin(name="conv1", operator=5), 0)
    first = b("BITWISE_XOR", x, b.constant([1, 2, 4, 8], DType.INT32))
    first.name = "first"
    second = b.at(None, 1)("BITWISE_XOR", first, y)
    third = b.at(None, 2)("BITWISE_AND", second, first)
    graph.set_outputs([third, first])
    return graph


def values(graph: Graph) -> list[Value]:
    """Return the results of the operations that are no constants, in order."""
    return [row.result for row in graph.sorted() if row.kind != "CONST"]


def test_values_at_the_edge_are_inputs_and_outputs_in_order(graph: Graph) -> None:
    first, second, third = values(graph)
    part = extract(graph, [2, 1])
    assert part.inputs == (first, graph.inputs[1])
    assert part.outputs == (third,)
    assert [row.kind for row in part.graph.sorted()] == ["BITWISE_XOR", "BITWISE_AND"]
    assert not verify(part.graph)
    assert second not in part.outputs


def test_an_output_of_the_whole_that_others_use_inside_is_an_output(graph: Graph) -> None:
    first, _, third = values(graph)
    assert extract(graph, [0, 1, 2]).outputs == (first, third)


def test_constants_are_copied_into_the_region_and_share_their_elements(graph: Graph) -> None:
    part = extract(graph, [0])
    assert part.inputs == (graph.inputs[0],)
    (original,) = (row for row in graph if row.kind == "CONST")
    (copy,) = (row for row in part.graph if row.kind == "CONST")
    assert copy is not original
    assert np.shares_memory(copy["values"], original["values"])


def test_names_origins_groups_and_types_are_kept(graph: Graph) -> None:
    part = extract(graph, [0], "part")
    (copy,) = (row for row in part.graph if row.kind == "BITWISE_XOR")
    assert part.graph.name == "part"
    assert [value.name for value in part.graph.inputs] == ["x"]
    assert (copy.result.name, copy.group, copy.result.type) == ("first", 0, MAP)
    assert copy.origin == Origin(name="conv1", operator=5)


def test_the_whole_stays_as_it_was(graph: Graph) -> None:
    before = graph.version, len(graph), [dict(value.uses) for value in values(graph)]
    part = extract(graph, [1])
    part.graph.set_outputs([])
    part.graph.erase_dead()
    assert (graph.version, len(graph), [dict(v.uses) for v in values(graph)]) == before
