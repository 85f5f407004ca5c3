"""Numbers in the type of a tensor, and back: quantised, taken as integers, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo
    from mizzen.frontends.tflite import Quantization

    Array = npt.NDArray[Any]

Note = Callable[[str], None]
"""Is told what became of numbers that are not the input's own."""


def unsaid(text: str) -> None:
    """Tell nobody."""


EXACT_BITS = 16
"""Integers of as many bits keep their order as float32, whatever the scale."""


def fitted(array: Array, info: TensorInfo, note: Note) -> Array:
    """Return an array in the type of an input.

    Real numbers for integers are quantised, whole numbers of another type are taken as the integers
    that they are. What can be neither is left for the artifact to say. Raises E208 for numbers that
    the input has no form of.
    """
    if array.dtype == info.dtype:
        return array
    kinds = array.dtype.kind, info.dtype.kind
    if kinds == ("f", "f"):
        note(f"  {info.name}: {array.dtype} taken as {info.dtype}")
        return array.astype(info.dtype)
    if kinds[0] in "iu" and kinds[1] in "iu":
        limits = np.iinfo(info.dtype)
        _require_range(array, int(limits.min), int(limits.max), info)
        note(f"  {info.name}: {array.dtype} taken as the integers of {info.dtype}")
        return array.astype(info.dtype)
    if kinds[0] == "f" and kinds[1] in "iu":
        return _quantized(array, info, note)
    return array


def real(array: Array, info: TensorInfo) -> Array:
    """Return the real numbers that a tensor's integers stand for; others are as they are.

    float32 for integers of at most 16 bits, of which it keeps the order, else float64.
    """
    scale = scale_of(info)
    if array.dtype.kind not in "iu" or scale is None:
        return array
    dtype = np.float32 if 8 * array.dtype.itemsize <= EXACT_BITS else np.float64
    return (array.astype(np.int64) - scale[1]).astype(dtype) * dtype(scale[0])


def scale_of(info: TensorInfo) -> tuple[float, int] | None:
    """Return the scale and the zero point of a tensor, None unless it has just one of them."""
    quantization: Quantization | None = info.quantization
    if quantization is None or len(quantization.scale) != 1:
        return None
    return quantization.scale[0], quantization.zero_point[0] if quantization.zero_point else 0


def _quantized(array: Array, info: TensorInfo, note: Note) -> Array:
    """Return real numbers as integers: rounded to nearest, ties away from zero, saturated.

    Ref: TFLite's QUANTIZE.
    """
    grid = scale_of(info)
    if grid is None or not np.isfinite(array).all():
        raise _refused(array, info)
    scale, zero = grid
    limits = np.iinfo(info.dtype)
    steps = array.astype(np.float64) / scale
    whole = np.trunc(steps + np.copysign(0.5, steps)) + zero
    note(f"  {info.name}: {array.dtype} quantised with scale {scale:g} and zero point {zero}")
    return np.clip(whole, limits.min, limits.max).astype(info.dtype)


def _refused(array: Array, info: TensorInfo) -> MizzenError:
    finite = bool(np.isfinite(array).all())
    came = f"{array.dtype}" if finite else f"{array.dtype} with NaN or infinity"
    return fail(
        "E208",
        f"input {info.name} must have {_wanted(info)}, not {came}",
        help="give integers" if finite else "give numbers that are finite",
    )


def _require_range(array: Array, low: int, high: int, info: TensorInfo) -> None:
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        wrong = int(array.max()) if int(array.max()) > high else int(array.min())
        raise fail(
            "E208",
            f"input {info.name} must have {_wanted(info)}, not {wrong}",
            help="give floats, and they are quantised",
        )


def _wanted(info: TensorInfo) -> str:
    limits = np.iinfo(info.dtype)
    text = f"{info.dtype} integers from {limits.min} to {limits.max}"
    grid = scale_of(info)
    return text if grid is None else f"{text}, of scale {grid[0]:g} and zero point {grid[1]}"
