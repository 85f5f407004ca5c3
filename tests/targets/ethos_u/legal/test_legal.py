"""The rules against the compiler's verdict: the same operators must be on the NPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.outcome import breaches_of, defects_of
from mizzen.targets.ethos_u.legal.tflite_tensors import OPERATORS

from mizzen.frontends.tflite import Model, read
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.legal.tflite import RULES
from mizzen.targets.ethos_u.machine.commands import ALL, Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, generate
from mizzen.targets.rules import NO_FORM

from .kernel_cases import KERNEL_CASES
from .shape_cases import SHAPE_CASES
from .tensor_cases import TENSOR_CASES

ACCELERATORS = {Arch.U55: "ethos-u55-128", Arch.U65: "ethos-u65-512", Arch.U85: "ethos-u85-256"}
CASES = {**KERNEL_CASES, **SHAPE_CASES, **TENSOR_CASES}

EACH = 3
SOME_CASES = [
    pytest.param(name, marks=pytest.mark.sweep if place % EACH else ())
    for place, name in enumerate(CASES)
]
"""One case of three is compiled at once, the others where everything is tried."""

KNOWN_GAPS = {
    # The compiler crashes without a rule that anyone has written down.
    ("quantize-int32-int8", Arch.U85),
}


@cache
def configuration(arch: Arch) -> EthosUConfiguration:
    return resolve(ACCELERATORS[arch])


@cache
def case(name: str) -> tuple[bytes, Model]:
    data = CASES[name]()
    return data, read(data, f"{name}.tflite")


@cache
def broken(name: str, arch: Arch) -> tuple[str, ...]:
    model = case(name)[1]
    return tuple(row.rule for row in breaches_of(model, model.main.operators[0], arch))


def verdict(name: str, arch: Arch) -> bool:
    """Whether the compiler puts the operator on the NPU; where it stops, it does not."""
    outcome = generate(case(name)[0], configuration(arch))
    return isinstance(outcome, Compiled) and not any(work.on_cpu for work in outcome.work)


def assert_agreement(name: str, arch: Arch) -> None:
    if (name, arch) not in KNOWN_GAPS:
        found = broken(name, arch)
        assert verdict(name, arch) == (not found), found


@pytest.mark.parametrize("name", SOME_CASES)
def test_the_rules_agree_with_the_compiler_for_u55(name: str) -> None:
    assert_agreement(name, Arch.U55)


@pytest.mark.parametrize("name", SOME_CASES)
def test_the_rules_agree_with_the_compiler_where_u85_differs(name: str) -> None:
    if bool(broken(name, Arch.U85)) != bool(broken(name, Arch.U55)):
        assert_agreement(name, Arch.U85)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [Arch.U65, Arch.U85], ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", CASES)
def test_the_rules_agree_with_the_compiler_for_the_others(name: str, arch: Arch) -> None:
    assert_agreement(name, arch)


@pytest.mark.parametrize("name", CASES)
def test_u65_takes_what_u55_takes(name: str) -> None:
    assert broken(name, Arch.U65) == broken(name, Arch.U55)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_broken_and_kept_by_a_case(rule: object) -> None:
    """No rule that no case reaches, and none that refuses whatever it is about."""
    row = next(row for row in RULES if row is rule)
    outcomes = {
        row.id in broken(name, arch)
        for name in CASES
        for arch in ALL
        if arch in row.on and case(name)[1].main.operators[0].kind in row.kinds
    }
    never_kept = {"reverse", "arg-max-type"} & {row.id}
    assert outcomes == {True, False} or (never_kept and True in outcomes)


def test_rules_have_names_of_their_own() -> None:
    names = [rule.id for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(rule.kinds <= set(OPERATORS) for rule in RULES)


@pytest.mark.parametrize("arch", ALL, ids=lambda arch: arch.name)
def test_the_operators_are_those_of_the_compiler(arch: Arch) -> None:
    from ethosu import regor

    family = ACCELERATORS[arch].split("-")[1].upper()
    theirs = set(regor.tflite_operator_constraints(f"Ethos{family}"))
    ours = {kind.replace("ARG_MAX", "ARGMAX") for kind, archs in OPERATORS.items() if arch in archs}
    assert ours == theirs


def test_what_a_breach_says() -> None:
    model = case("conv-stride-4-same-padded")[1]
    (found,) = breaches_of(model, model.main.operators[0], Arch.U55)
    assert found.rule == "stride"
    assert found.message == (
        "CONV_2D must have strides up to 3, or neither dilation nor padding, and has stride 4x4 "
        "with padding"
    )
    assert found.limit == "strides up to 3, or neither dilation nor padding"
    assert found.actual == "stride 4x4 with padding"
    assert found.help == "use a smaller stride and pooling, or VALID padding without dilation"
    assert found.source == "Vela 5.2.0, supported operators"


def test_what_an_operator_without_a_form_is_told() -> None:
    model = case("div-int8")[1]
    (found,) = breaches_of(model, model.main.operators[0], Arch.U55)
    assert found.rule == NO_FORM
    assert found.message == "Ethos-U55 has no form of DIV, but Ethos-U85 has"
    assert found.help == (
        "by a constant: MUL with its reciprocal; or allow it on the CPU with `--max-cpu-ops`"
    )


@pytest.mark.parametrize(
    ("name", "actual"),
    [
        ("conv-sum-over", "9144000, over 8323072"),
        ("conv-bias-2^40", "1099511627776, over 1099511627775"),
        ("average-same-9x8", "a kernel of 9x8 with padding"),
        ("max-same-257x1", "a kernel of 257x1"),
        ("depthwise-stride-4x1", "stride 4x1"),
        ("transposed-same-too-small", "7x7 instead of 8x8"),
        ("mean-int16-65792", "65792 of INT16"),
        ("mean-batch-of-2", "a batch of 2, [2, 8, 8, 8]"),
        ("arg-max-128", "128"),
        ("softmax-65537-rows", "65537 rows"),
        ("bilinear-by-2x4", "2 and 4"),
        ("bilinear-by-4-centred", "4"),
        ("nearest-by-7/5", "1.4"),
        ("maximum-other-scale", 'scale 0.04, zero point 0 of "input0" and scale 0.05, '
         'zero point 0 of "output0"'),
        ("add-unquantised", 'INT8 "input0"'),
        ("relu-open-height", '[1, -1, 8, 8] "input0"'),
        ("transpose-0321-int32", "[0, 3, 2, 1] of [1, 4, 5, 6]"),
        ("lstm-peephole", "peephole weights"),
        ("reshape-bool", 'BOOL "input0"'),
    ],
)  # fmt: skip
def test_breaches_give_the_actual_value(name: str, actual: str) -> None:
    model = case(name)[1]
    found = breaches_of(model, model.main.operators[0], Arch.U55)
    assert found[0].actual == actual


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_bias_that_is_no_number_is_refused(dtype: type[np.floating[Any]]) -> None:
    """Scales with which sums may leave 32 bits, and a bias of another type."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8), "int8", 0.5)
    weights = net.constant("w", np.full((4, 8), 127, np.int8), 0.5)
    bias = net.constant("b", np.full(4, np.nan, dtype))
    y = net.tensor("y", (1, 4), "int8", 1e-10)
    net.operator("FULLY_CONNECTED", [x, weights, bias], [y], ("FullyConnectedOptions", {}))
    model = read(net.finish([x], [y]), "net.tflite")
    operator = model.main.operators[0]
    assert [row.rule for row in breaches_of(model, operator, Arch.U55)] == ["bias-type"]
    assert [row.rule for row in defects_of(model, operator, Arch.U55)] == ["scaled-sum"]


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
        assert all(row.message for row in defects_of(model, model.main.operators[0], arch))
