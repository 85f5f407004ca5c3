"""Read an `.npy` file from memory.

Ref: NumPy, `numpy.lib.format`.
"""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.archives.unpacking import ArchiveError

NUMBERS = "biuf"
"""Kinds of types whose elements are their bytes."""


def array_of(data: bytes) -> npt.NDArray[Any]:
    """Return the array of a file, a copy. `ArchiveError` unless it is whole and holds numbers."""
    stream = io.BytesIO(data)
    try:
        shape, is_fortran, dtype = _header(stream)
    except Exception as error:  # whatever a literal can do to the parser
        raise ArchiveError(f"must start like an array of NumPy: {error}") from error
    held = len(data) - stream.tell()
    if dtype.kind not in NUMBERS:
        raise ArchiveError(f"must hold numbers, not {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != held:
        raise ArchiveError(f"must have the bytes of {dtype}{list(shape)}, not {held}")
    flat = np.frombuffer(data, dtype, math.prod(shape), stream.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C").copy()


def _header(stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    match np.lib.format.read_magic(stream):
        case (1, 0):
            return np.lib.format.read_array_header_1_0(stream)
        case (2, 0):
            return np.lib.format.read_array_header_2_0(stream)
        case version:
            raise ValueError(f"version {version}")
