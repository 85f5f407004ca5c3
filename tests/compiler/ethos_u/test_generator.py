"""Code of our own in a compiled network: whose it is, that it is right, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.cli.placement import code_rows, code_text
from mizzen.compiler.ethos_u.generator import generate as generate_better
from mizzen.compiler.ethos_u.generator import improve, search, sequences
from mizzen.compiler.ethos_u.generator.equality import differing
from mizzen.compiler.ethos_u.generator.improve import improved
from mizzen.compiler.ethos_u.search.judging import is_better, worse
from mizzen.compiler.ethos_u.generator.network import parts_of
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.code import CodeChoice, Rejected, StreamCost, Verdict, choice_of
from mizzen.report.compilation import as_dict, from_dict
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator, Optimise
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

from .networks import Net, error, report_of

U55 = "ethos-u55-128"
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"


def with_edges_on_the_cpu() -> bytes:
    """Floats in, integers on the NPU, floats out; a part of the input goes around the NPU."""
    net = Net()
    given = net.map("given", "float32")
    inner, made = net.map("inner"), net.map("made", "float32")
    around = net.map("around", "float32")
    net.operator("QUANTIZE", [given], [inner])
    both = net.map("both")
    net.operator("ADD", [inner, net.sum], [both], ("AddOptions", {}))
    net.operator("DEQUANTIZE", [net.twice(both)], [made])
    net.operator("NEG", [given], [around])
    return net.finish([given, net.first, net.second], [made, around])


def own(accelerator: str) -> EthosUConfiguration:
    return replace(resolve(accelerator), generator=Generator.OWN)


@pytest.mark.parametrize("accelerator", [U55, "ethos-u55-32", "ethos-u65-512"])
def test_a_network_computes_the_same_by_either_code(accelerator: str) -> None:
    data = with_edges_on_the_cpu()
    codes = [
        mizzen.compile(data, accelerator, target_options={"generator": generator})
        for generator in ("vela", "own")
    ]
    rng = np.random.default_rng(0)
    inputs = [rng.normal(0, 4, (1, 4, 4, 8)).astype(np.float32)]
    inputs += [rng.integers(-128, 128, (1, 4, 4, 8), np.int8) for _ in range(2)]
    theirs, ours = ([array.copy() for array in code.run(*inputs)] for code in codes)
    assert all(np.array_equal(*pair) for pair in zip(theirs, ours, strict=True))
    (choice,) = report_of(codes[1]).code
    assert choice.is_own
    assert choice.reason == "it was asked for"
    assert not report_of(codes[0]).code


def test_a_product_of_maps_becomes_convolutions() -> None:
    net = NetworkBuilder()
    left = net.tensor("left", (1, 2, 8, 16), "int8", 0.1, 4)
    right = net.tensor("right", (1, 2, 16, 8), "int8", 0.1, -3)
    result = net.tensor("result", (1, 2, 8, 8), "int8", 0.3)
    net.operator("BATCH_MATMUL", [left, right], [result], ("BatchMatMulOptions", {}))
    data = net.finish([left, right], [result])
    ours = mizzen.compile(data, U55, target_options={"generator": "own"})
    theirs = mizzen.compile(data, U55, target_options={"generator": "vela"})
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, shape, np.int8) for shape in ((1, 2, 8, 16), (1, 2, 16, 8))]
    assert np.array_equal(ours.run(*inputs)[0], theirs.run(*inputs)[0])
    (choice,) = report_of(ours).code
    assert choice.is_own
    assert choice.own is not None
    assert choice.vela is not None
    assert choice.own.cycles < 0.7 * choice.vela.cycles


ON_CPU = ("MUL",)


def outlived() -> bytes:
    """A network whose CPU reads, behind the NPU, what it has given the NPU."""
    net = Net()
    given, inner, after = net.map("given", "float32"), net.map("inner"), net.map("after")
    net.operator("QUANTIZE", [given], [inner])
    made = net.twice(net.twice(inner))
    net.operator("MUL", [made, inner], [after], ("MulOptions", {}))
    return net.finish([given, net.first, net.second], [after, net.sum])


def test_what_is_read_behind_the_npu_outlives_it() -> None:
    data = outlived()
    theirs, ours = (
        mizzen.compile(data, U55, ignore_ops=ON_CPU, target_options={"generator": generator})
        for generator in ("vela", "own")
    )
    rng = np.random.default_rng(0)
    inputs: list[np.ndarray[Any, Any]] = [rng.normal(0, 4, (1, 4, 4, 8)).astype(np.float32)]
    inputs += [rng.integers(-128, 128, (1, 4, 4, 8), np.int8) for _ in range(2)]
    both = [artifact.run(*inputs) for artifact in (theirs, ours)]
    assert all(np.array_equal(*pair) for pair in zip(*both, strict=True))
    assert report_of(ours).code[0].is_own
    assert ours.hazards == ()


def test_code_that_writes_over_what_outlives_it_is_a_hazard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gives the same numbers as Vela's, and the CPU behind it reads others."""

    def forgetting(sequence: Sequence, *_: object) -> Sequence:
        return sequence

    monkeypatch.setattr(sequences, "_keeping", forgetting)
    options = {"generator": "own"}
    artifact = mizzen.compile(
        outlived(), U55, ignore_ops=ON_CPU, prove="off", target_options=options
    )
    (choice,) = report_of(artifact).code
    assert choice.verdict is Verdict.HAZARD
    assert "must not write to input 'inner', which is read behind the program" in choice.reason


def test_a_network_that_our_rules_take_whole_is_theirs() -> None:
    net = Net()
    data = net.finish([net.first, net.second], [net.twice(net.sum)])
    artifact = mizzen.compile(data, U55, target_options={"generator": "own"})
    (choice,) = report_of(artifact).code
    assert (choice.is_own, choice.operations) == (True, "our own rules")
    edges = mizzen.compile(with_edges_on_the_cpu(), U55, target_options={"generator": "own"})
    assert report_of(edges).code[0].operations == "Vela's words, lifted"


def test_the_report_keeps_whose_code_it_is() -> None:
    report = report_of(
        mizzen.compile(with_edges_on_the_cpu(), U55, target_options={"generator": "own"})
    )
    assert from_dict(as_dict(report)).code == report.code
    assert code_text(report.code[0]).startswith("Mizzen's own: ")
    tried = replace(report.code[0], tried=(Rejected(Verdict.HAZARD, "a hazard"),))
    assert choice_of(json.loads(json.dumps(asdict(tried)))) == tried


def test_estimates_are_of_the_code_that_is_taken() -> None:
    configuration = own(U55)
    data = with_edges_on_the_cpu()
    compiled = generate(data, configuration)
    assert isinstance(compiled, Compiled)
    written = improved(compiled, Source(data, NetworkForm.TFLITE), configuration)
    (choice,) = written.choices
    assert choice.own is not None
    assert written.estimate.cycles == choice.own.vela_cycles
    assert sum(row.cycles for row in written.work if not row.on_cpu) == choice.own.vela_cycles
    assert {row.name for row in written.estimate.memories} == {"OffChipFlash", "Sram"}


def test_a_program_that_computes_something_else_is_seen() -> None:
    compiled = generate(with_edges_on_the_cpu(), resolve(U55))
    assert isinstance(compiled, Compiled)
    (part,) = parts_of(compiled)[1]
    program = part.program
    assert differing(program, program) == ""
    moved = tuple(replace(row, offset=program.inputs[0].offset) for row in program.inputs)
    found = differing(replace(program, inputs=moved), program)
    assert found.endswith("differ")


def test_that_the_other_cannot_be_executed_is_a_difference_and_that_ours_cannot_a_fault() -> None:
    compiled = generate(with_edges_on_the_cpu(), resolve(U55))
    assert isinstance(compiled, Compiled)
    program = parts_of(compiled)[1][0].program
    broken = replace(program, constants={0: program.constants[0][:16]}, region_bytes={0: 16, 1: 16})
    found = differing(program, broken)
    assert found.startswith("the other cannot be executed: OP_")
    with pytest.raises(MizzenError, match="E631"):
        differing(broken, program)


COST = StreamCost(cycles=100, vela_cycles=100, arena_bytes=64, fast_bytes=0, constant_bytes=10)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("cycles", "101 cycles for 100"),
        ("vela_cycles", "101 cycles by Vela's formula for 100"),
        ("arena_bytes", "101 bytes of the arena for 64"),
        ("fast_bytes", "101 bytes of fast memory for 0"),
    ],
)
def test_code_that_is_worse_in_anything_is_not_better(field: str, text: str) -> None:
    ours = replace(COST, **{"cycles": 90, field: 101})
    assert worse(ours, COST) == text
    assert not is_better(ours, COST)


def test_code_is_better_by_cycles_or_by_memory() -> None:
    assert is_better(replace(COST, cycles=99), COST)
    assert is_better(replace(COST, arena_bytes=48), COST)
    assert not is_better(COST, COST)


def test_velas_code_is_said_with_the_reason() -> None:
    choice = CodeChoice(Verdict.REFUSED, "there is no other", COST)
    assert code_text(choice) == "Vela's: there is no other"
    assert choice.cost is COST


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"cycles": 75, "arena_bytes": 48}, "25.0 % fewer cycles and 25.0 % less memory than"),
        ({"cycles": 80}, "20.0 % fewer cycles than Vela's, as much memory"),
        ({"fast_bytes": 16}, "25.0 % more memory than Vela's, as many cycles"),
        ({}, "as many cycles and as much memory as Vela's"),
    ],
)
def test_what_code_of_our_own_saves_is_said(changed: dict[str, int], text: str) -> None:
    own = CodeChoice(Verdict.TAKEN, "it was asked for", COST, replace(COST, **changed))
    assert code_text(own).startswith(f"Mizzen's own: {text}")


def test_npu_operators_of_whom_the_same_is_said_share_a_row() -> None:
    kept = CodeChoice(Verdict.REFUSED, "there is no other", COST)
    own = CodeChoice(Verdict.TAKEN, "it was asked for", COST, replace(COST, cycles=80))
    assert list(code_rows([kept, kept])) == [("code", code_text(kept))]
    assert list(code_rows([kept, own, kept])) == [
        ("code", f"NPU operators 0, 2: {code_text(kept)}"),
        ("code", f"NPU operator 1: {code_text(own)}"),
    ]


def test_u85_has_velas_code() -> None:
    text = error(with_edges_on_the_cpu(), "ethos-u85-256", target_options={"generator": "own"})
    assert "E578" in text
    assert "leave out --generator, or take best" in text
    artifact = mizzen.compile(
        with_edges_on_the_cpu(), "ethos-u85-256", target_options={"generator": "best"}
    )
    assert not report_of(artifact).code


def test_what_was_searched_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only for the same network and configuration; what is proved behind it is another search."""
    data = with_edges_on_the_cpu()
    once = generate_better(data, own(U55))

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(search, "judged", fail)
    assert generate_better(data, own(U55)) is once
    for configuration in (own("ethos-u55-64"), replace(own(U55), optimise=Optimise.SIZE)):
        with pytest.raises(ZeroDivisionError):
            generate_better(data, configuration)
    with pytest.raises(ZeroDivisionError):
        generate_better(data, own(U55), is_proved=True)


def test_a_network_that_is_all_on_the_cpu_has_no_code() -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 4), "int8", 0.1, 0) for name in "xy")
    net.operator("ABS", [x], [y])
    report = report_of(
        mizzen.compile(
            net.finish([x], [y]), U55, ignore_ops=["ABS"], target_options={"generator": "best"}
        )
    )
    assert (len(report.on_cpu), report.code) == (1, ())


def test_a_generator_that_is_not_one() -> None:
    text = error(with_edges_on_the_cpu(), U55, target_options={"search": "long"})
    assert "--search must be one of fast, thorough, not 'long'" in text


def test_maps_that_lie_otherwise_inside_are_no_errors(model_file: Callable[[str], Path]) -> None:
    """Height and width of what keyword spotting hands on are exchanged; what comes out is not."""
    model = model_file("kws_ref_model.tflite")
    artifact = mizzen.compile(model, U55, target_options={"generator": "best"})
    assert [type(step) for step in artifact.steps] == [NpuStep]
    report = report_of(artifact)
    assert {row.operator for row in report.origins[0].values()} >= set(range(9))
    assert not report.proof.differing


def test_too_many_operations_keep_velas_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MOST_OPERATIONS", 2)
    data = with_edges_on_the_cpu()
    artifact = mizzen.compile(data, U55, target_options={"generator": "own"})
    (choice,) = report_of(artifact).code
    assert choice.verdict is Verdict.REFUSED
    assert choice.reason == (
        "Mizzen cannot schedule it anew: an NPU operator must have at most 2 operations to be "
        "scheduled anew in time, and has 3"
    )


@pytest.mark.parametrize("where", [(search, "arranged"), (improve, "with_program")])
def test_a_mistake_of_ours_costs_nobody_the_compilation(
    where: tuple[ModuleType, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by a mistake")

    monkeypatch.setattr(search, "judged", fail)
    data = with_edges_on_the_cpu()
    with pytest.raises(ZeroDivisionError):
        mizzen.compile(data, U55, target_options={"generator": "own"})
    monkeypatch.undo()
    monkeypatch.setattr(*where, fail)
    artifact = mizzen.compile(data, U55, target_options={"generator": "best"})
    (choice,) = report_of(artifact).code
    assert choice.verdict is Verdict.FAILED
    assert choice.reason == (
        "Mizzen's generator failed, which is a bug of ours, please report it: ZeroDivisionError by "
        "a mistake"
    )


def test_velas_words_are_tried_where_our_rules_come_out_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    decide = search.decided

    def decided(*given: Any) -> Any:
        found = decide(*given)
        tried.append(found.choice.reason)
        verdict = Verdict.TAKEN if len(tried) > 1 else Verdict.DIFFERS
        left = (Rejected(verdict, "something else"),) if len(tried) == 1 else ()
        return replace(found, choice=replace(found.choice, verdict=verdict, tried=left))

    monkeypatch.setattr(search, "decided", decided)
    net = Net()
    data = net.finish([net.first, net.second], [net.twice(net.sum)])
    artifact = mizzen.compile(data, U55, target_options={"generator": "best"})
    (choice,) = report_of(artifact).code
    assert (len(tried), choice.operations) == (2, "Vela's words, lifted")
    assert choice.tried == (Rejected(Verdict.DIFFERS, "something else"),)


def test_who_optimises_for_size_gets_the_least_memory() -> None:
    data = DIGITS.read_bytes()
    choices = [
        report_of(
            mizzen.compile(data, U55, optimise=optimise, target_options={"generator": "best"})
        ).code[0]
        for optimise in ("Performance", "Size")
    ]
    fast, small = choices
    assert fast.is_own
    assert small.is_own
    assert fast.cost is not None
    assert small.cost is not None
    assert small.vela is not None
    assert small.cost.arena_bytes < fast.cost.arena_bytes
    assert small.cost.cycles <= small.vela.cycles
