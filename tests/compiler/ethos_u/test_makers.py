"""Whose code a network gets: our own, Vela's, or that of the better of two compilations."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.sealing import unsealed
from mizzen.cli.placement import code_rows
from mizzen.compiler.ethos_u import makers
from mizzen.compiler.ethos_u.vela import tflite as velas
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.code import CodeChoice, Maker, NetworkChoice, StreamCost, Tried
from mizzen.report.compilation import as_dict, from_dict

from .networks import Net, error, report_of
from .test_arena import over_the_cpu

U55 = "ethos-u55-128"
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
COST = StreamCost(100, 90, 1000, 0, 500)


def compiled(generator: str, **options: Any) -> mizzen.Artifact:
    return mizzen.compile(DIGITS, U55, target_options={"generator": generator}, **options)


@pytest.fixture
def without_vela(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python find no package of Vela's."""

    class Blocked:
        def find_spec(self, name: str, *_: object) -> None:
            if name.partition(".")[0] in ("ethosu", "ethos_u_vela"):
                raise ModuleNotFoundError(name)

    for name in [name for name in sys.modules if name.partition(".")[0] == "ethosu"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Blocked(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError):
        find_spec("ethosu.regor")


@pytest.mark.usefixtures("without_vela")
@pytest.mark.parametrize(
    "accelerator",
    ["ethos-u55-32", "ethos-u55-256", "ethos-u65-512", "ethos-u85-128", "ethos-u85-1024"],
)
def test_nothing_needs_vela(accelerator: str) -> None:
    for data in (DIGITS.read_bytes(), over_the_cpu()):
        report = report_of(mizzen.compile(data, accelerator))
        assert report.compiler == "Mizzen"
        assert report.proof.compares


@pytest.mark.usefixtures("without_vela")
@pytest.mark.parametrize(
    ("accelerator", "generator"), [(U55, "vela"), (U55, "best"), ("ethos-u85-256", "vela")]
)
def test_where_vela_is_asked_for_and_missing_it_is_said(accelerator: str, generator: str) -> None:
    text = error(DIGITS, accelerator, target_options={"generator": generator})
    assert "E300" in text
    assert "pip install '.[vela]'" in text


def test_our_own_does_not_start_vela(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("Vela was started")

    monkeypatch.setattr(velas, "generate", fail)
    assert report_of(mizzen.compile(DIGITS, U55)).compiler == "Mizzen"


def test_the_better_of_both_is_taken_whole_and_it_is_said_why() -> None:
    own, vela, best = (compiled(name) for name in ("own", "vela", "best"))
    assert unsealed(best.data, best.name) == unsealed(own.data, own.name)
    report = report_of(best)
    assert report.choice is not None
    assert report.choice.maker is Maker.MIZZEN
    assert report.choice.mizzen is not None
    assert report.choice.vela is not None
    assert report.choice.mizzen.cycles < report.choice.vela.cycles
    assert from_dict(as_dict(report)) == report
    assert report_of(own).choice is None
    assert report_of(vela).compiler == "Vela 5.2.0"


def test_velas_is_taken_where_it_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = iter([replace(COST, cycles=200), COST])

    def cost(*_: object) -> StreamCost:
        return next(costs)

    monkeypatch.setattr(makers, "network_cost", cost)
    best = compiled("best")
    choice = report_of(best).choice
    assert choice is not None
    assert (choice.maker, choice.reason) == (Maker.VELA, "fewer cycles")
    vela = compiled("vela")
    assert unsealed(best.data, best.name) == unsealed(vela.data, vela.name)


def test_where_vela_makes_none_ours_is_taken() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 5, 4, 3), "int16", 0.1)
    y = net.tensor("y", (1, 5, 4, 3), "int16", 0.2)
    net.operator("ADD", [x, x], [y], ("AddOptions", {}))
    data = net.finish([x], [y])

    def fails() -> mizzen.Artifact:
        raise mizzen.MizzenError(makers_failure)

    from mizzen.diagnostics import Diagnostic

    makers_failure = Diagnostic("E302", "the compiler crashed")
    own = mizzen.compile(data, U55)
    taken = makers.better(lambda: own, fails, None)  # pyright: ignore[reportArgumentType] it is not looked at
    choice = report_of(taken).choice
    assert choice is not None
    assert choice.reason == "Vela's has none: the compiler crashed"


def test_who_optimises_for_size_gets_less_memory() -> None:
    fast, small = (
        report_of(compiled("own", optimise=name)).code[0].cost for name in ("Performance", "Size")
    )
    assert small.memory_bytes < fast.memory_bytes
    assert small.cycles <= 1.35 * fast.cycles


def test_a_network_that_is_all_on_the_cpu_has_no_code() -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 4), "int8", 0.1, 0) for name in "xy")
    net.operator("ABS", [x], [y])
    report = report_of(mizzen.compile(net.finish([x], [y]), U55, ignore_ops=["ABS"]))
    assert (len(report.on_cpu), report.code, report.compiler) == (1, (), "Mizzen")


def test_a_search_that_is_not_one() -> None:
    text = error(DIGITS, U55, target_options={"search": "long"})
    assert "--search must be one of fast, thorough, not 'long'" in text


def test_whose_code_it_is_is_said_with_flash_and_model() -> None:
    choice = NetworkChoice(
        Maker.MIZZEN, "fewer cycles", replace(COST, cycles=80, constant_bytes=555), COST
    )
    assert list(code_rows([], choice)) == [
        (
            "code",
            "Mizzen's own, for fewer cycles: 20.0 % fewer cycles, 11.0 % more flash than Vela's "
            "(timing model)",
        )
    ]


def test_ways_that_were_passed_over_are_said() -> None:
    tried = CodeChoice(Maker.MIZZEN, COST, tried=(Tried("searched", "3 of 9 values differ"),))
    assert list(code_rows([tried])) == [
        ("code", "Mizzen's own"),
        ("passed over", "NPU operator 0, searched: 3 of 9 values differ"),
    ]


def test_a_map_that_an_input_is_written_over_is_right() -> None:
    """An output may lie over an input that nothing reads after it."""
    net = Net()
    data = net.finish([net.first, net.second], [net.twice(net.sum)])
    artifact = mizzen.compile(data, U55)
    given = np.full((1, 1, 4, 4, 8), 3, np.int8)
    assert report_of(artifact).arena_bytes <= 384
    assert np.array_equal(
        artifact.run(given, given),
        mizzen.compile(data, U55, target_options={"generator": "vela"}).run(given, given),
    )
