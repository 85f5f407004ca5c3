"""QuantizeLinear and DequantizeLinear of arrays, as ONNX defines them.

Ref: ONNX, Operators, QuantizeLinear: division in the type of the scale, half to even.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.frontends.onnx.model import Array

_PART = 1 << 20


def quantized(
    x: Array,
    scale: Array,
    zero: Array | None,
    dtype: np.dtype[Any],
    limits: tuple[int, int],
    axis: int,
) -> Array:
    """Quantise an array to integers within limits; in parts, as that takes several times a part."""
    spread, offset = along(scale, x, axis), along(_zeros(zero, scale), x, axis)
    result = np.empty(x.shape, dtype)
    lead = x.shape[0] if x.ndim else 1
    step = max(1, _PART // max(1, x.size // max(1, lead)))
    for start in range(0, lead, step):
        here = slice(start, start + step) if x.ndim else ()
        divisor = spread[here] if spread.ndim and spread.shape[0] == lead > 1 else spread
        base = offset[here] if offset.ndim and offset.shape[0] == lead > 1 else offset
        steps = np.rint(x[here].astype(scale.dtype) / divisor).astype(np.float64) + base
        result[here] = np.clip(np.nan_to_num(steps), *limits).astype(dtype)
    return result


def dequantized(x: Array, scale: Array, zero: Array | None, axis: int) -> Array:
    """Make numbers of integers."""
    offset = along(_zeros(zero, scale), x, axis)
    wide = np.int64 if x.dtype.itemsize >= 4 else np.int32
    steps = (x.astype(wide) - offset.astype(wide)).astype(scale.dtype)
    return steps * along(scale, x, axis)


def along(parameter: Array, x: Array, axis: int) -> Array:
    """Lay a parameter along an axis; one of a single element is of the whole tensor."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1 or not -x.ndim <= axis < x.ndim or len(parameter) != x.shape[axis]:
        raise ValueError("scales are one for each element of the axis, or one in all")
    shape = [1] * x.ndim
    shape[axis] = len(parameter)
    return parameter.reshape(shape)


def _zeros(zero: Array | None, scale: Array) -> Array:
    return np.zeros(scale.shape, np.int32) if zero is None else zero
