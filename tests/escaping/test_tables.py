"""Cells of CSV and Markdown: a name is a name in them."""

from __future__ import annotations

import pytest

from mizzen.escaping import csv_cell, markdown_code

from ..hostile import NAMES  # noqa: TID252 tests are no package with a name


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1", " =1", "＝1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1, 1.5, -0.0, None, True, "conv", "a=b", "x-1", "", "'=1"])
def test_other_cells_stay(value: object) -> None:
    assert csv_cell(value) is value


def test_long_texts_are_cut() -> None:
    assert len(str(csv_cell("=" * 1_000_000))) == 4001


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_code_in_one_cell(name: str) -> None:
    cell = markdown_code(name)
    assert cell[0] == cell[-1] == "`"
    assert "`" not in cell[1:-1]
    assert "\n" not in cell
    assert "|" not in cell.replace("\\|", "")
    assert len(cell) < 1000
