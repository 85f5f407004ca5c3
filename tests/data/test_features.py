"""Features of sound, beside TensorFlow's (`tf.signal`) and librosa's.

`golden/features.npz` has what TensorFlow 2.21 and librosa 0.11 compute, called as MLPerf Tiny's
scripts call them, of the same recordings: `kws_*` are MFCC [49, 10], `anomaly_first` and
`anomaly_last` are the first six and last two of the 200 frames of 128 decibels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.data.features import Features, features
from mizzen.data.sound import Recording, read_recording
from mizzen.diagnostics import MizzenError

GOLDEN = np.load(Path(__file__).with_name("golden") / "features.npz")
RATE_HZ = 16_000

# Theirs are computed in float32: sums of 40 logarithms of up to 14, each of which is rounded by
# 2^-24 of itself.
TOLERANCE = 40 * 14 * 2.0**-24


def recording(samples: int, seed: int) -> Recording:
    """A tone that rises, and noise: the recordings that the golden numbers are of."""
    seconds = np.arange(samples) / RATE_HZ
    rising = 2 * np.pi * (200 * seconds + 900 * seconds * seconds / (samples / RATE_HZ))
    noise = np.random.default_rng(seed).standard_normal(samples)
    sound = np.round((0.4 * np.sin(rising) + 0.05 * noise) * 32767 * 0.8)
    return Recording(sound.clip(-32768, 32767).astype(np.int16), RATE_HZ)


@pytest.mark.parametrize(("name", "samples", "seed"), [("full", 16_000, 1), ("short", 13_000, 2)])
def test_keyword_features_are_tensorflows(name: str, samples: int, seed: int) -> None:
    found = features(recording(samples, seed), Features.KWS)
    assert found.shape == (1, 490)
    assert np.abs(found.reshape(49, 10) - GOLDEN[f"kws_{name}"]).max() < TOLERANCE


def test_keyword_features_of_speech_are_tensorflows(models: Path) -> None:
    found = features(read_recording(models / "yes_1000ms.wav"), Features.KWS)
    assert np.abs(found.reshape(49, 10) - GOLDEN["kws_yes"]).max() < TOLERANCE


def test_anomaly_features_are_librosas() -> None:
    found = features(recording(160_000, 3), Features.ANOMALY)
    assert found.shape == (196, 640)
    windows = found.reshape(196, 5, 128)
    for first in (0, 1):
        theirs = GOLDEN["anomaly_first"][first : first + 5]
        assert np.abs(windows[first] - theirs).max() < TOLERANCE
    assert np.abs(windows[-1, -2:] - GOLDEN["anomaly_last"]).max() < TOLERANCE
    frames = np.concatenate([windows[:, 0], windows[-1, 1:]])
    assert abs(frames.mean() - GOLDEN["anomaly_mean"]) < TOLERANCE


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (Recording(np.zeros(16_001, np.int16), RATE_HZ), Features.KWS, "at most 16,000 samples"),
        (Recording(np.zeros(8, np.int16), 44_100), Features.KWS, "16,000 samples a second"),
        (Recording(np.zeros(90_000, np.int16), RATE_HZ), Features.ANOMALY, "at least 127,488"),
        (Recording(np.zeros(0, np.int16), RATE_HZ), Features.KWS, "at least 1 samples"),
    ],
)
def test_recordings_that_do_not_fit(given: Any, kind: Features, said: str) -> None:
    with pytest.raises(MizzenError, match=said) as found:
        features(given, kind)
    assert found.value.diagnostic.code == "E255"


def test_silence_has_features() -> None:
    """By hand: 49 frames of the logarithm of the floor, whose transform has a first value only."""
    found = features(Recording(np.zeros(16_000, np.int16), RATE_HZ), Features.KWS).reshape(49, 10)
    assert found[:, 0] == pytest.approx(np.log(1e-6) * 40 * np.sqrt(2 / 40), abs=TOLERANCE)
    assert np.abs(found[:, 1:]).max() < TOLERANCE
