"""A sample of what `benchmarks/interruptions.py` does with every command, hundreds of times."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sessions are read from /proc")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "interruptions.py"


@pytest.fixture(scope="module")
def interruptions() -> Any:
    """The benchmark, as a module."""
    spec = importlib.util.spec_from_file_location("interruptions", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["interruptions"] = module
    spec.loader.exec_module(module)
    return module


def nothing_wrong(figures: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in figures.items() if name != "trials" and number}


@pytest.mark.parametrize("command", ["compile"])
def test_no_signal_loses_or_leaves_anything(interruptions: Any, command: str) -> None:
    trials = list(interruptions.measured([command], interruptions.SIGNALS, 1, 0, seed=1))
    figures = interruptions.figures(trials)
    assert figures["trials"] == len(interruptions.SIGNALS)
    assert nothing_wrong(figures) == {}


@pytest.mark.sweep
@pytest.mark.parametrize(
    "command", ["run", "report", "evaluate", "emulate-m33", "mesh-run", "export"]
)
def test_no_signal_of_any_command_does(interruptions: Any, command: str) -> None:
    trials = list(interruptions.measured([command], interruptions.SIGNALS, 5, 0, seed=2))
    assert nothing_wrong(interruptions.figures(trials)) == {}


def test_no_full_disk_does(interruptions: Any) -> None:
    if not interruptions.can_mount():
        pytest.skip("this user may not mount a small disk")
    trials = list(interruptions.measured(["compile"], (), 0, 4, seed=1))
    assert nothing_wrong(interruptions.figures(trials)) == {}
    assert {row.status for row in trials} == {0, 2}, "some are full, and one has room"
