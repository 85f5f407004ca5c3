"""A command line in this process, and a folder to work in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mizzen.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line; give its exit status, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: object) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return status, out, err

    return call


@pytest.fixture
def here(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with the example's files."""
    for name in ("digits.tflite", "images.npy", "labels.npy"):
        shutil.copy(repository / "examples" / "digits" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def velas(here: Path, run: Run) -> Path:
    """The example with Vela's code, of which places in the stream are known."""
    words = ("--accelerator-config", "ethos-u55-128", "--generator", "vela")
    assert run("compile", "digits.tflite", *words)[0] == 0
    return here / "output" / "digits_vela.tflite"
