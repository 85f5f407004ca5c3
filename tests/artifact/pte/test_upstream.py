"""Programs that ExecuTorch's Arm backend made: they run here as PyTorch and Arm's model say."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.targets.ethos_u.machine.program import Program

HERE = Path(__file__).parent
ACCELERATORS = {
    "ds_cnn_u55": "ethos-u55-128",
    "cnn_int16_u85": "ethos-u85-256",
    "state_u85": "ethos-u85-256",
    "cortex_m_u55": "ethos-u55-128",
    "apart_u85": "ethos-u85-256",
}


WITHOUT_KERNELS = "cnn_int16_u85"
"""The program that needs no PyTorch."""


def loaded(name: str) -> tuple[Artifact, dict[str, Any]]:
    if name != WITHOUT_KERNELS:
        pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
    with np.load(HERE / f"{name}.npz") as arrays:
        return mizzen.load(HERE / f"{name}.pte"), dict(arrays)


@pytest.mark.parametrize("name", ["ds_cnn_u55", "state_u85", "cortex_m_u55", "apart_u85"])
def test_gives_what_pytorch_gives(name: str) -> None:
    artifact, known = loaded(name)
    session = artifact.session()
    for given, wanted in zip(known["inputs"], known["outputs"], strict=True):
        np.testing.assert_array_equal(session.run(given), wanted)


def test_an_inference_starts_anew_and_a_session_goes_on() -> None:
    artifact, known = loaded("state_u85")
    first = known["inputs"][0]
    np.testing.assert_array_equal(artifact.run(first), known["outputs"][0])
    np.testing.assert_array_equal(artifact.run(first), known["outputs"][0])
    session = artifact.session()
    assert not np.array_equal(session.run(first), session.run(first))


@pytest.mark.parametrize("name", ["ds_cnn_u55", "cnn_int16_u85"])
def test_a_batch_is_so_many_inferences(name: str) -> None:
    artifact, known = loaded(name)
    alone = np.concatenate([np.asarray(artifact.run(given)) for given in known["inputs"]])
    np.testing.assert_array_equal(artifact.run(known["inputs"][:, 0]), alone)


@pytest.mark.parametrize("name", ACCELERATORS)
def test_delegates_give_what_the_reference_model_gives(name: str) -> None:
    artifact, known = loaded(name)
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    assert len(steps) == sum(key.startswith("given") and key.endswith("_0") for key in known)
    for place, step in enumerate(steps):
        program: Program = step.program
        taken = [known[f"taken{place}_{index}"] for index in range(len(program.inputs))]
        cases = len(taken[0])
        shaped = zip(taken, program.inputs, strict=True)
        outcome = step.simulator.run([row.reshape(cases, *at.shape) for row, at in shaped], cases)
        for index, found in enumerate(outcome.outputs):
            wanted = known[f"given{place}_{index}"]
            np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize(("name", "accelerator"), ACCELERATORS.items())
def test_says_what_it_is_for(name: str, accelerator: str) -> None:
    artifact, known = loaded(name)
    assert artifact.accelerator == accelerator
    (taken,), (given,) = artifact.inputs, artifact.outputs
    assert (taken.shape, taken.dtype) == (known["inputs"].shape[1:], np.float32)
    assert (given.shape, given.dtype) == (known["outputs"].shape[1:], np.float32)
    with pytest.raises(mizzen.MizzenError, match=r"error\[E113\]"):
        mizzen.load(HERE / f"{name}.pte", "ethos-u55-32")


@pytest.mark.parametrize("name", ACCELERATORS)
def test_streams_are_without_hazards(name: str) -> None:
    found = check_artifact(loaded(name)[0])
    assert found.steps
    assert found.inferences
    assert not found.findings


def test_kernels_between_delegates_are_one_step() -> None:
    artifact, _ = loaded("ds_cnn_u55")
    kinds = [
        kind for step in artifact.steps if not isinstance(step, NpuStep) for kind in step.kinds
    ]
    assert kinds == ["quantize", "dequantize", "aten::avg_pool2d.out", "quantize", "dequantize"]


@pytest.mark.parametrize("name", ["state_u85"])
def test_copies_and_other_processes_run_it_too(name: str) -> None:
    artifact, known = loaded(name)
    for other in (copy.deepcopy(artifact), pickle.loads(pickle.dumps(artifact))):
        np.testing.assert_array_equal(other.run(known["inputs"][0]), known["outputs"][0])


def test_a_program_without_kernels_needs_no_pytorch() -> None:
    code = (
        "import sys, numpy, mizzen\n"
        f"artifact = mizzen.load({str(HERE / 'cnn_int16_u85.pte')!r})\n"
        "artifact.run(numpy.zeros((1, 3, 16, 16), numpy.float32))\n"
        "assert 'torch' not in sys.modules and 'executorch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_is_saved_as_it_is(tmp_path: Path) -> None:
    artifact, _ = loaded("ds_cnn_u55")
    artifact.save(tmp_path / "again.pte")
    assert (tmp_path / "again.pte").read_bytes() == (HERE / "ds_cnn_u55.pte").read_bytes()
    with pytest.raises(mizzen.MizzenError) as error:
        artifact.save(tmp_path / "again.tflite")
    assert str(error.value) == (
        "error[E180]: ds_cnn_u55.pte must be saved as .pte, not as .tflite\n"
        "  help artifact.save('name.pte')"
    )
