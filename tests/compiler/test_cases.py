"""Small networks that went wrong once, with the numbers that are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen

ETHOS_U = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")

ON_NPU = (
    "D3_sparse_block",
    "DN_densify",
    "D20_tconv_weights_unfolded",
    "T4c_conv_int4",
    "EDGE_constant_output",
)
"""Those whose operators are all for the NPU."""

ONE_STEP = "ethos-n78-4tops-4ple"
"""Ethos-N scales with 16 bits, and is at most one step away."""

KEPT = {("D20_tconv_weights_unfolded", ONE_STEP)}
"""Those with operators that the NPU does not have."""


@pytest.mark.parametrize("accelerator", [*ETHOS_U, ONE_STEP])
@pytest.mark.parametrize("name", ON_NPU)
def test_right_numbers(name: str, accelerator: str, cases: Path) -> None:
    artifact = mizzen.compile(cases / f"{name}.tflite", accelerator)
    arrays = np.load(cases / f"{name}.npz")
    found = artifact.run(arrays["input_0"])
    furthest = 1 if accelerator == ONE_STEP else 0
    for place, array in enumerate(found if isinstance(found, tuple) else (found,)):
        expected = arrays[f"output_{place}"]
        far = np.abs(array.reshape(expected.shape).astype(int) - expected.astype(int))
        assert far.max() <= furthest
    assert artifact.report is not None
    assert bool(artifact.report.on_cpu) == ((name, accelerator) in KEPT)
    assert not artifact.report.diagnostics
