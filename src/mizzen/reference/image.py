"""What the image operator computes. Ref: TOSA 1.0, 2.12."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.graph import Array, ResizeMode
from mizzen.ops import image as tosa
from mizzen.reference.kernel import Kernels, fitted, rounded


@dataclass(frozen=True)
class _Samples:
    """For each place of the result along one dimension: the samples around it, its way past one.

    before  the last sample at or before the place, shape [size]
    after   the sample after that, or the same at the border
    past    numerator of how far after `before` it is
    unit    denominator of that
    """

    before: Array
    after: Array
    past: Array
    unit: int


def _samples(size: int, new_size: int, unit: int, step: int, offset: int) -> _Samples:
    places = np.arange(new_size) * step + offset
    index = places // unit
    before, after = np.maximum(index, 0), np.minimum(index + 1, size - 1)
    return _Samples(before, after, places - index * unit, unit)


def resize(
    operation: tosa.Resize, values: Array, scale: Array, offset: Array, border: Array
) -> Array:
    """[N,IH,IW,C] -> [N,OH,OW,C]; bilinear integers are not divided by the scales."""
    _, height, width, _ = values.shape
    _, new_height, new_width, _ = operation.result.shape
    y_unit, y_step, x_unit, x_step = map(int, scale)
    y_offset, x_offset = map(int, offset)
    lines = _samples(height, new_height, y_unit, y_step, y_offset)
    columns = _samples(width, new_width, x_unit, x_step, x_offset)
    if operation.mode is ResizeMode.NEAREST:
        return values[:, _nearest(lines)][:, :, _nearest(columns)]
    dtype = operation.result.dtype
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            mixed = _mix(_mix(values.astype(np.float64), lines, 1), columns, 2)
        return rounded(mixed / (y_unit * x_unit), dtype)
    return fitted(operation, _mix(_mix(values.astype(np.int64), lines, 1), columns, 2), dtype)


def _nearest(samples: _Samples) -> Array:
    return np.where(2 * samples.past >= samples.unit, samples.after, samples.before)


def _mix(values: Array, samples: _Samples, axis: int) -> Array:
    """Weigh the two samples around each place, weights adding up to `unit`."""
    past = samples.past.reshape((-1,) + (1,) * (values.ndim - 1 - axis))
    before, after = np.take(values, samples.before, axis), np.take(values, samples.after, axis)
    return before * (samples.unit - past) + after * past


KERNELS: Kernels = {tosa.Resize: resize}
