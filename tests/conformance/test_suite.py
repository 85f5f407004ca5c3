"""What becomes of networks: every verdict, from compilers and kernels as they are."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.conformance.cases import cases, selected
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.networks import Case, Q, Window, binary, conv, i32, one, unary
from mizzen.conformance.oracles import litert
from mizzen.conformance.suite import compare, judge
from mizzen.conformance.verdict import Difference, Row, Verdict
from mizzen.cpu import litert as litert_kernels
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.system_config import resolve

REGOR, LEGACY = Compiler.REGOR, Compiler.LEGACY
FULL = (1, 5, 6, 7)
CASES = {case.name: case for case in cases()}


def verdict(case: Case, compiler: Compiler = REGOR, accelerator: str = "ethos-u55-128") -> Row:
    return judge(case, compiler, resolve(accelerator), 4)


@pytest.mark.parametrize("compiler", Compiler)
def test_a_sum_is_exact_with_all(compiler: Compiler) -> None:
    row = verdict(binary("ADD", FULL, FULL), compiler)
    assert (row.verdict, row.operator, row.dtype) == (Verdict.EXACT, "ADD", "int8")
    assert row.difference == Difference(0, 0, 4 * 5 * 6 * 7)
    assert row.holds


def test_a_table_is_off_by_one() -> None:
    case = unary("GELU", options=("GeluOptions", {"approximate": False}), out_q=Q(0.04, -70),
                 shape=(1, 16, 16, 1))  # fmt: skip
    row = verdict(case)
    assert row.verdict is Verdict.OFF
    assert row.difference is not None
    assert row.difference.steps == 1
    assert 0 < row.difference.share < 0.02


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [(REGOR, "Unsupported reverse mask."), (LEGACY, "IFM Tensor batch size must be 1")],
)
def test_the_reason_for_the_cpu_is_told(compiler: Compiler, reason: str) -> None:
    case = {
        REGOR: one("reverse", "REVERSE_V2", [(1, 5, 4)], [(1, 5, 4)], constants=[i32(1)]),
        LEGACY: conv((2, 5, 5, 8), 8, Window()),
    }[compiler]
    row = verdict(case, compiler)
    assert row.verdict is Verdict.CPU
    assert reason in row.detail
    assert row.holds


BY_DEFAULT = {
    "sum_1x3x3x5_axes12_int8_dropped": Verdict.EXACT,
    "sum_1x6x5x7_axes3_int8_rescaled": Verdict.EXACT,
    "transpose_0213_uint8": Verdict.EXACT,
    "mul_int16_scales": Verdict.EXACT,
    "mul_1x5x6x7_1x5x6x7_int32": Verdict.EXACT,
    "logical_not": Verdict.CPU,
}
"""Networks that Vela gets wrong or refuses, and what becomes of them by default."""


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_what_vela_gets_wrong_is_exact_or_on_the_cpu_by_default(name: str) -> None:
    row = verdict(CASES[name], Compiler.MIZZEN)
    assert (row.verdict, row.exception) == (BY_DEFAULT[name], None)
    assert row.holds


def test_no_core_for_the_accelerator() -> None:
    row = verdict(binary("ADD", FULL, FULL), LEGACY, "ethos-u85-256")
    assert (row.verdict, row.detail) == (Verdict.NOT_RUN, "the compiler does not know Ethos-U85")
    assert not row.holds


def test_differences_are_counted_over_all_outputs() -> None:
    ours = [np.array([[-128, 3]], np.int8), np.array([True, False])]
    theirs = [np.array([[127, 3]], np.int8), np.array([True, True])]
    assert compare(ours, theirs) == Difference(255, 2, 4)
    assert compare(ours, ours) == Difference(0, 0, 4)


def test_litert_says_what_it_does_not_take() -> None:
    case = one("broken", "ADD", [(1, 5), (1, 3)], [(1, 5)])
    with pytest.raises(MizzenError, match=r"E722.*LiteRT's kernels must take the network, but say"):
        litert(case.build(), [np.zeros((1, 1, 5), np.int8), np.zeros((1, 1, 3), np.int8)])


def test_without_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_package(name: str) -> None:
        assert name == "ai_edge_litert"

    litert_kernels._workers.end()
    monkeypatch.setattr(litert_kernels, "find_spec", no_package)
    with pytest.raises(MizzenError) as caught:
        verdict(unary("EXP"))
    assert str(caught.value) == (
        "error[E721]: operators that TensorFlow Lite Micro has no kernel for must have LiteRT's, "
        "but the package ai-edge-litert is not installed\n"
        "  help pip install '.[litert]' in the folder of Mizzen's sources"
    )


def test_names_of_cases_are_their_own() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)


def test_what_cases_say_is_what_they_build() -> None:
    from mizzen.artifact.steps import read_network as read

    for case in cases():
        operators = read(case.build(), case.name).main.operators
        assert case.operator in {operator.kind for operator in operators}
        assert len(operators) == 1 or "VARIABLE" in case.operator


def test_selection() -> None:
    chosen = selected(["ADD", "MUL"], ["int16"])
    assert {(case.operator, case.dtype) for case in chosen} == {("ADD", "int16"), ("MUL", "int16")}
    with pytest.raises(MizzenError, match=r"E720.*operator.*not 'ADDD'\n.*did you mean ADD\?"):
        selected(["ADDD"], [])
    with pytest.raises(MizzenError, match=r"E720.*type must be one.*not 'float64'"):
        selected([], ["float64"])
