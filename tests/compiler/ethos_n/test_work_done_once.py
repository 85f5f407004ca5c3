"""What one compilation does: nothing twice."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import mizzen
from mizzen.targets.ethos_n import legal

ROOT = Path(mizzen.__file__).parent
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
ACCELERATOR = "ethos-n78-4tops-4ple"
MOST_FILES = 119
"""Files of the package that a warm compilation may enter, those of its estimate included."""


def calls(model: Path) -> Counter[tuple[str, str]]:
    """Compile without a proof; count the calls of the package's functions, by file and name."""
    found: Counter[tuple[str, str]] = Counter()

    def called(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            found[path.relative_to(ROOT).as_posix(), frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        mizzen.compile(model, ACCELERATOR, prove="off")
    finally:
        sys.setprofile(before)
    return found


def test_a_graph_is_covered_and_a_stream_encoded_once() -> None:
    found = calls(DIGITS)
    assert found["targets/ethos_n/patterns/covering.py", "Covering.__init__"] == 1
    assert found["targets/ethos_n/commands.py", "encode"] == 1
    assert not found["targets/ethos_n/commands.py", "decode_partial"]
    assert found["targets/ethos_n/program.py", "write_container"] == 1
    passes = found["targets/ethos_n/emit/emission.py", "Emission._emit_pass"]
    # Of the passes as they are made, and of those that the report reads in the written program.
    assert found["targets/ethos_n/timing/cycles.py", "statistics_of"] == 2 * passes


def test_a_query_is_asked_once() -> None:
    """Of the same operation and inputs, however often somebody wants to know."""
    legal.reasons.cache_clear()
    first = calls(DIGITS)
    asked = legal.reasons.cache_info()
    assert asked.hits > 0
    assert first["targets/ethos_n/legal/__init__.py", "reasons"] == asked.misses == asked.currsize
    assert not calls(DIGITS)["targets/ethos_n/legal/__init__.py", "reasons"]


def test_a_warm_compilation_enters_few_files() -> None:
    mizzen.compile(DIGITS, ACCELERATOR, prove="off")
    files = {file for file, _ in calls(DIGITS)}
    assert len(files) <= MOST_FILES, sorted(files)
