"""Folders of samples: what is read, in which order, with which labels, and what is refused."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.artifact.interface import TensorInfo
from mizzen.data.features import Features
from mizzen.data.forms import Forms, SoundForm
from mizzen.data.opening import Opened, open_data
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.model import Quantization

X = TensorInfo("x", (1, 4), np.dtype(np.int8), Quantization((0.5,), (3,), 0))


def raw(folder: Path, **files: list[int]) -> Path:
    """Write .bin files; two underscores are a folder's end."""
    for name, values in files.items():
        path = folder / f"{name.replace('__', '/')}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(np.array(values, np.int8).tobytes())
    return folder


def opened(folder: Path, labels: Any = None, **more: Any) -> Opened:
    return open_data([str(folder)], [X], labels, **more)


def names(found: Opened) -> list[str]:
    return [found.data.name(index) for index in range(found.data.size)]


def label_values(found: Opened) -> list[Any]:
    assert found.labels is not None
    return found.labels.values.tolist()


def test_sub_folders_are_classes(tmp_path: Path) -> None:
    folder = raw(tmp_path, cat__b=[1, 2, 3, 4], cat__a=[0] * 4, dog__a=[5] * 8)
    (tmp_path / "README.txt").write_text("left out")
    found = opened(folder)
    assert names(found) == ["cat/a.bin", "cat/b.bin", "dog/a.bin"]
    assert label_values(found) == [0, 0, 1]
    assert found.notes == ("  classes: 0 cat, 1 dog",)
    read = found.data.columns[0].read()
    assert [rows.tolist() for rows in read] == [
        [[[0, 0, 0, 0]]], [[[1, 2, 3, 4]]], [[[5, 5, 5, 5]], [[5, 5, 5, 5]]]
    ]  # fmt: skip


def test_classes_have_the_order_that_is_given(tmp_path: Path) -> None:
    folder = raw(tmp_path, cat__a=[0] * 4, dog__a=[0] * 4)
    assert label_values(opened(folder, classes=("fox", "dog", "cat"))) == [2, 1]
    with pytest.raises(MizzenError, match=r"one of the classes fox, dog, not 'cat'") as error:
        opened(folder, classes=("fox", "dog"))
    assert error.value.diagnostic.code == "E244"


def test_numbers_as_names_of_folders_are_labels(tmp_path: Path) -> None:
    found = opened(raw(tmp_path, **{"10__a": [0] * 4, "2__a": [0] * 4}))
    assert (names(found), label_values(found)) == (["10/a.bin", "2/a.bin"], [10, 2])


@pytest.mark.parametrize(
    "text",
    [
        "file,label\nb.bin,1\na.bin,0\n",
        "label;path\n1;b\n0;a\n",
        "b.bin,2,1\na.bin,2,0\n",
        "﻿b.bin, 12, 1\r\na.bin, 12, 0\r\n",
        "sub/b.wav,1\na.bin,0",
    ],
)
def test_labels_files(tmp_path: Path, text: str) -> None:
    folder = raw(tmp_path / "data", a=[0] * 4, b=[1] * 4, c=[2] * 4)
    (tmp_path / "l.csv").write_text(text, encoding="utf-8")
    found = opened(folder, tmp_path / "l.csv")
    assert names(found) == ["b.bin", "a.bin"]
    assert label_values(found) == [1, 0]
    assert found.notes == ("  l.csv has no label for 1 file, left out",)


def test_the_labels_of_a_folder_are_found_in_it(tmp_path: Path) -> None:
    folder = raw(tmp_path, a=[0] * 4)
    (folder / "y_labels.csv").write_text("a.bin,2,1\n")
    found = opened(folder)
    assert label_values(found) == [1]
    assert found.notes == (f"  labels: {folder / 'y_labels.csv'}",)


def test_labels_in_order_must_be_as_many(tmp_path: Path) -> None:
    folder = raw(tmp_path / "data", a=[0] * 4, b=[0] * 4)
    np.save(tmp_path / "y.npy", np.array([1, 0]))
    assert label_values(opened(folder, tmp_path / "y.npy")) == [1, 0]
    (tmp_path / "y.txt").write_text("1\n0\n1\n")
    with pytest.raises(MizzenError, match="a label for each of the 2 files, not 3") as error:
        opened(folder, tmp_path / "y.txt")
    assert error.value.diagnostic.code == "E242"


def test_windows_of_raw_files_as_mlperf_tiny_has_them(tmp_path: Path) -> None:
    """Ten float32 numbers in windows of four that move by two: four inferences."""
    values = np.arange(10, dtype="<f4")
    (tmp_path / "s.bin").write_bytes(values.tobytes())
    (tmp_path / "y_labels.csv").write_text("s.bin,2,1,16,8\n")
    found = opened(tmp_path)
    (rows,) = found.data.columns[0].read()
    assert rows.dtype == np.float32
    assert rows[:, 0].tolist() == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7], [6, 7, 8, 9]]


def test_raw_pixels(tmp_path: Path) -> None:
    (tmp_path / "p.bin").write_bytes(bytes((0, 1, 128, 255)))
    found = opened(tmp_path, forms=Forms(raw_type="uint8"))
    assert found.data.columns[0].read()[0].tolist() == [[[-128, -127, 0, 127]]]
    assert "pixels 0 to 255 taken as int8 -128 to 127" in found.notes[0]


def test_numpy_files_have_one_inference_or_several(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(4, np.int8))
    np.save(tmp_path / "b.npy", np.zeros((3, 4), np.float32))
    read = opened(tmp_path).data.columns[0].read()
    assert [rows.shape for rows in read] == [(1, 1, 4), (3, 1, 4)]


def sound(path: Path, samples: Any, channels: int = 1) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.asarray(samples, "<i2").tobytes())


def test_a_front_end_sees_frames_in_order(tmp_path: Path, models: Path) -> None:
    """The features of speech, frame by frame from the package tflite-micro itself."""
    runtime = pytest.importorskip("tflite_micro", reason="it is the oracle").runtime
    network = models / "audio_preprocessor_int8.tflite"
    features = TensorInfo("f", (1, 1960), np.dtype(np.int8), Quantization((0.1,), (0,), 0))
    form = Forms(sound=SoundForm(front_end=network))
    (tmp_path / "yes").mkdir()
    (tmp_path / "yes" / "y.wav").write_bytes((models / "yes_1000ms.wav").read_bytes())
    found = open_data([str(tmp_path)], [features], None, forms=form)
    (rows,) = found.data.columns[0].read()
    assert rows.shape == (1, 1, 1960)

    with wave.open(str(models / "yes_1000ms.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    interpreter = runtime.Interpreter.from_bytes(network.read_bytes(), arena_size=1 << 20)
    frames: list[Any] = []
    for start in range(0, 49 * 320, 320):
        interpreter.set_input(samples[np.newaxis, start : start + 480], 0)
        interpreter.invoke()
        frames.append(np.array(interpreter.get_output(0)))
    theirs = np.concatenate(frames).ravel()
    assert rows.dtype == np.int8
    assert np.array_equal(rows.ravel(), theirs)


@pytest.mark.parametrize(
    ("files", "labels", "code", "said"),
    [
        ({}, None, "E240", "must hold samples of one kind, and holds none"),
        ({"a.bin": 4, "b.npy": 4}, None, "E240", r"and holds 1 \.bin, 1 \.npy"),
        ({"a.bin": 5}, None, "E246", r"a\.bin must have 4 bytes, 4 of int8 or a multiple, not 5"),
        ({"a.bin": 0}, None, "E246", "must have 4 bytes, 4 of int8 or a multiple, not 0"),
        ({"a.npy": 4}, None, "E203", r"a\.npy must be a NumPy file"),
        ({"a.wav": 4}, None, "E203", r"a\.wav must be a WAV file of 16-bit samples"),
        ({"a.bin": 4}, "b.bin,1", "E241", r"has not b\.bin \(row 1\)"),
        ({"a.bin": 4}, "", "E243", "must have labels, and has no line"),
        ({"a.bin": 4}, "a.bin,1,2,3", "E243", "line 1, must have a file and its label, not "),
        ({"a.bin": 4}, "file,label\na.bin", "E243", "line 2, must have a file and its label"),
        ({"a.bin": 4}, "a.bin,2,0,8,4", "E246", "windows must have the 4 bytes of the input x"),
        ({"a.bin": 4}, "a.bin,2,0,4,0", "E243", "line 1, must have a file and its label"),
        ({"a.bin": 4, "b.bin": 4}, "a.bin,cat\nb.bin,1.5", "", ""),
    ],
)
def test_what_is_wrong(
    tmp_path: Path, files: dict[str, int], labels: str | None, code: str, said: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, size in files.items():
        (folder / name).write_bytes(bytes(size))
    path = None
    if labels is not None:
        path = tmp_path / "l.csv"
        path.write_text(labels)
    if not code:
        assert label_values(opened(folder, path)) == [1, 0]
        return
    with pytest.raises(MizzenError, match=said) as error:
        opened(folder, path).data.columns[0].read()
    assert error.value.diagnostic.code == code


def test_several_channels_have_no_features(tmp_path: Path) -> None:
    sound(tmp_path / "s.wav", np.zeros(2_000), channels=2)
    form = Forms(sound=SoundForm(Features.KWS))
    with pytest.raises(MizzenError, match="must have one channel, not 2") as error:
        opened(tmp_path, forms=form).data.columns[0].read()
    assert error.value.diagnostic.code == "E255"


def test_features_must_be_as_many_as_the_input_takes(tmp_path: Path) -> None:
    sound(tmp_path / "s.wav", np.ones(2_000))
    form = Forms(sound=SoundForm(Features.KWS))
    with pytest.raises(MizzenError, match=r"must take the 490 values of mlperf-kws, .* \[1, 4\]"):
        opened(tmp_path, forms=form).data.columns[0].read()
