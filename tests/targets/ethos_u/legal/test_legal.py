"""The rules against our own code: what breaks one is refused, on the machines that it is about."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mizzen.compiler.ethos_u.legality import against_kernels, breaches_of
from mizzen.compiler.ethos_u.tflite import TfliteRegions, _legality
from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model, read
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.legal.tflite import OPERATORS, RULES
from mizzen.targets.ethos_u.machine.commands import ALL, Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.rules import NO_FORM

from .kernel_cases import KERNEL_CASES
from .shape_cases import SHAPE_CASES
from .tensor_cases import TENSOR_CASES

ACCELERATORS = {Arch.U55: "ethos-u55-128", Arch.U65: "ethos-u65-512", Arch.U85: "ethos-u85-256"}
CASES = {**KERNEL_CASES, **SHAPE_CASES, **TENSOR_CASES}

BOTH = pytest.mark.parametrize("arch", [Arch.U55, Arch.U85], ids=lambda arch: arch.name)
ON_STATE = {"ASSIGN_VARIABLE", "READ_VARIABLE"}
"""Operators that no network of one operator has."""


@cache
def configuration(arch: Arch) -> EthosUConfiguration:
    return resolve(ACCELERATORS[arch])


@cache
def case(name: str) -> Model:
    return read(CASES[name](), f"{name}.tflite")


@cache
def broken(name: str, arch: Arch) -> tuple[str, ...]:
    model = case(name)
    return tuple(row.rule for row in breaches_of(model, model.main.operators[0], arch))


@cache
def is_taken(name: str, arch: Arch) -> bool:
    """Whether our own rules take all of a case."""
    return is_model_taken(case(name), arch)


def is_model_taken(model: Model, arch: Arch) -> bool:
    """Whether our own rules take all of a network."""
    try:
        lowered = lower_with_state(model)
    except MizzenError:
        return False
    rules = TfliteRegions(configuration(arch), lowered).legality(lowered.graph)
    legal = _legality(lowered, rules, (), arch)
    operations = list(lowered.graph)
    return bool(operations) and not any(legal(operation) for operation in operations)


@BOTH
def test_what_breaks_a_rule_is_refused_by_the_code(arch: Arch) -> None:
    wrong = {name: broken(name, arch) for name in CASES if is_taken(name, arch)}
    assert {name: rules for name, rules in wrong.items() if rules} == {}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_broken_and_kept_by_a_case(rule: object) -> None:
    """No rule that no case reaches, and none that refuses whatever it is about."""
    row = next(row for row in RULES if row is rule)
    outcomes = {
        row.id in broken(name, arch)
        for name in CASES
        for arch in ALL
        if arch in row.on and case(name).main.operators[0].kind in row.kinds
    }
    assert outcomes == {True, False}


def test_rules_have_names_of_their_own() -> None:
    names = [rule.id for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(rule.kinds <= set(OPERATORS) for rule in RULES)


@BOTH
def test_the_operators_are_those_that_the_code_takes(arch: Arch) -> None:
    taken = {case(name).main.operators[0].kind for name in CASES if is_taken(name, arch)}
    judged = [(row.operator, read(row.build(), f"{row.name}.tflite")) for row in cases()]
    taken |= {kind for kind, model in judged if is_model_taken(model, arch)}
    assert taken | ON_STATE == {kind for kind, archs in OPERATORS.items() if arch in archs}


def test_what_a_breach_says() -> None:
    model = case("average-same-9x8")
    (found,) = breaches_of(model, model.main.operators[0], Arch.U55)
    assert found.rule == "average-kernel"
    assert found.message == (
        "AVERAGE_POOL_2D must have a kernel up to 8x8 with padding, and has a kernel of 9x8 with "
        "padding"
    )
    assert found.limit == "a kernel up to 8x8 with padding"
    assert found.actual == "a kernel of 9x8 with padding"
    assert found.help == "pool in several steps, or with VALID padding"
    assert found.source == "Mizzen's rules for Ethos-U"


def test_what_an_operator_without_a_form_is_told() -> None:
    model = case("scatter")
    (found,) = breaches_of(model, model.main.operators[0], Arch.U55)
    assert found.rule == NO_FORM
    assert found.message == "Ethos-U55 has no form of SCATTER_ND, but Ethos-U85 has"
    assert found.help == (
        "replace it by operators that `mizzen targets` lists; or allow it on the CPU with "
        "`--max-cpu-ops`"
    )


@pytest.mark.parametrize(
    ("name", "actual"),
    [
        ("average-same-9x8", "a kernel of 9x8 with padding"),
        ("add-unquantised", 'INT8 "input0"'),
        ("lstm-peephole", "peephole weights"),
        ("matmul-int16", "INT16"),
        ("conv-bias-int16", "INT16"),
    ],
)  # fmt: skip
def test_breaches_give_the_actual_value(name: str, actual: str) -> None:
    model = case(name)
    found = breaches_of(model, model.main.operators[0], Arch.U55)
    assert found[0].actual == actual


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_bias_that_is_no_number_is_refused(dtype: type[np.floating]) -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8), "int8", 0.5)
    weights = net.constant("w", np.full((4, 8), 127, np.int8), 0.5)
    bias = net.constant("b", np.full(4, np.nan, dtype))
    y = net.tensor("y", (1, 4), "int8", 1e-10)
    net.operator("FULLY_CONNECTED", [x, weights, bias], [y], ("FullyConnectedOptions", {}))
    model = read(net.finish([x], [y]), "net.tflite")
    operator = model.main.operators[0]
    assert [row.rule for row in breaches_of(model, operator, Arch.U55)] == ["bias-type"]


@pytest.mark.parametrize("kind", ["STRIDED_SLICE", "TRANSPOSE", "SUM"])
def test_a_parameter_that_is_no_number_is_no_fault_of_the_rules(kind: str) -> None:
    """Strides, an order of axes and axes as reals: other rules, or the kernels, refuse them."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4, 4, 8), "int8", 0.5)
    count = 3 if kind == "STRIDED_SLICE" else 1
    parameters = [
        net.constant(f"p{place}", np.full(4, np.nan, np.float32)) for place in range(count)
    ]
    y = net.tensor("y", (1, 4, 4, 8), "int8", 0.5)
    net.operator(kind, [x, *parameters], [y])
    model = read(net.finish([x], [y]), "net.tflite")
    for arch in ALL:
        assert all(row.message for row in breaches_of(model, model.main.operators[0], arch))
        assert all(row.message for row in against_kernels(model, model.main.operators[0], arch))
