"""What the tensor operators compute. Ref: TOSA 1.0, 2.3."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.graph import Array, NanMode, Operation, integer_range
from mizzen.ops import tensor as tosa
from mizzen.reference.convolution import (
    convolution,
    depthwise,
    matmul,
    transpose_convolution,
)
from mizzen.reference.kernel import Kernels, fitted, rounded, saturated, wide

RECIPROCAL_BITS = 30


def argmax(operation: tosa.Argmax, values: Array) -> Array:
    """Return the first place of the greatest along the axis; NaN as `nan_mode` says."""
    axis = operation.axis
    if operation.input.dtype.is_float and operation.nan_mode is NanMode.IGNORE:
        values = values == np.fmax.reduce(values, axis=axis, keepdims=True)
    return np.asarray(np.argmax(values, axis=axis), np.int32)


def avg_pool2d(
    operation: tosa.AvgPool2d, values: Array, input_zp: Array, output_zp: Array
) -> Array:
    """[N,IH,IW,C] -> [N,OH,OW,C]; padding does not count."""
    dtype = operation.result.dtype
    plain = wide(operation, values) - wide(operation, input_zp)
    with np.errstate(invalid="ignore"):
        total = _pooled(operation, plain, 0, np.add)
    count = _pooled(operation, np.ones((1, *values.shape[1:3], 1), np.int64), 0, np.add)
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            return rounded(total / count, dtype)
    total = fitted(operation, total, operation.acc_type)
    return saturated(_divided(total, count) + wide(operation, output_zp), dtype)


def _divided(total: Array, count: Array) -> Array:
    """Divide as TOSA does: by a reciprocal of 31 bits, rounded once. Ref: TOSA 1.0, 4.3.3."""
    _, bits = np.frexp((count - 1).astype(np.float64))  # 2**bits / 2 < count <= 2**bits
    shift = RECIPROCAL_BITS + bits.astype(np.int64)
    multiplier = (((1 << RECIPROCAL_BITS) + 1) << bits.astype(np.int64)) // count
    return (total.astype(np.int64) * multiplier + np.left_shift(1, shift - 1)) >> shift


def max_pool2d(operation: tosa.MaxPool2d, values: Array) -> Array:
    """[N,IH,IW,C] -> [N,OH,OW,C]; NaN as `nan_mode` says."""
    dtype = operation.result.dtype
    if not dtype.is_float:
        return _pooled(operation, values, integer_range(dtype)[0], np.maximum)
    if operation.nan_mode is NanMode.IGNORE:
        return _pooled(operation, values, np.nan, np.fmax)
    return _pooled(operation, values, -np.inf, np.maximum)


def _pooled(
    operation: tosa.Pool2d, values: Array, outside: float, join: Callable[[Array, Array], Array]
) -> Array:
    """Join what each window covers, first along its columns, then along its rows."""
    top, bottom, left, right = operation.pad
    pairs = ((0, 0), (top, bottom), (left, right), (0, 0))
    if any(operation.pad):
        values = np.pad(values, pairs, constant_values=outside)
    _, height, width, _ = operation.result.shape
    for axis, places in ((1, height), (2, width)):
        kernel, stride = operation.kernel[axis - 1], operation.stride[axis - 1]
        before = (slice(None),) * axis
        parts = (
            values[(*before, slice(first, first + (places - 1) * stride + 1, stride))]
            for first in range(kernel)
        )
        joined = next(parts)
        for part in parts:
            joined = join(joined, part)
        values = joined
    return values


def fft2d(operation: tosa.Fft2d, real: Array, imaginary: Array) -> tuple[Array, Array]:
    """[N,H,W], [N,H,W] -> both the same; the inverse is not divided by the number of elements."""
    signal = real.astype(np.float64) + 1j * imaginary.astype(np.float64)
    inverse = operation.inverse
    return _parts(
        operation, np.fft.ifft2(signal, norm="forward") if inverse else np.fft.fft2(signal)
    )


def rfft2d(operation: Operation, real: Array) -> tuple[Array, Array]:
    """[N,H,W] -> [N,H,W/2+1], twice."""
    return _parts(operation, np.fft.rfft2(real.astype(np.float64)))


def _parts(operation: Operation, values: Array) -> tuple[Array, Array]:
    dtype = operation.results[0].dtype
    return rounded(np.real(values), dtype), rounded(np.imag(values), dtype)


KERNELS: Kernels = {
    tosa.Argmax: argmax,
    tosa.AvgPool2d: avg_pool2d,
    tosa.Conv2d: convolution,
    tosa.Conv3d: convolution,
    tosa.DepthwiseConv2d: depthwise,
    tosa.Fft2d: fft2d,
    tosa.Matmul: matmul,
    tosa.MaxPool2d: max_pool2d,
    tosa.Rfft2d: rfft2d,
    tosa.TransposeConv2d: transpose_convolution,
}
