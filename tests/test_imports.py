"""Budgets of time: what `import mizzen` and `mizzen --help` may cost, and what they may load.

A time is the best of several runs of a process, without the start of Python itself where the
budget is the import's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mizzen

IMPORT_SECONDS = 0.2
HELP_SECONDS = 0.4
TRIALS = 5

HELP = [str(Path(sys.executable).parent / "mizzen"), "--help"]


def best_seconds(command: list[str]) -> float:
    """Return the processor's seconds: the clock's are those of all that runs beside the tests."""
    best = float("inf")
    for _ in range(TRIALS):
        start = os.times()
        subprocess.run(command, check=True, capture_output=True)
        end = os.times()
        spent = end.children_user + end.children_system
        best = min(best, spent - start.children_user - start.children_system)
    return best


def modules_after(code: str) -> set[str]:
    """Return the top-level packages that are loaded after `code` ran in a new process."""
    report = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], check=True, capture_output=True, text=True
    )
    return set(run.stdout.splitlines()[-1].split())


def test_import_is_fast(slowness: float) -> None:
    bare = best_seconds([sys.executable, "-c", "pass"])
    taken = best_seconds([sys.executable, "-c", "import mizzen"]) - bare
    assert taken < IMPORT_SECONDS * slowness


def test_help_is_fast(slowness: float) -> None:
    assert best_seconds(HELP) < HELP_SECONDS * slowness


@pytest.mark.parametrize(
    "code",
    [
        "import mizzen",
        "from mizzen.cli.main import main; main(['--help'])",
        "from mizzen.cli.main import main; main(['compile', '--help'])",
    ],
)
def test_no_numeric_or_compiler_package_is_loaded(code: str) -> None:
    loaded = modules_after(code)
    assert not loaded & {"numpy", "flatbuffers", "ethosu", "tflite_micro", "ai_edge_litert"}


@pytest.mark.parametrize("name", mizzen.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(mizzen, name) is not None


def test_run_is_load_and_run(repository: Path, tmp_path: Path) -> None:
    digits = repository / "examples" / "digits"
    images = np.load(digits / "images.npy")
    artifact = mizzen.compile(digits / "digits.tflite", "ethos-u55-64")
    artifact.save(tmp_path / "digits_vela.tflite")
    outputs = mizzen.run(tmp_path / "digits_vela.tflite", images, accelerator="ethos-u55-64")
    assert isinstance(outputs, np.ndarray)
    assert outputs.shape == (100, 10)
    assert np.array_equal(outputs, artifact.run(images))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'mizzen' has no attribute 'compyle'$"):
        _ = mizzen.compyle  # pyright: ignore[reportAttributeAccessIssue] - that is the test
