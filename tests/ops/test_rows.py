"""Every combination of element types of every operation: built, verified, printed, read back."""

from __future__ import annotations

import pytest

from mizzen.graph import Blobs, parse, print_graph
from mizzen.ops import Definition, Row, Support, verify

from .smallest import ROWS, graph_of


def named(value: object) -> str:
    if isinstance(value, Definition):
        return value.kind
    assert isinstance(value, Row)
    fixed = [str(getattr(each, "value", each)) for each in value.attributes.values()]
    return "-".join([*(dtype.value for dtype in value.types.values()), *fixed])


@pytest.mark.parametrize(("definition", "row"), ROWS, ids=named)
def test_row(definition: Definition, row: Row) -> None:
    graph = graph_of(definition, row)
    assert verify(graph) == []
    for support in row.supports:
        # Constants of all profiles may be needed besides: zero points have the types of tensors.
        codes = [each.code for each in verify(graph, [support]) if definition.kind in each.message]
        assert codes == []
    others = set(Support) - set(row.supports)
    refused = [each for each in verify(graph, others) if each.message.startswith(definition.kind)]
    assert [each.code for each in refused] == ["E809"]
    text = print_graph(graph, Blobs.APPENDED)
    again = parse(text)
    assert print_graph(again, Blobs.APPENDED) == text
    assert verify(again) == []
    types = [row.types[variable] for _, variable in definition.results]
    assert [output.dtype for output in graph.outputs] == types
