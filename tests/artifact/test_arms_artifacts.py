"""Networks that Arm compiled, with the inputs and outputs that Arm's application has beside them.

They are what the simulator and the hazard checker are held to that nobody here has made: neither
the commands nor the numbers.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import mizzen

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("MIZZEN_GOLDEN", ROOT.parent / "shared" / "golden")) / "arm-baremetal"
FILES = sorted(FOLDER.glob("*_vela.tflite"))
MISSING = pytest.param(
    None, marks=pytest.mark.skip(f"no artifacts of Arm's in {FOLDER}: set MIZZEN_GOLDEN")
)


@pytest.mark.parametrize("file", FILES or [MISSING], ids=lambda file: file and file.stem)
def test_the_simulator_gives_what_arm_says(file: Path) -> None:
    data = np.load(file.with_name(file.name.replace("_vela.tflite", ".npz")))
    artifact = mizzen.load(file)
    (info,) = artifact.inputs
    result = np.asarray(artifact.run(data["input"].reshape(1, *info.shape)))
    assert np.array_equal(result.ravel(), data["output"])
    assert not artifact.hazards
