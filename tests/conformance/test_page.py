"""The reference's page of conformance is what the command says now: a sample, and all of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mizzen.conformance.cases import cases, selected
from mizzen.conformance.compilers import Compiler
from mizzen.conformance.suite import run
from mizzen.conformance.table import markdown
from mizzen.targets.ethos_u.machine.system_config import resolve

SAMPLE = ("ARG_MAX", "GELU", "PRELU", "SUM", "TILE")
SAMPLES = {
    Compiler.REGOR: SAMPLE,
    Compiler.LEGACY: SAMPLE,
    Compiler.OWN: ("NEG", "TILE"),
    Compiler.MIZZEN: ("NEG",),
}


@pytest.fixture(scope="module")
def maker(repository: Path) -> ModuleType:
    """The script that writes the page."""
    path = repository / "docs" / "conformance_page.py"
    spec = importlib.util.spec_from_file_location("conformance_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("compiler", Compiler)
def test_a_sample_of_its_rows(maker: ModuleType, compiler: Compiler) -> None:
    section = maker.PAGE.read_text().split(f"\n## {compiler.label}\n")[1].split("\n## ")[0]
    accelerators = maker.TABLES[compiler]
    rows = run(selected(SAMPLES[compiler], []), compiler, [resolve(name) for name in accelerators])
    table, _, _ = markdown(list(rows), accelerators).partition("\n\n")
    for line in table.splitlines():
        assert line in section


def test_every_operator_has_a_row(maker: ModuleType) -> None:
    page = maker.PAGE.read_text()
    for case in cases():
        assert page.count(f"\n| `{case.operator}` | {case.dtype} |") == len(maker.TABLES)


@pytest.mark.sweep
def test_the_whole_page(maker: ModuleType) -> None:
    assert maker.page() == maker.PAGE.read_text()
