"""Recordings: 16-bit samples of WAV files, as they are or as an input's windows of them."""

from __future__ import annotations

import math
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

PCM_BYTES = 2
PCM_ONE = 1 << 15
"""What stands for 1.0 in 16-bit samples. Ref: RIFF WAVE, format PCM."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Samples, int16 [N], of which so many of each channel are a second.

    Those of several channels take turns.
    """

    samples: Array
    rate_hz: int
    channels: int = 1


def read_recording(path: str | Path) -> Recording:
    """Read a WAV file. E203."""
    try:
        with wave.open(str(path), "rb") as file:
            if file.getsampwidth() != PCM_BYTES:
                raise wave.Error(f"samples have {8 * file.getsampwidth()} bits")
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.int16)
            return Recording(samples, file.getframerate(), file.getnchannels())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except (wave.Error, EOFError, ValueError) as error:
        reason = str(error).lower() or "it ends too early"
    raise fail("E203", f"{path} must be a WAV file of 16-bit samples: {reason}")


def windows(path: str | Path, info: TensorInfo) -> Array:
    """Return a recording's samples cut into inferences, `[N, *shape]`.

    They are as they are for an input of 16-bit integers, else from -1 to 1. E203 unless they are
    those of a whole number of inferences.
    """
    samples = read_recording(path).samples
    elements = math.prod(info.shape)
    if elements == 0 or samples.size == 0 or samples.size % elements:
        noun = "sample" if elements == 1 else "samples"
        raise fail(
            "E203",
            f"{path} must have a multiple of {elements:,} {noun} for the input {info.name}, not "
            f"{samples.size:,}",
            help="cut or pad the recording",
        )
    rows = samples.reshape(-1, *info.shape)
    return rows if info.dtype == np.int16 else rows.astype(np.float32) / PCM_ONE
