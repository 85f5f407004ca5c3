"""The reference's page of functions of 16 bits is what is measured now: a sample, and all of it."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

BOUND = 2
"""Steps, from PyTorch and from the exact function: see `mizzen.frontends.quantized.tables`."""

RECURRENT = ("lstm", "gru")
"""Steps that follow from each other carry a difference on."""


@pytest.fixture(scope="module")
def maker(repository: Path) -> Iterator[ModuleType]:
    """The script that writes the page."""
    path = repository / "docs" / "wide_functions_page.py"
    spec = importlib.util.spec_from_file_location("wide_functions_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for its names
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("name", ["softmax", "tan"])
def test_a_sample_of_its_rows(maker: ModuleType, name: str) -> None:
    page = maker.PAGE.read_text()
    for row in maker.rows(name):
        assert row in page


def test_no_function_is_further_off_than_two_steps(maker: ModuleType) -> None:
    found = re.findall(r"^\| `(.+)` \|.*\|.*\| (\d+) \| (\d*) \|", maker.PAGE.read_text(), re.M)
    assert {name for name, *_ in found} == set(maker.FUNCTIONS)
    for name, *steps in found:
        assert name in RECURRENT or max(map(int, steps)) <= BOUND, name


@pytest.mark.sweep
def test_the_whole_page(maker: ModuleType) -> None:
    assert maker.page() == maker.PAGE.read_text()
