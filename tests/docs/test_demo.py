"""The demonstration proves what it says it proves, and fails when it does not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn brings the demo's images")


def demonstrate(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "examples" / "digits" / "demo.py"), *words]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "accelerator", ["ethos-u55-128", pytest.param("ethos-u65-512", marks=pytest.mark.sweep)]
)
def test_no_output_differs(accelerator: str, repository: Path, tmp_path: Path) -> None:
    words = ("--output-dir", str(tmp_path), "--accelerator-config", accelerator)
    done = demonstrate(repository, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Of 6,000 outputs, 0 differ between the NPU and TFLM's kernels.\n" in done.stdout
    assert "  operators on the NPU  8 of 8\n" in done.stdout
    accuracies = [float(line[-6:-1]) for line in done.stdout.splitlines() if line.endswith("%")]
    assert len(accuracies) == 3
    assert min(accuracies) > 96
    assert (tmp_path / "digits_vela.tflite").is_file()
