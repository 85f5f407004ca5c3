"""The reference's page of ONNX operators has the registry's rows and what is measured now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("onnx", reason="the package onnx is not installed (pip install '.[onnx]')")


@pytest.fixture(scope="module")
def maker(repository: Path) -> ModuleType:
    """The script that writes the page."""
    path = repository / "docs" / "onnx_operators_page.py"
    spec = importlib.util.spec_from_file_location("onnx_operators_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_sample_of_its_rows(maker: ModuleType) -> None:
    page = maker.PAGE.read_text()
    kinds = ("Relu", "Concat", "MaxPool")
    done = maker.trials(kinds)
    for operator in maker.lowered():
        if operator.kind in kinds and not operator.domain:
            assert maker.row(operator, done[operator.kind]) in page


def test_every_operator_has_a_row(maker: ModuleType) -> None:
    names = re.findall(r"^\| `([^`]+)` \|", maker.PAGE.read_text(), re.M)
    rows = [
        f"{each.domain}.{each.kind}" if each.domain else each.kind
        for each in maker.OPERATORS.values()
    ]
    assert sorted(names) == sorted(rows)
    for line in maker.refused():
        assert line in maker.PAGE.read_text()


@pytest.mark.sweep
def test_the_whole_page(maker: ModuleType) -> None:
    assert maker.page() == maker.PAGE.read_text()
