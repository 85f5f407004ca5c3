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
    """[...,N,H,C], [...,N,C,W] -> [...,N,H,W]."""
    terms = a.shape[-1]
    bound = terms * _greatest(operation, 0, a_zp) * _greatest(operation, 1, b_zp)
    dtype = _exact_type(operation, bound)
    left, right = _centered(a, a_zp, dtype), _centered(b, b_zp, dtype)
    with np.errstate(invalid="ignore"):
        product = left @ right
    return _finish(operation, product, None, bound)


def convolution(
    operation: tosa.Windowed, values: Array, weight: Array, bias: Array, input_zp: Array, zp: Array
) -> Array:
    """[N,...,IC], weight [OC,...,IC] -> [N,...,OC], for any number of dimensions in between."""
    matrix = _centered(weight, zp, np.float64).reshape(len(weight), -1).T
    bound = _largest_sum(matrix, 0) * _greatest(operation, 0, input_zp)
    dtype = _exact_type(operation, bound)
    matrix = np.ascontiguousarray(matrix, dtype)
    padded = _padded(values, input_zp, operation.pad, dtype)
    places = operation.result.shape[1:-1]
    windows = _windows(operation, padded, weight.shape[1:-1], places)
    result = np.empty((len(values), *places, len(weight)), dtype)
    step = max(1, COLUMNS // max(1, windows[0].size))
    with np.errstate(invalid="ignore"):
        for first in range(0, len(windows), step):
            columns = windows[first : first + step].reshape(-1, len(matrix))
            np.matmul(columns, matrix, out=result[first : first + step].reshape(-1, len(weight)))
    return _finish(operation, result, bias, bound)


def depthwise(
    operation: tosa.Windowed, values: Array, weight: Array, bias: Array, input_zp: Array, zp: Array
) -> Array:
    """[N,IH,IW,C], weight [KH,KW,C,M] -> [N,OH,OW,C*M]."""
    taps = _centered(weight, zp, np.float64).reshape(*weight.shape[:2], -1)
    bound = _largest_sum(taps, (0, 1)) * _greatest(operation, 0, input_zp)
    dtype = _exact_type(operation, bound)
    taps = taps.astype(dtype)
    padded = _padded(values, input_zp, operation.pad, dtype)
    padded = np.repeat(padded, weight.shape[3], axis=3) if weight.shape[3] > 1 else padded
    _, height, width, depth = operation.result.shape
    result = _sum_of_taps(operation, padded, taps, (height, width))
    return _finish(operation, result.reshape(-1, height, width, depth), bias, bound)


def _sum_of_taps(
    operation: tosa.Windowed, padded: Array, taps: Array, places: tuple[int, int]
) -> Array:
    """Add up products tap by tap, [N,H,W,C] and [KH,KW,C] -> [N,OH,OW*C].

    A row of the map is one vector, and so the weights are repeated along it.
    """
    height, width = places
    y_stride, x_stride = operation.stride
    y_dilation, x_dilation = operation.dilation
    result = np.zeros((len(padded), height, width * padded.shape[3]), padded.dtype)
    product = np.empty_like(result)
    with np.errstate(invalid="ignore"):
        for x in range(taps.shape[1]):
            left = x * x_dilation
            columns = padded[:, :, left : left + (width - 1) * x_stride + 1 : x_stride]
            flat = columns.reshape(len(padded), padded.shape[1], -1)
            for y in range(taps.shape[0]):
                top = y * y_dilation
                seen = flat[:, top : top + (height - 1) * y_stride + 1 : y_stride]
                np.multiply(seen, np.tile(taps[y, x], width), out=product)
                result += product
    return result


def transpose_convolution(
    operation: tosa.TransposeConv2d,
    values: Array,
    weight: Array,
    bias: Array,
    input_zp: Array,
    zp: Array,
) -> Array:
    """[N,IH,IW,IC], weight [OC,KH,KW,IC] -> [N,OH,OW,OC]."""
    weights = _centered(weight, zp, np.float64)
    bound = _largest_sum(weights, (1, 2, 3)) * _greatest(operation, 0, input_zp)
    dtype = _exact_type(operation, bound)
    plain, weights = _centered(values, input_zp, dtype), weights.astype(dtype)
    top, _, left, _ = operation.out_pad
    result = np.zeros((len(values), *operation.result.shape[1:]), dtype)
    _, height, width, _ = result.shape
    y_stride, x_stride = operation.stride
    with np.errstate(invalid="ignore"):
        for y, x in np.ndindex(weight.shape[1:3]):
            lines, into_rows = _landing(plain.shape[1], y + top, y_stride, height)
            columns, into_columns = _landing(plain.shape[2], x + left, x_stride, width)
            result[:, into_rows, into_columns] += plain[:, lines, columns] @ weights[:, y, x].T
    return _finish(operation, result, bias, bound)


def _landing(size: int, first: int, stride: int, new_size: int) -> tuple[slice, slice]:
    """Return which samples land within the result if sample i lands at first + i * stride."""
    start = max(0, -(first // stride))  # the first whose place is not negative
    stop = max(start, min(size, -((first - new_size) // stride)))  # after the last that is within
    place = first + start * stride
    return slice(start, stop), slice(place, place + (stop - start) * stride, stride)


def _centered(values: Array, zero_point: Array, dtype: type[np.floating]) -> Array:
    """Return the values less their zero point, in this type; real numbers have none."""
    plain = values.astype(dtype)
    _center(plain, zero_point)
    return plain


def _center(values: Array, zero_point: Array) -> None:
    if zero_point.dtype.kind == "i" and zero_point[0]:
        values -= values.dtype.type(zero_point[0])


def _greatest(operation: Operation, index: int, zero_point: Array) -> int:
    """Return the bound of this operand's integers less its zero point; 0 of real numbers."""
    dtype = operation.operands[index].dtype
    if dtype.is_float:
        return 0
    low, high = integer_range(dtype)
    return max(high - int(zero_point[0]), int(zero_point[0]) - low)


def _largest_sum(weights: Array, axis: int | tuple[int, ...]) -> float:
    """Return the greatest sum of absolute values along axes."""
    return float(np.abs(weights).sum(axis=axis).max(initial=0))


def _exact_type(operation: Operation, bound: float) -> type[np.floating]:
    """Return the type that holds every sum of products exactly, of integers up to the bound."""
    if operation.result.dtype.is_float:
        return np.float64
    assert bound < DOUBLE_EXACT, "no operation of TOSA's level 8K has as many products"
    return np.float32 if bound < SINGLE_EXACT else np.float64


def _padded(
    values: Array, zero_point: Array, pad: Sequence[int], dtype: type[np.floating]
) -> Array:
    """Return centered values, with zeros around what is between the first and last dimension."""
    if not any(pad):
        return _centered(values, zero_point, dtype)
    sizes = [
        size + pad[2 * index] + pad[2 * index + 1] for index, size in enumerate(values.shape[1:-1])
    ]
    result = np.zeros((len(values), *sizes, values.shape[-1]), dtype)
    inner = tuple(
        slice(pad[2 * index], pad[2 * index] + size)
        for index, size in enumerate(values.shape[1:-1])
    )
    part = result[(slice(None), *inner)]
    part[...] = values
    _center(part, zero_point)
    return result


def _windows(
    operation: tosa.Windowed, padded: Array, kernel: Sequence[int], places: Sequence[int]
) -> Array:
    """Return the elements under the kernel at each place: [N, *places, *kernel, C], a view."""
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


def _finish(operation: Operation, total: Array, bias: Array | None, bound: float) -> Array:
    """Return the sums with the bias added in the result's type; raises E822 on overflow.

    bound  what no integer sum exceeds, without the bias
    """
    dtype = operation.result.dtype
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            return rounded(total if bias is None else total + bias.astype(np.float64), dtype)
    added = 0 if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
    if bound + added <= integer_range(dtype)[1]:
        result = total.astype(dtype.numpy)
        return result if bias is None else np.add(result, bias, out=result)
    result = fitted(operation, total.astype(np.int64), dtype)
    if bias is None:
        return result
    return fitted(operation, result.astype(np.int64) + bias, dtype)


RECIPROCAL_BITS = 30


def argmax(operation: tosa.Argmax, values: Array) -> Array:
    """Return the first place of the greatest along the axis; NaN as `nan_mode` says."""
    axis = operation.axis - operation.input.type.rank
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
