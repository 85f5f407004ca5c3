"""Looks at where the processor is, which stop QEMU at any place, lose no access to the NPU."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.boards import find_board
from mizzen.emulate import Core, Options, emulate, qemu_cpu
from mizzen.export import runner

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
QEMU = "qemu-system-arm"
RUNS = 20
"""One in twelve lost an access when a look and the watch stopped the processor at once."""


def test_runs_with_constant_looks_are_all_right(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not installed")
    monkeypatch.setattr(qemu_cpu, "LOOK_SECONDS", 0.0002)
    artifact = mizzen.compile(DIGITS / "digits.tflite", "ethos-u55-128", prove="off")
    (info,) = artifact.inputs
    images = np.load(DIGITS / "images.npy")[:1]
    firmware = runner(artifact, find_board("corstone300"), [images.reshape(-1, *info.shape[1:])])
    for _ in range(RUNS):
        options = replace(Options(), core=Core.M55, seconds=30.0)
        result = emulate(firmware, "corstone300", "ethos-u55-128", options)
        assert result.ok, result.failures
