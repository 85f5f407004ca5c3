"""What operators that TensorFlow Lite Micro has no kernels for give of constants.

The numbers are those of LiteRT's reference kernels, with which tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.frontends.tflite import Operator

Array = npt.NDArray[Any]
Float = np.float32
Kernel = Callable[[Operator, Array], Array | None]
"""Computes an operator's only result of its first input; None where it is not of this kind."""


def _densify(operator: Operator, values: Array) -> Array | None:
    """Return the elements: constants are dense once they are read."""
    return values


def _dequantize(operator: Operator, values: Array) -> Array | None:
    """Widen numbers of 16 bits, which is exact."""
    return values.astype(Float) if values.dtype == np.float16 else None


def _fake_quant(operator: Operator, values: Array) -> Array | None:
    """Round real numbers to those that integers of a few bits stand for.

    Ref: LiteRT, kernels/internal/reference/fake_quant.h, quantization_util.cc.
    """
    low, high = (Float(operator.options[name]) for name in ("min", "max"))
    bits = int(operator.options["num_bits"])
    known = values.dtype == Float and 2 <= bits <= 16 and low <= 0 <= high and low < high
    if not known or operator.options["narrow_range"]:
        return None
    most = Float((1 << bits) - 1)
    scale = (high - low) / most
    zero = min(max(_rounded(-low / scale), Float(0)), most)
    lowest, highest = -zero * scale, (most - zero) * scale
    steps = (np.clip(values, lowest, highest) - lowest) * (Float(1) / scale)
    return _rounded(steps) * scale + lowest


def _rounded(values: Any) -> Any:
    """Round half away from zero, as C does."""
    whole = np.trunc(values)
    return (whole + np.sign(values) * (np.abs(values - whole) >= Float(0.5))).astype(Float)


KERNELS: dict[str, Kernel] = {
    "DENSIFY": _densify,
    "DEQUANTIZE": _dequantize,
    "FAKE_QUANT": _fake_quant,
}


def computed(operator: Operator, values: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Return the result of an operator on a constant, if it is computed here and has this shape."""
    kernel = KERNELS.get(operator.kind)
    result = None if kernel is None or values is None else kernel(operator, values)
    return result if result is None or result.shape == shape else None
