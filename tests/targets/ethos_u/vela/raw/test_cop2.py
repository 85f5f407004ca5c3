"""Payloads of both formats, as Vela writes them: the same stream, and the same results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.targets.ethos_u.machine.program import Program

ROOT = Path(__file__).parents[5]
DIGITS = ROOT / "examples" / "digits"


def compiled(folder: Path, accelerator: str, *options: str) -> tuple[mizzen.Artifact, Program]:
    """Return what Vela makes of the digits, and its program."""
    vela = [sys.executable, "-m", "ethosu.vela", str(DIGITS / "digits.tflite"), *options]
    written = ["--output-format", "raw", "--output-dir", str(folder)]
    target = ["--accelerator-config", accelerator]
    subprocess.run([*vela, *target, *written], check=True, capture_output=True)
    artifact = mizzen.load(folder / "digits_vela.npz")
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    return artifact, step.program


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_formats_say_the_same(accelerator: str, tmp_path: Path) -> None:
    first, known = compiled(tmp_path / "cop1", accelerator)
    images = np.load(DIGITS / "images.npy").reshape(-1, *first.inputs[0].shape[1:])
    wanted = first.run(images)
    second, program = compiled(tmp_path / "cop2", accelerator, "--cop-format", "COP2")
    np.testing.assert_array_equal(program.words, known.words)
    assert program.hardware == known.hardware
    np.testing.assert_array_equal(second.run(images), wanted)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_inputs_and_outputs_may_have_regions_of_their_own(accelerator: str, tmp_path: Path) -> None:
    first, _ = compiled(tmp_path / "cop1", accelerator)
    options = ("--cop-format", "COP2", "--separate-io-regions")
    apart, program = compiled(tmp_path / "apart", accelerator, *options)
    assert [row.region for row in (*program.inputs, *program.outputs)] == [3, 4]
    images = np.load(DIGITS / "images.npy").reshape(-1, *first.inputs[0].shape[1:])
    np.testing.assert_array_equal(apart.run(images), first.run(images))
    assert not apart.hazards
