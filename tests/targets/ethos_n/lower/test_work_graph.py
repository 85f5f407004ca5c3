"""Editing the work graph."""

from __future__ import annotations

from mizzen.targets.ethos_n.commands_values import PleOperation
from mizzen.targets.ethos_n.lower.work_graph import (
    Concat,
    Copy,
    Graph,
    Layout,
    LonePle,
    Node,
    Sink,
    Source,
    make_node,
    nearest,
)
from mizzen.targets.ethos_n.tensors import TensorInfo

INFO = TensorInfo((1, 8, 8, 16))


def node(work: Source | Copy | Concat | LonePle | Sink) -> Node:
    """An unconnected node."""
    return make_node(work, INFO, Layout.NHWCB, {0})


def square() -> tuple[Graph, Node, Node, Node]:
    """A graph that adds a map to itself."""
    graph = Graph()
    source, add, sink = (
        graph.add(node(work)) for work in (Source(), LonePle(PleOperation.ADDITION), Sink(0))
    )
    graph.connect(source, add)
    graph.connect(source, add)
    graph.connect(add, sink)
    return graph, source, add, sink


def test_nodes_come_after_their_inputs() -> None:
    graph, source, add, sink = square()
    assert graph.sorted() == [source, add, sink]


def test_a_node_between_keeps_the_place_of_the_input() -> None:
    graph, source, add, _ = square()
    copy = graph.insert_before(add, 0, node(Copy()))
    assert add.inputs == [copy, source]
    assert source.users == [add, copy]
    assert copy.users == [add]


def test_a_node_behind_takes_all_users() -> None:
    graph, source, add, _ = square()
    copy = graph.insert_after(source, node(Copy()))
    assert add.inputs == [copy, copy]
    assert source.users == [copy]


def test_inputs_take_the_place_of_a_bypassed_node() -> None:
    graph, source, add, sink = square()
    inner, outer = (
        graph.insert_before(sink, 0, node(Concat(3))),
        graph.insert_after(add, node(Copy())),
    )
    other = graph.add(node(Source()))
    graph.connect(other, inner)
    last = graph.insert_before(sink, 0, node(Concat(3)))
    graph.connect(source, last)
    graph.bypass(inner)
    assert last.inputs == [outer, other, source]
    assert inner not in graph.nodes
    assert outer.users == [last]


def test_nearest_is_the_first_depth_first() -> None:
    _, source, _, sink = square()
    assert nearest(sink, lambda found: isinstance(found.work, Source)) is source
    assert nearest(sink, lambda found: isinstance(found.work, Concat)) is None
