"""Every operator of Vela's report, against the kernels, bit for bit or as the exceptions say."""

from __future__ import annotations

import pytest

from mizzen.artifact.steps import read_network as read
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.networks import Case
from mizzen.conformance.suite import judge
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
CASES = cases()


def check(case: Case, accelerator: str, optimise: str, count: int) -> None:
    """The verdict must hold."""
    configuration = resolve(accelerator, optimise=optimise)
    row = judge(case, Compiler.REGOR, configuration, count)
    assert row.holds, row


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
