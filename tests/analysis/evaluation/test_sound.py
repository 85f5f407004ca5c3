"""Recordings through real networks: what TensorFlow Lite Micro's example hears, and by hand."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.evaluation import Judgement, evaluate, judge
from mizzen.analysis.evaluation.samples import Stored
from mizzen.data.features import Features, features
from mizzen.data.forms import Forms, SoundForm
from mizzen.data.opening import open_data
from mizzen.data.sound import Recording

ModelFile = Callable[[str], Path]


def test_the_example_hears_yes_and_no(tmp_path: Path, model_file: ModelFile) -> None:
    """Ref: TFLite Micro, micro_speech_test.cc, which expects the same of both recordings."""
    for word in ("yes", "no"):
        (tmp_path / word).mkdir()
        sound = model_file(f"{word}_1000ms.wav").read_bytes()
        (tmp_path / word / "one.wav").write_bytes(sound)
    network = model_file("micro_speech_quantized.tflite")
    artifact = mizzen.compile(network, "ethos-u55-128", prove="off")
    form = Forms(sound=SoundForm(front_end=model_file("audio_preprocessor_int8.tflite")))
    classes = ("silence", "unknown", "yes", "no")
    found = evaluate(artifact, tmp_path, classes=classes, forms=form)
    assert found.metrics[0].value == 1.0
    assert found.confusion is not None
    assert [found.confusion.counts[i][i] for i in (2, 3)] == [1, 1]


def test_an_anomalys_score_is_the_mean_over_windows(tmp_path: Path, model_file: ModelFile) -> None:
    """MLPerf Tiny's score, of outputs that the package tflite-micro itself computes."""
    runtime = pytest.importorskip("tflite_micro", reason="it is the oracle").runtime
    network = model_file("ad01_int8.tflite")
    rng = np.random.default_rng(4)
    clips = [(rng.standard_normal(130_000) * size).astype(np.int16) for size in (300, 3_000)]
    for name, clip in zip("ab", clips, strict=True):
        with wave.open(str(tmp_path / f"{name}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes(clip.tobytes())
    (tmp_path / "y_labels.csv").write_text("a.wav,2,0\nb.wav,2,1\n")

    artifact = mizzen.compile(network, "ethos-u55-128", prove="off")
    form = Forms(sound=SoundForm(Features.ANOMALY))
    opened = open_data([str(tmp_path)], artifact.inputs, forms=form)
    seen: list[Any] = []

    def keep(scores: Any, labels: Any) -> float:
        seen.extend(scores.tolist())
        return 0.0

    samples = Stored(opened.name, opened.data, opened.labels)
    found = judge(artifact, samples, Judgement(metrics=(keep,)))
    assert (found.samples, found.inferences) == (2, 2 * len(features(
        Recording(clips[0], 16_000), Features.ANOMALY
    )))  # fmt: skip

    interpreter = runtime.Interpreter.from_file(str(network), arena_size=1 << 20)
    taken, given = artifact.inputs[0].quantization, artifact.outputs[0].quantization
    assert taken is not None
    assert given is not None
    for clip, score in zip(clips, seen, strict=True):
        errors: list[float] = []
        for x in features(Recording(clip, 16_000), Features.ANOMALY):
            steps = x.astype(np.float64) / taken.scale[0]
            codes = np.clip(np.floor(np.abs(steps) + 0.5) * np.sign(steps) + taken.zero_point[0],
                            -128, 127)  # fmt: skip
            interpreter.set_input(codes.astype(np.int8)[np.newaxis], 0)
            interpreter.invoke()
            codes = np.asarray(interpreter.get_output(0))[0].astype(np.float32)
            values = (codes - np.float32(given.zero_point[0])) * np.float32(given.scale[0])
            errors.append(float(np.mean((x.astype(np.float64) - values) ** 2)))
        assert score == pytest.approx(np.mean(errors), rel=1e-12)
