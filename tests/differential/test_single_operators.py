"""Every operator of Vela's report, against the kernels, bit for bit or as the exceptions say."""

from __future__ import annotations

import pytest
from mizzen.compiler.ethos_u.vela.outcome import breaches_of

from mizzen.artifact.steps import read_network as read
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.networks import Case
from mizzen.conformance.suite import judge
from mizzen.conformance.verdict import Verdict
from mizzen.targets.ethos_u.machine.system_config import resolve

FIRST = "ethos-u55-128"
OTHERS = ("ethos-u55-32", "ethos-u65-512", "ethos-u85-256")
REST = (
    "ethos-u55-64",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u85-128",
    "ethos-u85-512",
    "ethos-u85-1024",
    "ethos-u85-2048",
)
COMPILED = (Verdict.EXACT, Verdict.OFF, Verdict.CPU)
CASES = cases()


def check(case: Case, accelerator: str, optimise: str, count: int) -> None:
    """The verdict must hold, and the CPU must be where Mizzen's rules put the operator there."""
    configuration = resolve(accelerator, optimise=optimise)
    row = judge(case, Compiler.REGOR, configuration, count)
    assert row.holds, row
    model = read(case.build(), case.name)
    arch = configuration.accelerator.arch
    refused = any(breaches_of(model, operator, arch) for operator in model.main.operators)
    if row.verdict in COMPILED:
        assert (row.verdict is Verdict.CPU) == refused, row


@pytest.mark.parametrize("family", ["EthosU55", "EthosU85"])
def test_the_suite_covers_what_the_compiler_places(family: str) -> None:
    from ethosu import regor

    covered = {
        operator.kind for case in CASES for operator in read(case.build(), case.name).main.operators
    }
    listed = {
        {"ARGMAX": "ARG_MAX"}.get(name, name) for name in regor.tflite_operator_constraints(family)
    }
    assert not listed - covered


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator(case: Case) -> None:
    check(case, FIRST, "Performance", 8)


@pytest.mark.parametrize("accelerator", OTHERS)
@pytest.mark.parametrize("case", CASES[::12], ids=lambda case: case.name)
def test_operator_elsewhere(case: Case, accelerator: str) -> None:
    check(case, accelerator, "Performance", 8)


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", [FIRST, *OTHERS, *REST])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator_everywhere(case: Case, accelerator: str, optimise: str) -> None:
    check(case, accelerator, optimise, 200)
