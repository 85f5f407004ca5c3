"""Recordings: 16-bit samples of WAV files, as they are or as an input's windows of them."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

PCM_BYTES = 2
PCM_ONE = 1 << 15
"""What stands for 1.0 in 16-bit samples. Ref: RIFF WAVE, format PCM."""

FEATURES_FIRST = "compute them with --features mlperf-kws (or mlperf-anomaly), or --front-end"

_CHUNK = struct.Struct("<4sI")
"""Head of a chunk: its kind, and how many bytes follow; an odd number has one more."""
_FORM = struct.Struct("<HHIIHH")
"""Format, channels, samples a second, bytes a second, bytes of all channels, bits of a sample."""
_PCM, _EXTENSIBLE = 1, 0xFFFE
_KIND_BEHIND = 24
"""Where an extensible form has the format. Ref: WAVEFORMATEXTENSIBLE."""


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
        data = Path(path).read_bytes()
    except OSError as error:
        raise _no_recording(path, (error.strerror or str(error)).lower()) from None
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _no_recording(path, "it does not begin with RIFF and WAVE")
    chunks = _chunks(data)
    form = chunks.get(b"fmt ", b"")
    if len(form) < _FORM.size:
        raise _no_recording(path, "it has no chunk that says what its samples are")
    kind, channels, rate_hz, _, _, bits = _FORM.unpack_from(form)
    if kind == _EXTENSIBLE:
        kind = int.from_bytes(form[_KIND_BEHIND : _KIND_BEHIND + 2], "little")
    if kind != _PCM or bits != 8 * PCM_BYTES:
        raise _no_recording(path, f"samples have {bits} bits in the format {kind}")
    if not channels or not rate_hz:
        raise _no_recording(path, f"it has {channels} channels of {rate_hz} samples a second")
    if b"data" not in chunks:
        raise _no_recording(path, "it ends before its samples")
    whole = len(chunks[b"data"]) // (PCM_BYTES * channels) * channels
    samples = np.frombuffer(chunks[b"data"], "<i2", whole).astype(np.int16)
    return Recording(samples, rate_hz, channels)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """Return the first chunk of each kind; the file's end, or what it says is its end, cuts one."""
    end = min(len(data), _CHUNK.size + _CHUNK.unpack_from(data)[1])
    chunks: dict[bytes, bytes] = {}
    at = _CHUNK.size + 4
    while at + _CHUNK.size <= end:
        kind, size = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size
        chunks.setdefault(kind, data[at : min(at + size, end)])
        at += size + size % 2
    return chunks


def _no_recording(path: str | Path, reason: str) -> MizzenError:
    return fail("E203", f"{path} must be a WAV file of 16-bit samples: {reason}")


def windows(path: str | Path, info: TensorInfo) -> Array:
    """Return a recording's samples cut into inferences, `[N, *shape]`.

    They are as they are for an input of 16-bit integers, else from -1 to 1. E203 unless they are
    those of a whole number of inferences, E255 for an input that takes no samples as they are.
    """
    samples = read_recording(path).samples
    if sum(length > 1 for length in info.shape[1:]) > 1:
        raise fail(
            "E255",
            f"the input {info.name} must have one dimension of samples to take a recording as it "
            f"is, and has the shape {list(info.shape)}",
            help=f"it may take features: {FEATURES_FIRST}",
        )
    elements = math.prod(info.shape)
    if elements == 0 or samples.size == 0 or samples.size % elements:
        noun = "sample" if elements == 1 else "samples"
        raise fail(
            "E203",
            f"{path} must have a multiple of {elements:,} {noun} for the input {info.name}, not "
            f"{samples.size:,}",
            help=f"for a network that takes features, {FEATURES_FIRST}; for one that takes "
            "samples, cut or pad the recording",
        )
    inferences = samples.reshape(-1, *info.shape)
    return inferences if info.dtype == np.int16 else inferences.astype(np.float32) / PCM_ONE
