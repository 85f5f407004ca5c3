"""Files as people have them become arrays for an artifact's inputs, or are refused."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.artifact.interface import TensorInfo
from mizzen.cli.inputs import read_inputs
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.model import Quantization

BYTES = TensorInfo("x", (1, 4), np.dtype(np.int8), Quantization((0.5,), (3,), 0))
SHORTS = TensorInfo("y", (1, 4), np.dtype(np.int16), Quantization((0.001,), (0,), 0))


def sound(path: Path, samples: list[int]) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.array(samples, "<i2").tobytes())
    return str(path)


def saved(path: Path, array: Any) -> str:
    np.save(path, array)
    return str(path)


def test_real_numbers_are_quantised(tmp_path: Path) -> None:
    """By hand: 0.25 and -0.25 are ties, which go away from zero; 90 saturates."""
    said: list[str] = []
    path = saved(tmp_path / "x.npy", np.array([[0.25, -0.25, 1.0, 90.0]], np.float32))
    (array,) = read_inputs([path], [BYTES], said.append)
    assert array.dtype == np.int8
    assert array.tolist() == [[4, 2, 5, 127]]
    assert said == ["  x: float32 quantised with scale 0.5 and zero point 3"]


def test_whole_numbers_are_taken_as_they_are(tmp_path: Path) -> None:
    said: list[str] = []
    path = saved(tmp_path / "x.npy", np.array([[1, -128, 127, 0]], np.int64))
    (array,) = read_inputs([path], [BYTES], said.append)
    assert (array.dtype, array.tolist()) == (np.int8, [[1, -128, 127, 0]])
    assert said == ["  x: int64 taken as the integers of int8"]


def test_the_inputs_own_type_is_not_spoken_of(tmp_path: Path) -> None:
    said: list[str] = []
    path = saved(tmp_path / "x.npy", np.zeros((2, 4), np.int8))
    assert read_inputs([path], [BYTES], said.append)[0].shape == (2, 4)
    assert said == []


def test_an_archive_goes_by_names_or_in_order(tmp_path: Path) -> None:
    x, y = np.ones((1, 4), np.int8), np.full((1, 4), 2, np.int16)
    np.savez(tmp_path / "named.npz", y=y, x=x)
    np.savez(tmp_path / "unnamed.npz", x, y)
    for name in ("named.npz", "unnamed.npz"):
        found = read_inputs([str(tmp_path / name)], [BYTES, SHORTS], print)
        assert [array.dtype for array in found] == [np.int8, np.int16]
    np.savez(tmp_path / "one.npz", x=x)
    with pytest.raises(MizzenError, match=r"must have an array for each input, .* none for y"):
        read_inputs([str(tmp_path / "one.npz")], [BYTES, SHORTS], print)


def test_sound_is_samples_or_parts_of_one(tmp_path: Path) -> None:
    path = sound(tmp_path / "a.wav", [0, 16384, -32768, 1] * 2)
    (shorts,) = read_inputs([path], [SHORTS], print)
    assert shorts.tolist() == [[0, 16384, -32768, 1]] * 2
    (quantised,) = read_inputs([path], [BYTES], print)
    assert quantised.tolist() == [[3, 4, 1, 3]] * 2  # 0.5 and -1.0 through 0.5, and 3


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.array([[1, 2, 3, 200]]), "from -128 to 127, of scale 0.5 and zero point 3, not 200"),
        (np.array([[0.0, np.nan, 0.0, 0.0]]), "not float64 with NaN or infinity"),
    ],
)
def test_numbers_without_a_form(tmp_path: Path, array: Any, said: str) -> None:
    with pytest.raises(MizzenError, match=said) as found:
        read_inputs([saved(tmp_path / "x.npy", array)], [BYTES], print)
    assert found.value.diagnostic.code == "E208"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.npz", b"PK\x03\x04", "must be a NumPy archive"),
        ("x.wav", b"RIFF", "must be a WAV file of 16-bit samples"),
        ("missing.npz", None, "no such file"),
        ("missing.wav", None, "no such file"),
    ],
)
def test_files_that_are_not_what_their_names_say(
    tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(MizzenError, match=said) as found:
        read_inputs([str(tmp_path / name)], [BYTES], print)
    assert found.value.diagnostic.code == "E203"


def test_a_recording_of_another_length(tmp_path: Path) -> None:
    with pytest.raises(MizzenError, match=r"must have a multiple of 4 samples .* not 3"):
        read_inputs([sound(tmp_path / "a.wav", [1, 2, 3])], [BYTES], print)


def test_a_recording_for_an_input_of_features(tmp_path: Path) -> None:
    info = TensorInfo("mfcc", (1, 49, 10, 1), BYTES.dtype, BYTES.quantization)
    with pytest.raises(MizzenError) as refused:
        read_inputs([sound(tmp_path / "a.wav", [1] * 490)], [info], print)
    diagnostic = refused.value.diagnostic
    assert diagnostic.code == "E255"
    assert diagnostic.message == (
        f"{tmp_path}/a.wav: the input mfcc must have one dimension of samples to take a "
        "recording as it is, and has the shape [1, 49, 10, 1]"
    )
    assert diagnostic.help == (
        "it may take features: compute them with --features mlperf-kws (or mlperf-anomaly), or "
        "--front-end"
    )
