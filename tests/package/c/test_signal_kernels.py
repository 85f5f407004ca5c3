"""Kernels of operators on sound: bit for bit what TensorFlow Lite Micro computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import MizzenError
from mizzen.export import c_container
from mizzen.package.tflite.builder import NetworkBuilder

from .runtime_host import Host, built, fuzz

FRAME = 480
RANDOM = np.random.default_rng(3)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), "gcc")


def frames() -> list[np.ndarray[tuple[int, ...], np.dtype[np.int16]]]:
    """Noise, a rising tone, silence, and the ends of the range."""
    time = np.arange(8 * FRAME)
    tone = (np.sin(time * time / 20000) * np.geomspace(1, 32767, time.size)).astype(np.int16)
    extremes = [np.full(FRAME, value, np.int16) for value in (0, -32768, 32767, 1)]
    noise = RANDOM.integers(-32768, 32768, (2, FRAME)).astype(np.int16)
    return [row[None] for row in (*noise, *tone.reshape(8, FRAME), *extremes)]


def test_the_features_of_speech_are_the_same(
    program: Path, model_file: Callable[[str], Path]
) -> None:
    artifact = mizzen.load(model_file("audio_preprocessor_int8.tflite"))
    session = artifact.session()
    with Host(program, c_container(artifact).data) as host:
        for frame in frames():
            expected = session.run(frame)
            assert isinstance(expected, np.ndarray)
            assert host.run(frame) == [expected.tobytes()]


def transform(length: int, folder: Path) -> Artifact:
    net = NetworkBuilder()
    x = net.tensor("x", (length,), np.int16)
    y = net.tensor("y", (length + 2,), np.int16)
    options = flexbuffers.Dumps({"T": 7, "fft_length": length})
    net.operator("SignalRfft", [x], [y], custom_options=bytes(options))
    file = folder / "network.tflite"
    file.write_bytes(net.finish([x], [y]))
    return mizzen.load(file)


@pytest.mark.parametrize("length", [16, 32, 64, 128, 256, 1024])
def test_spectra_of_any_power_of_two_are_the_same(
    program: Path, length: int, tmp_path: Path
) -> None:
    artifact = transform(length, tmp_path)
    with Host(program, c_container(artifact).data) as host:
        for _ in range(3):
            samples = RANDOM.integers(-32768, 32768, length).astype(np.int16)
            expected = artifact.run(samples)
            assert isinstance(expected, np.ndarray)
            assert host.run(samples) == [expected.tobytes()]


def test_other_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MizzenError) as caught:
        c_container(transform(96, tmp_path))
    assert str(caught.value) == (
        "error[E465]: the C runtime takes tflite::SignalRfft with limits: fft_length must be a "
        "power of two from 8 to 8192\n"
        '  at   network.tflite, operator 0 SignalRfft -> "y"\n'
        "  help export for a runtime that has it, or replace the operator in the model; "
        "`mizzen run` executes it on the host"
    )


@pytest.mark.sweep
def test_damaged_containers_stay_inside(model_file: Callable[[str], Path], tmp_path: Path) -> None:
    artifact = mizzen.load(model_file("audio_preprocessor_int8.tflite"))
    counts = fuzz(built(tmp_path, "clang"), c_container(artifact).data, 20_000)
    assert sum(counts) == 20_000
