"""Read an `.npy` file, from memory or where it lies.

Ref: NumPy, `numpy.lib.format`.
"""

from __future__ import annotations

import io
import math
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mizzen.archives.unpacking import ArchiveError, data_members

NUMBERS = "biuf"
"""Kinds of types whose elements are their bytes."""
NUMBERS_AND_TEXTS = NUMBERS + "US"
"""Texts of one length are their bytes too."""

MOST_AXES = 32
"""Of arrays, whichever NumPy it is."""

MOST_EMPTY = 1 << 20
"""Elements that an array without any may have along its other axes: a loop over rows of nothing
would go on as long as the header likes."""

Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
"""Shape, whether the first axis is the innermost, and type."""


def array_of(data: bytes, kinds: str = NUMBERS) -> npt.NDArray[Any]:
    """Return the array of a file, a copy. `ArchiveError` unless it is whole and of such types."""
    stream = io.BytesIO(data)
    shape, is_fortran, dtype = _header(stream, kinds)
    held = len(data) - stream.tell()
    if math.prod(shape) * dtype.itemsize != held:
        raise ArchiveError(f"must have the bytes of {dtype}{list(shape)}, not {held}")
    flat = np.frombuffer(data, dtype, math.prod(shape), stream.tell())
    _require_characters(flat)
    return flat.reshape(shape, order="F" if is_fortran else "C").copy()


def mapped_array(path: str | Path) -> npt.NDArray[Any]:
    """Map an `.npy` file of numbers or texts: no more is read of it than is used.

    `ArchiveError` unless it has the bytes that its header says.
    """
    with open(path, "rb") as file:
        shape, is_fortran, dtype = _header(file, NUMBERS_AND_TEXTS)
        start = file.tell()
        held = os.fstat(file.fileno()).st_size - start
    if math.prod(shape) * dtype.itemsize > held:
        raise ArchiveError(f"must have the bytes of {dtype}{list(shape)}, not {held}")
    if not math.prod(shape):
        return np.zeros(shape, dtype)  # a file cannot be mapped at its end
    _require_characters(np.memmap(path, dtype, "r", start, (math.prod(shape),)))
    return np.memmap(path, dtype, "r", start, shape, "F" if is_fortran else "C")


def arrays_in(file: BinaryIO) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an `.npz`, by their names. `ArchiveError` for what else is in it."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, contents in data_members(file):
        try:
            arrays[name.removesuffix(".npy")] = array_of(contents, NUMBERS_AND_TEXTS)
        except ArchiveError as error:
            raise ArchiveError(f"{name!r} in it {error}") from None
    return arrays


def are_characters(texts: npt.NDArray[Any]) -> bool:
    """Whether the numbers of texts, `[count]`, are characters: of others Python makes no text."""
    codes = texts.view(np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder))
    return not codes.size or int(codes.max()) <= sys.maxunicode


def _require_characters(flat: npt.NDArray[Any]) -> None:
    if flat.dtype.kind == "U" and not are_characters(flat):
        raise ArchiveError(f"must have characters up to {sys.maxunicode:#x}")


def _header(stream: BinaryIO, kinds: str) -> Header:
    """Read a header, whose shape and type an array can have. `ArchiveError` for another."""
    try:
        shape, is_fortran, dtype = _literal(stream)
    except Exception as error:  # whatever a literal can do to the parser
        raise ArchiveError(f"must start like an array of NumPy: {error}") from error
    if dtype.kind not in kinds:
        raise ArchiveError(f"must hold numbers, not {dtype}")
    elements = math.prod(extent or 1 for extent in shape)
    if (
        not 0 < dtype.itemsize * elements <= np.iinfo(np.intp).max
        or (0 in shape and elements > MOST_EMPTY)
        or len(shape) > MOST_AXES
        or min(shape, default=0) < 0
    ):
        raise ArchiveError(f"must have a shape of arrays, not {dtype}{list(shape)}")
    return shape, is_fortran, dtype


def _literal(stream: BinaryIO) -> Header:
    match np.lib.format.read_magic(stream):
        case (1, 0):
            return np.lib.format.read_array_header_1_0(stream)
        case (2, 0):
            return np.lib.format.read_array_header_2_0(stream)
        case version:
            raise ValueError(f"version {version}")
