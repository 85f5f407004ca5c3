"""Regions of tensor graphs by our own rules: where Vela's code is wrong, or there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mizzen.compiler.codegen import RegionCode, RegionRefusal
from mizzen.compiler.ethos_u import regions
from mizzen.compiler.ethos_u.regions import TosaCode, TosaRegions
from mizzen.compiler.proof.options import DEFAULT, OFF, ProofOptions
from mizzen.compiler.proof.regions import Proved, RegionProver
from mizzen.graph import DType, Graph, ResizeMode, Value
from mizzen.ops import Builder
from mizzen.partition import extract
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.machine.config import Generator
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela import generate as vela

from .test_tosa import MAP, biases, rescale

Make = Callable[[Builder, Value], Value]
GROUP = 7
U55 = "ethos-u55-128"


def grouped(make: Make) -> Graph:
    """Return a graph of one group."""
    graph = Graph("network")
    value = graph.add_input(MAP, "image")
    graph.set_outputs([make(Builder(graph), value)])
    for row in graph:
        row.group = GROUP
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


def plain(b: Builder, value: Value) -> Value:
    """Clamp."""
    return b("CLAMP", value, min_val=-20, max_val=30)


def compiler(generator: str = "best", options: ProofOptions = DEFAULT) -> TosaRegions:
    configuration = replace(resolve(U55), generator=Generator(generator))
    return TosaRegions(configuration, options)


def proved(graph: Graph, made: TosaRegions, code: RegionCode) -> Proved:
    found = RegionProver(graph, made, DEFAULT, None).prove(code, [GROUP])
    assert isinstance(found, Proved)
    return found


@pytest.mark.parametrize("generator", ["best", "own"])
@pytest.mark.parametrize(
    ("make", "kind"), [(biases, "CONV2D"), (scales, "ADD")], ids=["biases", "scales"]
)
def test_what_vela_gets_wrong_is_right_by_our_rules(make: Make, kind: str, generator: str) -> None:
    graph, made = grouped(make), compiler(generator)
    code = made.compile(extract(graph, [GROUP]), None)
    assert isinstance(code, TosaCode)
    (choice,) = code.costs.code
    assert choice.verdict is Verdict.CORRECTED
    assert choice.reason == f"Vela's code gets {kind} wrong"
    assert choice.operations == "our own rules"
    assert code.compiler == "Mizzen"
    assert set(code.cycles) == {GROUP}
    proof = proved(graph, made, code).proof
    assert proof.equal == 1


INEXACT = replace(DEFAULT, allow_inexact=True)


@pytest.mark.parametrize(
    "made", [compiler("vela"), compiler(options=OFF), compiler(options=INEXACT)]
)
def test_without_a_proof_what_vela_gets_wrong_stays_on_the_cpu(made: TosaRegions) -> None:
    refused = made.compile(extract(grouped(biases), [GROUP]), None)
    assert isinstance(refused, RegionRefusal)
    assert refused.reasons[GROUP].rule == "compiler-defect"


@pytest.mark.parametrize("make", [factors, bilinear])
def test_rules_of_velas_that_ours_do_not_have_do_not_hold(make: Make) -> None:
    graph = grouped(make)
    (resize,) = [row for row in graph if row.kind == "RESIZE"]
    made = compiler()
    assert made.legality(graph)(resize) == ()
    assert compiler("vela").legality(graph)(resize)
    code = made.compile(extract(graph, [GROUP]), None)
    assert isinstance(code, TosaCode)
    (choice,) = code.costs.code
    assert choice.reason.startswith("Vela has no form of it: RESIZE must have")
    assert proved(graph, made, code).proof.equal == 1


def test_what_vela_compiles_wrongly_needs_a_proof_to_be_legal() -> None:
    graph = grouped(factors)
    (resize,) = [row for row in graph if row.kind == "RESIZE"]
    (reason,) = compiler(options=OFF).legality(graph)(resize)
    assert reason.rule == "resize-factors"


def test_what_neither_takes_says_both_reasons() -> None:
    def make(b: Builder, value: Value) -> Value:
        wide = bilinear(b, value)
        words = b("CAST", wide, dtype=DType.INT32)
        return b("ARITHMETIC_RIGHT_SHIFT", words, b.constant([[[[1]]]], DType.INT32), round=False)

    graph, made = grouped(make), compiler()
    refused = made.compile(extract(graph, [GROUP]), None)
    assert isinstance(refused, RegionRefusal)
    reason = refused.reasons[GROUP]
    assert reason.rule == "shift-rounding"
    assert str(reason.help).endswith("it rounds down")


def test_code_that_the_proof_finds_wrong_is_made_by_our_rules() -> None:
    graph = grouped(plain)
    other = grouped(lambda b, value: b("CLAMP", value, min_val=0, max_val=9))
    spoilt = compiler("vela").compile(extract(other, [GROUP]), None)
    assert isinstance(spoilt, TosaCode)
    made = compiler()
    found = proved(graph, made, spoilt)
    assert isinstance(found.code, TosaCode)
    (choice,) = found.code.costs.code
    assert choice.verdict is Verdict.CORRECTED
    assert choice.reason.startswith("Vela's code is wrong: ")
    assert found.proof.equal == 1


def test_other_numbers_than_velas_are_taken_only_if_they_are_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []

    def generate(*given: object, **named: object) -> object:
        asked.append(bool(named.get("is_proved")))
        return vela.generate(given[0], given[1], given[2])  # pyright: ignore[reportArgumentType] as `generate` takes them

    monkeypatch.setattr(regions, "generate", generate)
    monkeypatch.setattr(regions, "has_corrected_code", lambda compiled: len(asked) == 1)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] any
    monkeypatch.setattr(regions, "holds", lambda *given: False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] any
    code = compiler().compile(extract(grouped(plain), [GROUP]), None)
    assert isinstance(code, TosaCode)
    assert asked == [True, False]
