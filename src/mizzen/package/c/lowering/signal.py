"""TFLite Micro's operators on sound; tables of sines and logarithms are worked out here.

Ref: TFLite Micro, signal/micro/kernels (inputs and options of each); KISS FFT in 16 bits (rounding
of the factors).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from mizzen.package.c.lowering.context import Given, Rule, ref

LARGEST = 32767
LONGEST = 8192
SEGMENTS = 128
ONE = 1 << 16


def window(given: Given) -> None:
    """Samples times a window."""
    _plain(given, "signal_window", _options(given, "shift"))


def scale(given: Given) -> None:
    """Samples shifted as far as they go."""
    (source,) = given.present()
    given.emit("signal_scale", (ref(source),), (given.output(0), given.output(1)))


def spectrum(given: Given) -> None:
    """The spectrum of real samples in 16 bits."""
    (source,) = given.present()
    (length,) = _options(given, "fft_length")
    given.must(given.row(source).dtype == np.int16, "samples must be int16")
    given.must(math.prod(given.row(source).shape[:-1]) == 1, "there must be one row of samples")
    power = 8 <= length <= LONGEST and length & (length - 1) == 0
    given.must(power, f"fft_length must be a power of two from 8 to {LONGEST}")
    pairs = length // 2
    factors = _circle([-2 * math.pi * k / pairs for k in range(pairs)])
    turns = _circle([-math.pi * ((k + 1) / pairs + 0.5) for k in range(pairs // 2)])
    tables = (given.lowering.constant(numbers, np.int16) for numbers in (factors, turns))
    given.emit("signal_spectrum", (ref(source), *map(ref, tables), length), (given.output(),))


def energy(given: Given) -> None:
    """Squares of the spectrum's elements."""
    _plain(given, "signal_energy", _options(given, "start_index", "end_index"))


def bank(given: Given) -> None:
    """Energies of overlapping channels."""
    _plain(given, "signal_bank", ())


def root(given: Given) -> None:
    """Roots of energies, shifted back."""
    _plain(given, "signal_root", ())


def subtract(given: Given) -> None:
    """Signal without the noise that it had so far, which is state."""
    source, state = given.present()
    numbers = _options(
        given, "smoothing", "one_minus_smoothing", "alternate_smoothing",
        "alternate_one_minus_smoothing", "min_signal_remaining", "smoothing_bits",
        "spectral_subtraction_bits", "clamping",
    )  # fmt: skip
    outputs = (given.output(0), given.output(1), state)
    given.emit("signal_subtract", (ref(source), ref(state), *numbers), outputs)


def gain(given: Given) -> None:
    """Gain by the noise."""
    _plain(given, "signal_gain", _options(given, "snr_shift"))


def logarithm(given: Given) -> None:
    """Natural logarithms by a table of 128 segments."""
    (source,) = given.present()
    steps = [k / SEGMENTS for k in range(SEGMENTS + 1)]
    table = [round(ONE * (math.log2(1 + step) - step)) for step in steps]
    numbers = _options(given, "output_scale", "input_correction_bits")
    held = given.lowering.constant(table, np.int32)
    given.emit("signal_logarithm", (ref(source), ref(held), *numbers), (given.output(),))


def _plain(given: Given, kernel: str, numbers: Sequence[int]) -> None:
    given.emit(kernel, (*map(ref, given.present()), *numbers), (given.output(),))


def _circle(angles: Sequence[float]) -> list[int]:
    """Return real and imaginary parts of points of the circle, half up."""
    return [
        math.floor(0.5 + LARGEST * part)
        for angle in angles
        for part in (math.cos(angle), math.sin(angle))
    ]


def _options(given: Given, *names: str) -> tuple[int, ...]:
    """Return options of a custom operator, which are a map of FlexBuffers."""
    held = given.arguments.get("custom_options")
    given.must(isinstance(held, bytes), "there must be custom options")
    try:
        options: Any = import_module("flatbuffers.flexbuffers").Loads(held)
        values = [int(options[name]) for name in names]
    except Exception:  # the reader trusts its bytes, and fails in many ways
        raise given.refused(f"options must be {', '.join(names)}") from None
    return tuple(values)


RULES: Mapping[str, Rule] = {
    "tflite::SignalWindow": window,
    "tflite::SignalFftAutoScale": scale,
    "tflite::SignalRfft": spectrum,
    "tflite::SignalEnergy": energy,
    "tflite::SignalFilterBank": bank,
    "tflite::SignalFilterBankSquareRoot": root,
    "tflite::SignalFilterBankSpectralSubtraction": subtract,
    "tflite::SignalPCAN": gain,
    "tflite::SignalFilterBankLog": logarithm,
}
