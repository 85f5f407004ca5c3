"""Rewrites of the work graph: each where it holds, and where it would change what is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.targets.ethos_n.lower.work_graph import (
    RULES,
    Concat,
    Copy,
    Graph,
    Layout,
    Node,
    Relabel,
    Relayout,
    Requantization,
    Sink,
    Source,
    Stored,
    Work,
    make_node,
    rewrite,
)
from mizzen.targets.ethos_n.tensors import QuantizationInfo, TensorInfo

WIDE, NARROW = QuantizationInfo(128, (0.04,)), QuantizationInfo(128, (0.01,))
NHWC, NHWCB = Layout.NHWC, Layout.NHWCB
Step = tuple[Work, Layout] | tuple[Work, Layout, QuantizationInfo]


def node(work: Work, layout: Layout, quantization: QuantizationInfo = WIDE, *, id: int = 0) -> Node:
    return make_node(work, TensorInfo((1, 8, 8, 16), quantization=quantization), layout, {id})


def line(*steps: Step) -> Graph:
    """Connect nodes one behind the other; each is of an operation of its own."""
    graph = Graph()
    for place, step in enumerate(steps):
        work, layout = step[:2]
        quantization = WIDE if len(step) == 2 else step[2]
        made = graph.add(node(work, layout, quantization, id=place))
        if place:
            graph.connect(graph.nodes[place - 1], made)
    return graph


def works(graph: Graph) -> list[type]:
    return [type(row.work) for row in graph.sorted()]


def rewritten(*steps: Step) -> Graph:
    graph = line(*steps)
    rewrite(graph)
    return graph


def test_there_and_back_again_is_nothing() -> None:
    there: Step = (Relayout(), NHWCB)
    assert works(rewritten((Source(), NHWC), there, (Relayout(), NHWC), (Sink(0), NHWC))) == [
        Source,
        Sink,
    ]


def test_changes_of_layout_that_passes_are_divided_at_stay() -> None:
    graph = line((Source(), NHWC), (Relayout(), NHWCB), (Relayout(), NHWC), (Sink(0), NHWC))
    graph.nodes[1].demands.stays = True
    rewrite(graph)
    assert works(graph) == [Source, Relayout, Relayout, Sink]


def test_a_map_that_two_read_in_bricks_is_brought_into_bricks() -> None:
    graph = line((Source(), NHWC), (Relayout(), NHWCB), (Relayout(), NHWC), (Sink(0), NHWC))
    other = graph.add(node(Sink(0), NHWCB))
    graph.connect(graph.nodes[1], other)
    rewrite(graph)
    assert works(graph).count(Relayout) == 2


def test_requantisation_goes_before_what_is_only_read_otherwise() -> None:
    graph = rewritten(
        (Source(), NHWC),
        (Relabel(), NHWC),
        (Requantization(), NHWC, NARROW),
        (Sink(0), NHWC, NARROW),
    )
    assert works(graph) == [Source, Requantization, Relabel, Sink]
    assert graph.sorted()[2].quantization == NARROW


def test_requantisation_stays_behind_another_meaning() -> None:
    graph = rewritten(
        (Source(), NHWC), (Relabel(), NHWC, NARROW), (Requantization(), NHWC), (Sink(0), NHWC)
    )
    assert works(graph) == [Source, Relabel, Requantization, Sink]


def concatenated(*behind: Work, axis: int = 3) -> tuple[Graph, Node]:
    """Concatenate two inputs; behind it come works in NARROW, and an output."""
    graph = Graph()
    whole = node(Concat(axis), NHWCB)
    for _ in range(2):
        graph.connect(graph.add(node(Source(), NHWCB)), whole)
    graph.add(whole)
    last = whole
    for work in (*behind, Sink(0)):
        made = graph.add(node(work, NHWCB, NARROW, id=len(graph.nodes)))
        graph.connect(last, made)
        last = made
    return graph, whole


@pytest.mark.parametrize("work", [Requantization(), Copy()])
def test_what_is_behind_a_concatenation_is_done_to_its_parts(work: Work) -> None:
    graph, whole = concatenated(work)
    rewrite(graph)
    assert [part.work for part in whole.inputs] == [work, work]
    assert [user.work for user in whole.users] == [Sink(0)]
    if isinstance(work, Requantization):
        assert whole.quantization == NARROW


@pytest.mark.parametrize("work", [Requantization(), Copy()])
def test_a_part_of_another_concatenation_is_made_in_one_buffer_first(work: Work) -> None:
    graph, whole = concatenated(work)
    (behind,) = whole.users
    other = graph.insert_after(behind, node(Concat(1), NHWCB, NARROW))
    rewrite(graph)
    assert other.inputs == [behind]
    assert all(isinstance(part.work, Source) for part in whole.inputs)


def test_concatenations_along_one_axis_are_one() -> None:
    graph, inner = concatenated()
    outer = graph.insert_after(inner, node(Concat(3), NHWCB, id=7))
    graph.connect(graph.add(node(Source(), NHWCB)), outer)
    rewrite(graph)
    assert len(outer.inputs) == 3
    assert inner not in graph.nodes
    assert outer.operation_ids == {0, 7}


def test_concatenations_along_two_axes_are_two() -> None:
    graph, inner = concatenated()
    outer = graph.insert_after(inner, node(Concat(1), NHWCB))
    graph.connect(graph.add(node(Source(), NHWCB)), outer)
    rewrite(graph)
    assert inner in outer.inputs


def test_of_two_requantisations_the_second_remains() -> None:
    """The first keeps -5.12 to 5.08, and the second only -1.28 to 1.27."""
    graph = rewritten(
        (Source(), NHWCB),
        (Requantization(), NHWCB),
        (Requantization(), NHWCB, NARROW),
        (Sink(0), NHWCB, NARROW),
    )
    assert works(graph) == [Source, Requantization, Sink]
    assert graph.sorted()[1].operation_ids == {1, 2}


def test_what_the_first_of_two_requantisations_saturates_stays_so() -> None:
    graph = rewritten(
        (Source(), NHWCB),
        (Requantization(), NHWCB, NARROW),
        (Requantization(), NHWCB),
        (Sink(0), NHWCB),
    )
    assert works(graph) == [Source, Requantization, Requantization, Sink]


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((Copy(), Copy()), [Copy]),
        ((Copy(), Requantization()), [Requantization]),
        ((Requantization(), Copy()), [Requantization, Copy]),
    ],
)
def test_copies_are_made_once(steps: tuple[Work, Work], left: list[type]) -> None:
    graph = rewritten((Source(), NHWCB), *((work, NHWCB) for work in steps), (Sink(0), NHWCB))
    assert works(graph)[1:-1] == left


def test_maps_that_nobody_reads_are_not_made() -> None:
    graph = line((Source(), NHWCB), (Copy(), NHWCB), (Sink(0), NHWCB))
    graph.connect(graph.nodes[0], graph.add(node(Relayout(), NHWC)))
    unread = graph.add(node(Copy(), NHWC))
    graph.connect(graph.nodes[3], unread)
    rewrite(graph)
    assert works(graph) == [Source, Copy, Sink]


DATA = np.zeros((1, 8, 8, 16), np.uint8)


def test_constants_are_given_as_they_are_read() -> None:
    graph = rewritten(
        (Stored(DATA), NHWC), (Relabel(), NHWC, NARROW), (Copy(), NHWC, NARROW), (Sink(0), NHWC)
    )
    assert works(graph) == [Stored, Copy, Sink]
    assert graph.sorted()[0].quantization == NARROW
    graph = rewritten((Stored(DATA), NHWC), (Relayout(), NHWCB), (Copy(), NHWCB), (Sink(0), NHWCB))
    assert works(graph) == [Stored, Copy, Sink]


@pytest.mark.parametrize("user", [Sink(0), Concat(3), Relabel()])
def test_constants_whose_bytes_are_taken_as_they_lie_are_brought_into_bricks(user: Work) -> None:
    steps: list[Step] = [(Stored(DATA), NHWC), (Relayout(), NHWCB), (user, NHWCB)]
    if not isinstance(user, Sink):
        steps.append((Sink(0), NHWCB))
    assert Relayout in works(rewritten(*steps))


MOVES = st.sampled_from([Relayout(), Relabel(), Copy(), Requantization(), Concat(3)])
STEPS = st.lists(
    st.tuples(MOVES, st.sampled_from(Layout), st.sampled_from([WIDE, NARROW])), max_size=8
)


@given(STEPS)
def test_rewriting_ends_and_leaves_nothing_to_do(steps: list[Step]) -> None:
    graph = line((Source(), NHWC), *steps, (Sink(0), NHWC))
    kinds = works(graph)
    rewrite(graph)
    found = works(graph)
    assert not any(rule(graph, row) for row in graph.sorted() for rule in RULES)
    assert (found[0], found[-1]) == (Source, Sink)
    assert len(found) <= len(kinds)
    assert all(found.count(kind) <= kinds.count(kind) for kind in (Relayout, Relabel, Concat))
    for row in graph.nodes:
        assert all(row in user.inputs for user in row.users)
        assert all(source in graph.nodes for source in row.inputs)
