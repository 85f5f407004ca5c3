"""Regions of tensor graphs by our own rules: what they take, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mizzen.compiler.codegen import RegionRefusal
from mizzen.compiler.ethos_u.regions import OwnCode, OwnRegions
from mizzen.compiler.ethos_u.search import judging
from mizzen.compiler.placement import RegionMaker
from mizzen.compiler.proof.options import DEFAULT
from mizzen.compiler.ways import Made
from mizzen.graph import DType, Graph, ResizeMode, Value
from mizzen.ops import Builder
from mizzen.partition import extract
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from .test_rules import planted
from .test_tosa import MAP, biases, rescale

Make = Callable[[Builder, Value], Value]
GROUP = 7
U55 = "ethos-u55-128"


def grouped(make: Make) -> Graph:
    """Return a graph of one group."""
    graph = Graph("network")
    value = graph.add_input(MAP, "image")
    graph.set_outputs([make(Builder(graph), value)])
    for operation in graph:
        operation.group = GROUP
    return graph


def factors(b: Builder, value: Value) -> Value:
    """Enlarge by 2 one way and by 4 the other."""
    steps = b.shape([4, 2, 8, 2]), b.shape([-1, -3]), b.shape([1, 3])
    return b("RESIZE", value, *steps, mode=ResizeMode.NEAREST)


def bilinear(b: Builder, value: Value) -> Value:
    """Enlarge by 2 with straight lines between pixels."""
    steps = b.shape([4, 2, 4, 2]), b.shape([-1, -1]), b.shape([1, 1])
    wide = b("RESIZE", value, *steps, mode=ResizeMode.BILINEAR)
    return rescale(b, wide, DType.INT8, 34)


def scales(b: Builder, value: Value) -> Value:
    """Add operands of two scales."""
    scaled = [rescale(b, value, DType.INT32, each) for each in (16, 17)]
    return rescale(b, b("ADD", *scaled), DType.INT8, 45)


def maker(graph: Graph) -> RegionMaker:
    return RegionMaker(graph, OwnRegions(resolve(U55)), DEFAULT, None)


@pytest.mark.parametrize("make", [biases, scales, factors, bilinear])
def test_what_vela_gets_wrong_or_refuses_is_right_by_our_rules(make: Make) -> None:
    graph = grouped(make)
    regions = OwnRegions(resolve(U55))
    assert all(regions.legality(graph)(operation) == () for operation in graph)
    made = maker(graph).made([GROUP])
    assert isinstance(made, Made)
    assert isinstance(made.code, OwnCode)
    assert made.code.compiler == "Mizzen"
    assert made.proof.equal == 1
    assert made.tried == ()


def test_what_no_rule_takes_is_refused_with_the_reason() -> None:
    def make(b: Builder, value: Value) -> Value:
        return b("BITWISE_XOR", value, value)

    refused = OwnRegions(resolve(U55)).compile(extract(grouped(make), [GROUP]), None)
    assert isinstance(refused, RegionRefusal)
    reason = refused.reasons[GROUP]
    assert reason.rule == "no-rule"
    assert reason.message == (
        "the NPU does not compute this BITWISE_XOR: no rule has a form of BITWISE_XOR, but "
        "Ethos-U85 has one"
    )


def test_code_that_the_proof_finds_wrong_is_made_again_without_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    emitted: list[Program] = []

    def wrong_at_first(*given: Any) -> Program:
        emitted.append(emit(*given))
        return planted(emitted[-1], *ZERO_POINT) if len(emitted) <= searched else emitted[-1]

    searched = count_emitted(monkeypatch)
    monkeypatch.setattr(judging, "emit", wrong_at_first)
    made = maker(grouped(biases)).made([GROUP])
    assert isinstance(made, Made)
    assert [tried.way for tried in made.tried] == ["searched"]
    assert made.tried[0].why_not.startswith("ofm zero point of step")
    assert made.proof.equal == 1


ZERO_POINT = ("SET_OFM_ZERO_POINT", "zero_point", 1)


def count_emitted(monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many programs the search looks at."""
    emitted: list[Program] = []

    def counting(*given: Any) -> Program:
        emitted.append(emit(*given))
        return emitted[-1]

    monkeypatch.setattr(judging, "emit", counting)
    OwnRegions(resolve(U55)).compile(extract(grouped(biases), [GROUP]), None)
    return len(emitted)


def test_code_that_is_wrong_in_every_way_is_refused_with_the_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*given: Any) -> Program:
        return planted(emit(*given), *ZERO_POINT)

    monkeypatch.setattr(judging, "emit", wrong)
    refused = maker(grouped(biases)).made([GROUP])
    assert isinstance(refused, RegionRefusal)
    assert refused.reasons[GROUP].rule == "proof"
    assert "1 in the command stream, 0 in its schedule" in refused.reasons[GROUP].message
