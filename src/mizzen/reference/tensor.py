"""What the tensor operators compute. Ref: TOSA 1.0, 2.3.

Sums of products are computed in floating-point numbers by matrix products, which are many times
faster than those of integers. That is exact: a float32 holds all integers to 2**24, a float64 to
2**53, and no sum on the way is greater than that of all products' absolute values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mizzen.graph import Array, NanMode, Operation, integer_range
from mizzen.ops import tensor as tosa
from mizzen.reference.kernel import Kernels, fitted, rounded, saturated, wide

SINGLE_EXACT = 1 << 24
DOUBLE_EXACT = 1 << 53
COLUMNS = 1 << 23
"""Elements that the matrix of all windows may have; batches that need more are cut."""


def matmul(operation: Operation, a: Array, b: Array, a_zp: Array, b_zp: Array) -> Array:
    """[N,H,C], [N,C,W] -> [N,H,W]."""
    left, right = _centered(operation, a, a_zp), _centered(operation, b, b_zp)
    dtype = _exact_type(operation, _magnitude(left, axis=2), _magnitude(right))
    with np.errstate(invalid="ignore"):
        product = left.astype(dtype) @ right.astype(dtype)
    return _finish(operation, product, None)


def convolution(
    operation: tosa.Windowed, values: Array, weight: Array, bias: Array, input_zp: Array, zp: Array
) -> Array:
    """[N,...,IC], weight [OC,...,IC] -> [N,...,OC], for any number of dimensions in between."""
    plain, weights = _centered(operation, values, input_zp), _centered(operation, weight, zp)
    dtype = _exact_type(
        operation, _magnitude(weights, axis=tuple(range(1, weights.ndim))), _magnitude(plain)
    )
    padded = _padded(plain.astype(dtype), operation.pad)
    matrix = weights.reshape(len(weights), -1).T.astype(dtype)
    result = np.empty(operation.result.shape, dtype)
    windows = _windows(operation, padded, weight.shape[1:-1], result.shape[1:-1])
    step = max(1, COLUMNS // max(1, windows[0].size))
    with np.errstate(invalid="ignore"):
        for first in range(0, len(windows), step):
            part = windows[first : first + step]
            product = part.reshape(-1, matrix.shape[0]) @ matrix
            result[first : first + step] = product.reshape(len(part), *result.shape[1:])
    return _finish(operation, result, bias)


def depthwise(
    operation: tosa.Windowed, values: Array, weight: Array, bias: Array, input_zp: Array, zp: Array
) -> Array:
    """[N,IH,IW,C], weight [KH,KW,C,M] -> [N,OH,OW,C*M]."""
    plain, weights = _centered(operation, values, input_zp), _centered(operation, weight, zp)
    dtype = _exact_type(operation, _magnitude(weights, axis=(0, 1)), _magnitude(plain))
    padded, weights = _padded(plain.astype(dtype), operation.pad), weights.astype(dtype)
    n, height, width, _ = operation.result.shape
    channels, multiplier = weight.shape[2:]
    windows = _windows(operation, padded, weight.shape[:2], (height, width))
    result = np.zeros((n, height, width, channels, multiplier), dtype)
    with np.errstate(invalid="ignore"):
        for y, x in np.ndindex(weight.shape[:2]):
            result += windows[:, :, :, y, x, :, None] * weights[y, x]
    return _finish(operation, result.reshape(operation.result.shape), bias)


def transpose_convolution(
    operation: tosa.TransposeConv2d,
    values: Array,
    weight: Array,
    bias: Array,
    input_zp: Array,
    zp: Array,
) -> Array:
    """[N,IH,IW,IC], weight [OC,KH,KW,IC] -> [N,OH,OW,OC]."""
    plain, weights = _centered(operation, values, input_zp), _centered(operation, weight, zp)
    dtype = _exact_type(operation, _magnitude(weights, axis=(1, 2, 3)), _magnitude(plain))
    plain, weights = plain.astype(dtype), weights.astype(dtype)
    top, _, left, _ = operation.out_pad
    result = np.zeros(operation.result.shape, dtype)
    _, height, width, _ = result.shape
    y_stride, x_stride = operation.stride
    with np.errstate(invalid="ignore"):
        for y, x in np.ndindex(weight.shape[1:3]):
            rows, into_rows = _landing(plain.shape[1], y + top, y_stride, height)
            columns, into_columns = _landing(plain.shape[2], x + left, x_stride, width)
            result[:, into_rows, into_columns] += plain[:, rows, columns] @ weights[:, y, x].T
    return _finish(operation, result, bias)


def _landing(size: int, first: int, stride: int, new_size: int) -> tuple[slice, slice]:
    """Return which samples land within the result if sample i lands at first + i * stride."""
    start = max(0, -(first // stride))  # the first whose place is not negative
    stop = max(start, min(size, -((first - new_size) // stride)))  # behind the last that is within
    place = first + start * stride
    return slice(start, stop), slice(place, place + (stop - start) * stride, stride)


def _centered(operation: Operation, values: Array, zero_point: Array) -> Array:
    """Return the values less their zero point, as float64."""
    if operation.result.dtype.is_float:
        return values.astype(np.float64)
    return values.astype(np.float64) - float(zero_point[0])


def _magnitude(values: Array, axis: int | tuple[int, ...] | None = None) -> float:
    """Return the greatest absolute value, or the greatest sum of them along axes."""
    magnitudes = np.abs(values)
    if axis is not None:
        magnitudes = magnitudes.sum(axis=axis)
    return float(magnitudes.max(initial=0))


def _exact_type(operation: Operation, total: float, factor: float) -> type[np.floating]:
    """Return the type that holds every sum of products exactly, of integers."""
    if operation.result.dtype.is_float:
        return np.float64
    bound = total * factor
    assert bound < DOUBLE_EXACT, "no operation of TOSA's level 8K has as many products"
    return np.float32 if bound < SINGLE_EXACT else np.float64


def _padded(values: Array, pad: Sequence[int]) -> Array:
    """Surround what is between the first and last dimension with zeros."""
    if not any(pad):
        return values
    pairs = [(pad[index], pad[index + 1]) for index in range(0, len(pad), 2)]
    return np.pad(values, [(0, 0), *pairs, (0, 0)])


def _windows(
    operation: tosa.Windowed, padded: Array, kernel: Sequence[int], places: Sequence[int]
) -> Array:
    """Return what the kernel covers at each place: [N, *places, *kernel, C], a view."""
    stride, dilation = operation.stride, operation.dilation
    reach = [(size - 1) * each + 1 for size, each in zip(kernel, dilation, strict=True)]
    between = tuple(range(1, padded.ndim - 1))
    view = sliding_window_view(padded, reach, between)  # [N, *all places, C, *reach]
    at = tuple(slice(None, None, each) for each in stride)
    within = tuple(slice(None, None, each) for each in dilation)
    view = view[(slice(None), *at, slice(None), *within)]
    view = np.moveaxis(view, len(places) + 1, -1)
    assert view.shape[1 : 1 + len(places)] == tuple(places)
    return view


def _finish(operation: Operation, total: Array, bias: Array | None) -> Array:
    """Return the sums with the bias added in the result's type; raises E822 on overflow."""
    dtype = operation.result.dtype
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            return rounded(total if bias is None else total + bias.astype(np.float64), dtype)
    result = fitted(operation, total.astype(np.int64), dtype)
    if bias is None:
        return result
    return fitted(operation, result.astype(np.int64) + bias, dtype)


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
