"""NumPy's files: arrays, and archives of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

Read = TypeVar("Read")


def read_array(path: str | Path) -> Array:
    """Map a .npy file: no more is read than the file has, whatever its header says. E203."""

    def read() -> Array:
        return np.lib.format.open_memmap(path, mode="r")

    return _read(path, read, "a NumPy file", "numpy.save(path, array)")


def read_archive(path: str | Path) -> dict[str, Array]:
    """Read the arrays of a .npz file by their names. E203."""

    def read() -> dict[str, Array]:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {str(name): archive[name] for name in archive.files}

    return _read(path, read, "a NumPy archive", "numpy.savez(path, name=array)")


def _read(path: str | Path, read: Callable[[], Read], what: str, writer: str) -> Read:
    """Read a file of NumPy's. E203 if it is not one; `writer` is what writes one."""
    try:
        return read()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except Exception as error:  # a header is a Python literal, of anybody's making
        reason = f"it does not hold arrays of numbers: {error}"
    raise fail("E203", f"{path} must be {what}: {reason}", help=f"write it with {writer}")
