"""Graphs before and after passes, as text: `cases/NAME.txt` has the passes, then both graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mizzen.graph import parse, print_graph
from mizzen.ops import verify

from .named import PASSES, pipeline

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
DIVIDER = "-" * 80 + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_graph_becomes_what_the_case_says(path: Path, update_golden: bool) -> None:
    passes, before, *after = path.read_text().split(DIVIDER)
    graph = parse(before, path.name)
    assert not verify(graph)
    pipeline(passes.splitlines()[-1]).run(graph)
    text = print_graph(graph)
    if update_golden:
        path.write_text(DIVIDER.join((passes, before, text)))
    assert not verify(graph)
    assert [text] == after or update_golden


def test_there_are_cases_for_every_pass() -> None:
    named = {
        name for path in CASES for name in path.read_text().split("\n-")[0].split()[-1].split(",")
    }
    assert named == set(PASSES)
