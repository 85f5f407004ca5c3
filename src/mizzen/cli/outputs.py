"""Arrays that a run gives, as files of NumPy's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt


def write_arrays(arrays: Mapping[Path, npt.NDArray[Any]], folder: Path) -> None:
    """Write an .npy file for each array into a folder. E201 and E207 where that cannot be."""
    from mizzen.files import write_files

    write_files({path: _npy(array) for path, array in arrays.items()}, folder)


def _npy(array: npt.NDArray[Any]) -> bytes:
    import io

    import numpy as np

    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
