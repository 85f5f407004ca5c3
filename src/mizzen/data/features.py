"""Features of sound, computed as the networks' authors document them: mel spectra and MFCC.

A row of `FEATURES` says everything that one needs to compute a form, and where that is written.
Arithmetic is in float64, so that numbers are those of the documented formula; what single precision
makes of them differs by less than an input's step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.data.sound import PCM_ONE, Recording
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


class MelScale(Enum):
    """A scale of pitch."""

    HTK = "HTK"
    """1127 ln(1 + f / 700 Hz). Ref: The HTK Book, section 5.4."""
    SLANEY = "Slaney"
    """Linear below 1 kHz, 200/3 Hz a mel, then 27 mels for a factor of 6.4.

    Ref: Slaney, Auditory Toolbox, Interval Technical Report 1998-010.
    """


class Features(Enum):
    """Features that networks are known to take."""

    KWS = "mlperf-kws"
    ANOMALY = "mlperf-anomaly"


@dataclass(frozen=True, slots=True)
class Spectrum:
    """How features are computed.

    source            where this is written
    rate_hz           of the samples
    clip              samples of an inference, to which shorter recordings are padded with zeros;
                      None for recordings of any length
    frame, hop        samples of a frame, and from one to the next
    transform         points of the Fourier transform
    centred           frames reach half a frame beyond both ends of the recording
    peak              samples are divided by the greatest of them, else by what stands for 1.0
    power             of the magnitudes: 1 or 2
    mels              bands, triangles between `low_hz` and `high_hz`
    scale, area       of the bands; each has an area of 1 Hz, else a height of 1
    floor             what is added before the logarithm
    decibel           10 log10 of it, else the natural logarithm
    coefficients      of the cosine transform; None for the logarithms themselves
    kept              frames that are used; all if empty
    frames_joined     frames of an inference, in a window that moves by one; None for all of them
    """

    source: str
    rate_hz: int
    clip: int | None
    frame: int
    hop: int
    transform: int
    centred: bool
    peak: bool
    power: int
    mels: int
    low_hz: float
    high_hz: float
    scale: MelScale
    area: bool
    floor: float
    decibel: bool
    coefficients: int | None
    kept: tuple[int, int] | None
    frames_joined: int | None


FEATURES = {
    Features.KWS: Spectrum(
        "MLPerf Tiny, benchmark/training/keyword_spotting/get_dataset.py, feature_type mfcc",
        rate_hz=16_000, clip=16_000, frame=480, hop=320, transform=512, centred=False, peak=True,
        power=1, mels=40, low_hz=20.0, high_hz=4_000.0, scale=MelScale.HTK, area=False, floor=1e-6,
        decibel=False, coefficients=10, kept=None, frames_joined=None,
    ),
    Features.ANOMALY: Spectrum(
        "MLPerf Tiny, benchmark/training/anomaly_detection/common.py and baseline.yaml",
        rate_hz=16_000, clip=None, frame=1_024, hop=512, transform=1_024, centred=True, peak=False,
        power=2, mels=128, low_hz=0.0, high_hz=8_000.0, scale=MelScale.SLANEY, area=True,
        floor=float(np.finfo(np.float64).eps), decibel=True, coefficients=None, kept=(50, 250),
        frames_joined=5,
    ),
}  # fmt: skip


def features(recording: Recording, kind: Features) -> Array:
    """Return the features of a recording, real numbers `[inferences, frames * values]`.

    E255 for a recording of another rate or length.
    """
    form = FEATURES[kind]
    samples = _fitting(recording, form, kind.value)
    spectra = _spectra(samples, form)
    values = spectra @ _bands(form)
    values = np.log(values + form.floor)
    if form.decibel:
        values *= 10.0 / np.log(10.0)
    if form.coefficients is not None:
        values = values @ _cosines(form.mels, form.coefficients)
    if form.kept is not None:
        values = values[form.kept[0] : form.kept[1]]
    if form.frames_joined is None:
        return values.reshape(1, -1).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(values, form.frames_joined, axis=0)
    return windows.swapaxes(1, 2).reshape(len(windows), -1).astype(np.float32)


def _fitting(recording: Recording, form: Spectrum, name: str) -> Array:
    """Return the samples of a recording as real numbers, padded to a clip."""
    if recording.rate_hz != form.rate_hz:
        raise fail(
            "E255",
            f"a recording must have {form.rate_hz:,} samples a second for {name}, not "
            f"{recording.rate_hz:,}",
            rule=form.source,
            help="resample it",
        )
    samples = recording.samples.astype(np.float64)
    least = 1 if form.kept is None else (form.kept[1] - 1) * form.hop
    most = form.clip or len(samples)
    if not least <= len(samples) <= most:
        wanted = f"at most {most:,}" if len(samples) > most else f"at least {least:,}"
        raise fail(
            "E255",
            f"a recording must have {wanted} samples for {name}, not {len(samples):,}",
            rule=form.source,
            help="cut it" if len(samples) > most else "record more",
        )
    samples /= (samples.max() or 1.0) if form.peak else PCM_ONE
    return np.pad(samples, (0, most - len(samples)))


def _spectra(samples: Array, form: Spectrum) -> Array:
    """Return the magnitudes of each frame's spectrum, or their squares."""
    if form.centred:
        samples = np.pad(samples, form.frame // 2)
    frames = np.lib.stride_tricks.sliding_window_view(samples, form.frame)[:: form.hop]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(form.frame) / form.frame)
    magnitudes = np.abs(np.fft.rfft(frames * hann, form.transform))
    return magnitudes**form.power


@cache
def _bands(form: Spectrum) -> Array:
    """Return the weight of each point of a spectrum in each band, `[points, mels]`."""
    points_hz = np.arange(form.transform // 2 + 1) * form.rate_hz / form.transform
    ends = _mels(np.array([form.low_hz, form.high_hz]), form.scale)
    even: Array = ends[0] + (ends[1] - ends[0]) * np.arange(form.mels + 2) / (form.mels + 1)
    # Slaney's triangles are in hertz, HTK's in mels.
    slaney = form.scale is MelScale.SLANEY
    edges: Array = _hertz_of_slaney(even) if slaney else even
    places: Array = points_hz if slaney else _mels(points_hz, form.scale)
    lower, middle, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (places[:, np.newaxis] - lower) / (middle - lower)
    falling = (upper - places[:, np.newaxis]) / (upper - middle)
    weights = np.maximum(0.0, np.minimum(rising, falling))
    if not slaney:
        weights[0] = 0.0  # the constant part of a spectrum is in no band
    return weights * (2.0 / (upper - lower)) if form.area else weights


SLANEY_KNEE_HZ = 1_000.0
SLANEY_HZ_PER_MEL = 200.0 / 3.0
SLANEY_KNEE_MELS = SLANEY_KNEE_HZ / SLANEY_HZ_PER_MEL
SLANEY_LOG_STEP = math.log(6.4) / 27.0


def _mels(hertz: Array, scale: MelScale) -> Array:
    if scale is MelScale.HTK:
        return 1127.0 * np.log1p(hertz / 700.0)
    above = SLANEY_KNEE_MELS + np.log(np.maximum(hertz, 1.0) / SLANEY_KNEE_HZ) / SLANEY_LOG_STEP
    return np.where(hertz < SLANEY_KNEE_HZ, hertz / SLANEY_HZ_PER_MEL, above)


def _hertz_of_slaney(mels: Array) -> Array:
    above: Array = SLANEY_KNEE_HZ * np.exp(SLANEY_LOG_STEP * (mels - SLANEY_KNEE_MELS))
    return np.where(mels < SLANEY_KNEE_MELS, mels * SLANEY_HZ_PER_MEL, above)


@cache
def _cosines(bands: int, coefficients: int) -> Array:
    """Return the cosine transform of type II, scaled by sqrt(2 / bands), `[bands, coefficients]`.

    The first coefficient is scaled as the others are. Ref: TensorFlow, tf.signal, the note on
    mfccs_from_log_mel_spectrograms.
    """
    places = np.arange(bands)[:, np.newaxis] + 0.5
    return np.cos(np.pi / bands * places * np.arange(coefficients)) * np.sqrt(2.0 / bands)
