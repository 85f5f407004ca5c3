"""The user's data as samples of a floating-point network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.fitting import fitted, unsaid
from mizzen.calibration.seen import Sample
from mizzen.data.columns import DataSet
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

MOST_SAMPLES = 256
"""Samples that calibrate, where there are more: ranges hardly grow after some hundred."""


def chosen(data: DataSet, most: int) -> Sequence[int]:
    """Return which samples calibrate: all, or so many from the first to the last, evenly apart.

    Folders have their files class by class, so the first ones would be of one class.
    """
    if data.size <= most:
        return range(data.size)
    return [int(index) for index in np.linspace(0, data.size - 1, most)]


def samples_of(
    data: DataSet, indices: Sequence[int], inputs: Sequence[TensorInfo]
) -> Iterator[tuple[int, Sample]]:
    """Return the inferences of some samples, each with the number of its sample.

    Raises E208 for numbers that a network cannot take.
    """
    for index in indices:
        part = data.cut(index, index + 1)
        columns = [
            _floats(column.read()[0], info, data.name(index))
            for column, info in zip(part.columns, inputs, strict=True)
        ]
        for sample in zip(*columns, strict=True):
            yield (
                index,
                tuple(
                    array.reshape(info.shape) for array, info in zip(sample, inputs, strict=True)
                ),
            )


def _floats(array: Array, info: TensorInfo, name: str) -> Array:
    """Return the inferences of a sample in the type of an input."""
    if array.dtype.kind in "iub" and info.dtype.kind == "f":
        raise fail(
            "E208",
            f"input {info.name} must have {info.dtype}, and {array.dtype} came from {name}",
            help="give the numbers that the network was trained with: pixels divided by 255, say",
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise fail(
            "E208",
            f"input {info.name} must have finite numbers, and {name} has NaN or infinity",
            help="leave the sample out",
        )
    return fitted(array, info, unsaid)
