"""Real networks on the simulated NPU against TFLite Micro, bit for bit."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.sealing import unsealed
from mizzen.conformance.suite import random_inputs
from mizzen.cpu.tflm import CpuKernels
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

SAMPLE = (
    ("ethos-u55-32", "Performance"),
    ("ethos-u55-32", "Size"),
    ("ethos-u55-128", "Performance"),
    ("ethos-u55-128", "Size"),
    ("ethos-u65-512", "Performance"),
    ("ethos-u65-512", "Size"),
    ("ethos-u85-128", "Size"),
    ("ethos-u85-256", "Performance"),
    ("ethos-u85-512", "Performance"),
    ("ethos-u85-2048", "Performance"),
)
"""What every run of the tests tries: both settings, and each way to divide weights."""
FRAME, STRIDE, FRAMES = 480, 320, 49
"""Samples at 16 kHz: windows of 30 ms every 20 ms fill the 49 rows of the speech network."""


def check(path: Path, accelerator: str, optimise: str, count: int) -> None:
    data = path.read_bytes()
    artifact = mizzen.compile(path, accelerator, optimise=optimise, prove="off")
    inputs = random_inputs([(tensor.shape, tensor.dtype) for tensor in artifact.inputs], count)
    results = artifact.run(*inputs)
    outputs = results if isinstance(results, tuple) else (results,)
    for ours, theirs in zip(outputs, CpuKernels(data).run(inputs), strict=True):
        np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)


@pytest.mark.parametrize(("accelerator", "optimise"), SAMPLE)
def test_network(network_file: Path, accelerator: str, optimise: str) -> None:
    check(network_file, accelerator, optimise, 5)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_the_proof_agrees(network_file: Path, accelerator: str) -> None:
    """What `test_network` finds equal is proved equal by the compiler, and stays where it is."""
    proved = mizzen.compile(network_file, accelerator)
    bare = mizzen.compile(network_file, accelerator, prove="off")
    assert unsealed(proved.data, proved.name) == unsealed(bare.data, bare.name)
    assert proved.report is not None
    proof = proved.report.proof
    assert (proof.equal >= proof.parts > 0) == any(step.on_npu for step in proved.steps)
    assert proof.bounded == proof.unproved == proof.differing == ()


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["Performance", "Size"])
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_network_with_200_inputs(network_file: Path, accelerator: str, optimise: str) -> None:
    check(network_file, accelerator, optimise, 200)


def samples(path: Path) -> npt.NDArray[np.int16]:
    """One second of sound, int16 [16000]."""
    with wave.open(str(path)) as sound:
        return np.frombuffer(sound.readframes(sound.getnframes()), np.int16)


def windows(sound: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """Overlapping windows, int16 [49, 480]."""
    starts = range(0, FRAMES * STRIDE, STRIDE)
    return np.stack([np.resize(sound[start : start + FRAME], FRAME) for start in starts])


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize(("word", "label"), [("yes", 2), ("no", 3)])
def test_real_speech(models: Path, word: str, label: int, accelerator: str) -> None:
    frames = windows(samples(models / f"{word}_1000ms.wav"))
    preprocessor = mizzen.compile(
        models / "audio_preprocessor_int8.tflite", accelerator, prove="off"
    )
    session = preprocessor.session()  # the noise estimate goes on from window to window
    features = np.stack([_single(session.run(frame[None])) for frame in frames])
    speech = mizzen.compile(models / "micro_speech_quantized.tflite", accelerator, prove="off")
    scores = _single(speech.run(features.reshape(1, -1)))
    data = (models / "micro_speech_quantized.tflite").read_bytes()
    (oracle,) = CpuKernels(data).run([features.reshape(1, 1, -1)])
    np.testing.assert_array_equal(scores.reshape(oracle.shape), oracle)
    assert int(scores.argmax()) == label


def _single(result: Any) -> npt.NDArray[np.int8]:
    assert isinstance(result, np.ndarray)
    return result
