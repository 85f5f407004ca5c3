"""NumPy's files: arrays, and archives of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.archives import ArchiveError, arrays_in, mapped_array
from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


def read_array(path: str | Path) -> Array:
    """Map a .npy file: no more is read than the file has, whatever its header says. E203."""
    try:
        return mapped_array(path)
    except (OSError, ArchiveError) as error:
        raise _unreadable(path, "a NumPy file", error, "numpy.save(path, array)") from None


def read_archive(path: str | Path) -> dict[str, Array]:
    """Read the arrays of a .npz file by their names. E203."""
    try:
        with open(path, "rb") as file:
            return arrays_in(file)
    except (OSError, ArchiveError) as error:
        writer = "numpy.savez(path, name=array)"
        raise _unreadable(path, "a NumPy archive", error, writer) from None


def _unreadable(
    path: str | Path, what: str, error: OSError | ArchiveError, writer: str
) -> MizzenError:
    system = isinstance(error, OSError)
    reason = (error.strerror or str(error)).lower() if system else f"it {error}"
    return fail("E203", f"{path} must be {what}: {reason}", help=f"write it with {writer}")
