"""The fixture for users' tests, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .firmware import Build

PLUGIN = "mizzen.emulate.pytest_plugin"
TEST = """
from dataclasses import replace
from mizzen.emulate import Fault, Options

def test_works(emulate_firmware):
    result = emulate_firmware({firmware!r}, accelerator="ethos-u55-128")
    assert result.ok
    assert result.invocation_count == 1

def test_survives(emulate_firmware):
    assert emulate_firmware({firmware!r}, replace(Options(), fault=Fault.BUS_ERROR)).ok
"""


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "100"}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment
    )


def test_the_fixture_runs_firmware_and_shows_why_it_failed(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmizzen_accelerator = ethos-u55-128\n")
    text = TEST.format(firmware=str(Build("careful").prebuilt))
    (tmp_path / "test_firmware.py").write_text(text)
    shown = pytest_in(tmp_path).stdout
    assert "1 failed, 1 passed" in shown
    assert "the NPU failed: 0x00000804" in shown
    assert "error[E437]: the firmware must end with status 0, and ended with 5" in shown


def test_a_run_without_it_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n    assert 'numpy' not in sys.modules\n"
    )
    assert "1 passed" in pytest_in(tmp_path).stdout
