"""The suite's exceptions: each happens, none explains more than it says, all are documented."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.exceptions import EXCUSES, excused
from mizzen.conformance.suite import judge
from mizzen.conformance.verdict import Difference, Row, Verdict
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.system_config import resolve

CASES = {case.name: case for case in cases()}
DEPRECATED = {
    "mirror_pad": "MIRROR_PAD, deprecated core",
    "concatenation_of_scales": "CONCATENATION of different scales, deprecated core",
    "transpose_0213_int32": "TRANSPOSE, int32, deprecated core",
    "unpack_last": "UNPACK along the last axis, deprecated core",
}


def test_the_documentation_has_every_exception(repository: Path) -> None:
    pages = ("explanation/exceptions.md", "how-to/conformance.md")
    page = "".join((repository / "docs" / name).read_text() for name in pages)
    for excuse in EXCUSES:
        row, section = f"\n| {excuse.title}", f"\n## {excuse.title}\n"
        assert row in page or section in page, excuse.title


@pytest.mark.parametrize("name", DEPRECATED)
def test_the_deprecated_core(name: str) -> None:
    row = judge(CASES[name], Compiler.LEGACY, resolve("ethos-u55-128"), 8)
    assert row.exception == DEPRECATED[name], row


def test_every_excused_operator_is_in_the_suite() -> None:
    known = {(case.operator, case.dtype) for case in CASES.values()}
    for excuse in EXCUSES:
        for operator in excuse.operators:
            assert any((operator, dtype) in known for dtype in excuse.dtypes), excuse


def test_an_exception_holds_within_its_bounds() -> None:
    row = Row("gelu", "GELU", "int8", "ethos-u55-128", Verdict.OFF, "", Difference(1, 1, 100))

    def title(row: Row, compiler: Compiler = Compiler.REGOR) -> str | None:
        return excused(row, compiler, Arch.U55).exception

    assert title(row) == "GELU, int8 and uint8"
    assert title(replace(row, difference=Difference(2, 1, 100))) is None
    assert title(replace(row, difference=Difference(1, 3, 100))) is None
    assert title(replace(row, dtype="int16")) is None
    assert title(replace(row, verdict=Verdict.CRASHED)) is None
    summed = replace(row, operator="SUM", case="sum_1x3x3x5_axes12_int8")
    assert title(summed) == "SUM over two axes"
    assert title(summed, Compiler.LEGACY) is None
    assert title(replace(summed, case="sum_1x3x3x5_axes1_int8")) is None
