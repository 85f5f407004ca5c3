"""`str()` of a result is what its verb prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.tuning import tune
from mizzen.package.tflite.builder import NetworkBuilder

Run = Callable[..., tuple[int, str, str]]
U55 = "ethos-u55-128"


@pytest.fixture
def network(here: Path) -> Path:
    net = NetworkBuilder("network")
    x = net.tensor("x", (1, 4, 4, 8), np.int8, 0.5)
    y = net.tensor("y", (1, 4, 4, 8), np.int8, 0.5)
    z = net.tensor("z", (1, 4, 4, 8), np.int8, 0.5)
    net.operator("ABS", [x], [y])
    net.operator("NEG", [y], [z])
    path = here / "network.tflite"
    path.write_bytes(net.finish([x], [z]))
    return path


def test_of_a_check(network: Path, run: Run) -> None:
    """But for what would make it cheaper, which the verb compiles again to find."""
    _, out, _ = run("check", network, "--accelerator-config", U55)
    said, _, tried = out.rstrip("\n").partition("\n\nWhat would make it cheaper, as tried\n")
    assert str(mizzen.check(network, U55)) == said
    assert "--memory-mode Sram_Only" in tried


def test_of_a_check_with_what_does_not_hold(network: Path) -> None:
    checked = mizzen.check(network, U55, ignore_ops=["NEG"])
    assert not checked.holds
    assert all(f"\n\n{each.render()}" in str(checked) for each in checked.failures)


def test_of_a_report(network: Path, run: Run) -> None:
    """But for what was written."""
    _, out, _ = run("compile", network, "--accelerator-config", U55)
    assert str(mizzen.compile(network, U55).report) == out.split("\n\nWritten\n")[0]


def test_of_a_search(network: Path, run: Run) -> None:
    words: Any = ("tune", network, "--accelerator-config", U55, "--jobs", 1)
    _, out, _ = run(*words)
    tuned = tune(network, U55, jobs=1)
    assert out.startswith(str(tuned))
    assert str(tuned.report) == str(tuned)
    assert "Pareto front: nothing else is better" in str(tuned)
