"""Every pass keeps what a graph computes, and leaves a graph that holds TOSA's rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from mizzen.diagnostics import Severity
from mizzen.graph import Graph
from mizzen.ops import verify

from .named import PASSES, STANDARD, pipeline
from .networks import networks, results

PIPELINES = [*PASSES, "layout,fuse-padding,layout", str(STANDARD)]


def errors(graph: Graph) -> list[str]:
    found = verify(graph)
    return [each.render() for each in found if each.severity is Severity.ERROR]


@pytest.mark.parametrize("names", PIPELINES)
@settings(max_examples=30)
@given(graph=networks())
def test_a_pass_keeps_every_bit(names: str, graph: Graph) -> None:
    keeps_every_bit(names, graph)


@pytest.mark.sweep
@pytest.mark.parametrize("names", PIPELINES)
@settings(max_examples=300)
@given(graph=networks())
def test_a_pass_keeps_every_bit_of_many(names: str, graph: Graph) -> None:
    keeps_every_bit(names, graph)


def keeps_every_bit(names: str, graph: Graph) -> None:
    before = results(graph)
    types = [value.type for value in graph.outputs]
    inputs = list(graph.inputs)
    pipeline(names).run(graph)
    assert not errors(graph)
    assert results(graph) == before
    assert [value.type for value in graph.outputs] == types
    assert list(graph.inputs) == inputs
    assert len(set(graph.outputs)) == len(types)


@settings(max_examples=30)
@given(graph=networks())
def test_the_standard_passes_settle(graph: Graph) -> None:
    STANDARD.run(graph)
    transposes, operations = count(graph, "TRANSPOSE"), working(graph)
    STANDARD.run(graph)
    assert working(graph) <= operations
    assert count(graph, "TRANSPOSE") <= transposes


FREE = ("CONST", "CONST_SHAPE", "IDENTITY", "RESHAPE")


def working(graph: Graph) -> int:
    """Count the operations that compute or move numbers, which shapes and constants do not."""
    return sum(row.kind not in FREE for row in graph)


def count(graph: Graph, kind: str) -> int:
    return sum(operation.kind == kind for operation in graph)


@settings(max_examples=30)
@given(graph=networks())
def test_outputs_keep_their_names(graph: Graph) -> None:
    names = [f"out{index}" for index in range(len(graph.outputs))]
    for value, name in zip(graph.outputs, names, strict=True):
        value.name = value.name if value in graph.inputs else name
    before = [value.name for value in graph.outputs]
    STANDARD.run(graph)
    assert [value.name for value in graph.outputs] == before
