"""The rules for TOSA networks against the compiler's verdict, and against what it computes."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest
from mizzen.targets.ethos_u.legal.tosa import (
    LAYOUT_RULES,
    NO_FORM,
    RULES,
    WRONG,
    Rule,
    reasons,
    reasons_as_compiled,
)
from mizzen.targets.ethos_u.vela.defects import avoid_defects

from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError, Reason
from mizzen.frontends import tosa as frontend
from mizzen.graph import DType, Graph
from mizzen.ops import DEFINITIONS
from mizzen.package import tosa as package
from mizzen.reference import evaluate
from mizzen.targets.ethos_u.machine.commands import ALL, Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

from .tosa_cases import CASES

ACCELERATORS = {Arch.U55: "ethos-u55-128", Arch.U65: "ethos-u65-512", Arch.U85: "ethos-u85-256"}

ALL_RULES = (*RULES, *LAYOUT_RULES)

WRONG_RULES = {rule.id for rule in RULES if rule.source == WRONG}
"""Rules about what the compiler takes, and should not."""

READS_UNWRITTEN = "E631"

UNSUPPORTED = {"constant-deep-weights"}
"""What Vela's report says is not supported, and its core compiles; nothing here can run it."""

SAMPLE = (
    "conv-stride-3x3-padded",
    "conv-stride-4x4-padded",
    "conv-stride-4x4",
    "average-9x8",
    "average-9x8-padded",
    "MAX_POOL2D-batch",
    "conv-i16",
    "conv-i16-sum",
    "conv-computed-weights",
    "transposed-computed-weights",
    "transposed-3x3",
    "matmul-i16",
    "nearest-8x8-halves",
    "nearest-3x3-halves",
    "bilinear-2x2-True",
    "argmax-128",
    "reverse-channels",
    "select-i8",
    "compare",
    "concatenation-bool",
)
"""Cases for every run: a limit of most rules, from both sides."""


@cache
def configuration(arch: Arch) -> EthosUConfiguration:
    return resolve(ACCELERATORS[arch])


@cache
def graph(name: str) -> Graph:
    return CASES[name]()


def broken(name: str, arch: Arch) -> list[Reason]:
    return [row for operation in graph(name) for row in reasons_as_compiled(operation, arch)]


def takes(name: str, arch: Arch) -> bool:
    """Whether the compiler takes a network."""
    answer = generate(package.write(graph(name)), configuration(arch), NetworkForm.TOSA)
    return isinstance(answer, Compiled)


def assert_agreement(name: str, arch: Arch) -> None:
    found = {row.rule for row in broken(name, arch)}
    assert takes(name, arch) == (not found - WRONG_RULES - UNSUPPORTED), found


@pytest.mark.parametrize("name", SAMPLE)
def test_the_rules_agree_with_the_compiler(name: str) -> None:
    assert_agreement(name, Arch.U55)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", ALL, ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", CASES)
def test_all_rules_agree_with_the_compiler(name: str, arch: Arch) -> None:
    assert_agreement(name, arch)


@pytest.mark.parametrize(
    "rule", [rule for rule in ALL_RULES if rule.id != "integers"], ids=lambda rule: rule.id
)
def test_every_rule_is_broken_and_kept_by_a_case(rule: Rule) -> None:
    """No rule that no case reaches, and none that refuses whatever it is about."""
    outcomes = {
        rule.measure(operation) is not None
        for name in CASES
        for operation in graph(name)
        if operation.kind in rule.kinds
    }
    assert outcomes == {True, False}


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_rules_are_about_operations_that_there_are(rule: Rule) -> None:
    for kind in rule.kinds:
        assert kind in DEFINITIONS
    assert [row.id for row in ALL_RULES].count(rule.id) == 1


def test_u65_takes_what_u55_takes() -> None:
    for name in CASES:
        ours, theirs = broken(name, Arch.U55), broken(name, Arch.U65)
        assert [row.rule for row in ours] == [row.rule for row in theirs]


def test_what_depends_on_the_layout_is_left_to_the_passes() -> None:
    later = {rule.id for rule in LAYOUT_RULES}
    for name in CASES:
        early = [row for operation in graph(name) for row in reasons(operation, Arch.U55)]
        assert early == [row for row in broken(name, Arch.U55) if row.rule not in later]


def _wrong(name: str) -> bool:
    """Whether what the compiler makes computes something else, or reads what is not there."""
    network = graph(name)
    random = np.random.default_rng(0)
    inputs = [random.integers(-100, 100, v.shape).astype(v.dtype.numpy) for v in network.inputs]
    (expected,) = evaluate(network, inputs)
    copy = frontend.read(package.write(network), name)
    assert not avoid_defects(copy, Arch.U55)
    configuration = resolve(ACCELERATORS[Arch.U55])
    compiled = generate(package.write(copy), configuration, NetworkForm.TOSA)
    assert isinstance(compiled, Compiled)
    try:
        computed = artifact_of(compiled.network, name).run(*inputs)
    except MizzenError as error:
        return error.diagnostic.code == READS_UNWRITTEN
    assert not isinstance(computed, tuple)
    return not np.array_equal(expected, np.reshape(computed, expected.shape))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("first-of-one-rank-5", "second-of-one-rank-5"),
        ("first-of-one-rank-5", "first-of-one-rank-4"),
        ("nearest-2x4-halves", "nearest-2x2-halves"),
        ("transposed-padded-before", "transposed-padded-after"),
        ("matmul-rows-over", "matmul-rows"),
        ("shift-right-truncating", "shift-right-rounding"),
        ("conv-i16-bias-far", "conv-i16-bias-near"),
    ],
)
def test_what_is_kept_from_the_compiler_is_compiled_wrongly(wrong: str, right: str) -> None:
    assert {row.rule for row in broken(wrong, Arch.U55)} <= WRONG_RULES
    assert broken(right, Arch.U55) == []
    assert _wrong(wrong)
    assert not _wrong(right)


@pytest.mark.parametrize(
    ("name", "rule", "message"),
    [
        (
            "average-stride-1x5-padded",
            "stride",
            "AVG_POOL2D must have strides up to 3, or no padding on "
            "Ethos-U55, and has stride 1x5 with padding",
        ),
        (
            "bilinear-2x2-True",
            "resize",
            "RESIZE must have the nearest pixel, by 2, 4 or 8, corners or centres in place on "
            "Ethos-U55, and has bilinear interpolation",
        ),
        (
            "nearest-3x3-halves",
            "resize",
            "RESIZE must have the nearest pixel, by 2, 4 or 8, corners or centres in place on "
            "Ethos-U55, and has a factor of 3x3",
        ),
        (
            "matmul-i16",
            "matmul-type",
            "MATMUL must have operands of 8 bits on Ethos-U55, and has i16",
        ),
        ("select-i8", NO_FORM, "Ethos-U55 has no form of SELECT, but Ethos-U85 has"),
        (
            "depthwise-computed-bias",
            "constant-weights",
            "DEPTHWISE_CONV2D must have constant weights and a constant bias on Ethos-U55, and "
            "has a bias that inputs decide",
        ),
        (
            "concatenation-bool",
            "booleans",
            "CONCAT must have numbers on Ethos-U55, and has bool",
        ),
    ],
)
def test_what_a_breach_says(name: str, rule: str, message: str) -> None:
    first, *_ = broken(name, Arch.U55)
    assert (first.rule, first.message) == (rule, message)


def test_floating_point_numbers_have_no_place() -> None:
    from .tosa_networks import one

    (found,) = reasons(next(iter(one("ADD", (2,), (2,), dtype=DType.FP32))), Arch.U85)
    assert found.message == "ADD must have only integers on Ethos-U85, and has f32"


def test_constants_may_be_what_the_npu_has_no_form_of() -> None:
    from .tosa_networks import Net

    net = Net()
    values = net.b.constant(np.zeros((1, 3, 2)), DType.INT8)
    picked = net.b("GATHER", values, net.b.constant(np.zeros((1, 2)), DType.INT32))
    assert picked.producer is not None
    assert reasons(picked.producer, Arch.U55) == ()


def test_two_thousand_operations_are_judged_in_30_ms(slowness: float) -> None:
    operations = [operation for name in SAMPLE for operation in graph(name)]
    repeated = (operations * (2000 // len(operations) + 1))[:2000]

    def seconds() -> float:
        start = time.process_time()
        for operation in repeated:
            reasons(operation, Arch.U55)
        return time.process_time() - start

    assert min(seconds() for _ in range(5)) < 0.03 * slowness
