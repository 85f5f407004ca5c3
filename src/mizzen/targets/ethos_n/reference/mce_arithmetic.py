"""What the compute engine computes: weighted sums, scaled, offset and bounded.

A sum is kept exactly (int64; the hardware's 32 bits are taken to be enough). It is multiplied by
an unsigned 16-bit scale and shifted right, halves going up; that rounding is the one that the
public sources leave open. Winograd convolutions are computed as what they stand for.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp`, `McePlePass.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.network import (
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    ResizeAlgorithm,
    TransposeConvolution,
    Weighted,
)
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, TensorInfo

Numbers = npt.NDArray[np.int64]
Plain = npt.NDArray[Any]

SCALE_BITS = 16
MAX_SHIFT = 47
"""A sum's scale is unsigned and has 16 bits; its shift is bounded by the sum's and scale's bits."""
IDENTITY_SCALE = 1 / 128
"""A copy is a weighted sum of one element, with weight 128 and this scale.

Scaling down and up by a power of two is exact, so every other power of two gives the same copy.
"""


@dataclass(frozen=True, slots=True)
class Finish:
    """What becomes of a sum: its type and quantisation, and bounds in those quantised numbers."""

    data_type: DataType
    quantization: QuantizationInfo
    lower: int
    upper: int

    @classmethod
    def of(cls, info: TensorInfo) -> Finish:
        """Return that of a tensor, bounded by its type alone."""
        kind = info.data_type
        return cls(kind, info.quantization, kind.lowest, kind.highest)

    def bounded(self, lower: int, upper: int) -> Finish:
        """Return the same with bounds that are no wider than these."""
        return replace(self, lower=max(self.lower, lower), upper=min(self.upper, upper))

    def requantized(self, info: TensorInfo) -> Finish:
        """Return that of another type and quantisation, with bounds that mean the same reals."""
        old, new, kind = self.quantization, info.quantization, info.data_type

        def moved(bound: int) -> int:
            # In float32, halves away from zero, as the library does it.
            real = np.float32(bound - old.zero_point) * np.float32(old.scale)
            steps = float(real / np.float32(new.scale))
            rounded = int(np.copysign(np.floor(abs(steps) + 0.5), steps)) + new.zero_point
            return min(max(rounded, kind.lowest), kind.highest)

        return Finish(kind, new, moved(self.lower), moved(self.upper))


def sum_constants(
    input_scale: float, weight_scales: tuple[float, ...], output_scale: float
) -> tuple[Numbers, Numbers]:
    """Return the scale and the shift of the sums of each channel, or of all where there is one.

    input * weight / output, rounded to float32 at each step, is about scale / 2**shift: as near as
    16 bits of scale and a shift of 47 allow, halves up.
    """
    product = np.float32(input_scale) * np.asarray(weight_scales, np.float32)
    ratio = (product / np.float32(output_scale)).astype(np.float64)
    _, exponent = np.frexp(ratio)
    shift = np.minimum(SCALE_BITS - exponent.astype(np.int64), MAX_SHIFT)
    scale = np.floor(np.ldexp(ratio, shift) + 0.5).astype(np.int64)
    full = scale == 1 << SCALE_BITS
    halved = full & (shift > 0)
    scale = np.where(halved, scale >> 1, scale) - (full & ~halved)
    return scale, shift - halved


def finished(sums: Numbers, scale: Numbers, shift: Numbers, finish: Finish) -> Numbers:
    """Scale sums of shape [N, H, W, C], halves up, offset and bound them."""
    half = np.where(shift > 0, np.left_shift(1, np.maximum(shift, 1) - 1), 0)
    scaled = (sums * scale + half) >> shift
    return np.clip(scaled + finish.quantization.zero_point, finish.lower, finish.upper)


def copied(numbers: Numbers, quantization: QuantizationInfo, finish: Finish) -> Numbers:
    """Return numbers in another quantisation, by sums of one element."""
    scale, shift = sum_constants(quantization.scale, (IDENTITY_SCALE,), finish.quantization.scale)
    sums = (numbers - quantization.zero_point) * round(1 / IDENTITY_SCALE)
    return finished(sums, scale, shift, finish)


def weighted(
    operation: Weighted,
    inputs: tuple[TensorInfo, TensorInfo, TensorInfo],
    numbers: Numbers,
    constants: tuple[Plain, Plain],
    finish: Finish,
) -> Numbers:
    """Return a convolution or a matrix product of [N, H, W, C], of the bias and the weights."""
    info, _, weights_info = inputs
    bias, weights = (values.astype(np.int64) for values in constants)
    centred = numbers - info.quantization.zero_point
    sums = _sums(operation, centred, weights - weights_info.quantization.zero_point)
    scales = weights_info.quantization.scales
    scale, shift = sum_constants(info.quantization.scale, scales, finish.quantization.scale)
    return finished(sums + bias.reshape(-1), scale, shift, finish)


def _sums(operation: Weighted, centred: Numbers, weights: Numbers) -> Numbers:
    match operation:
        case FullyConnected():
            flat = centred.reshape(len(centred), 1, 1, -1)
            return _product(flat, weights.reshape(-1, weights.shape[-1]))
        case TransposeConvolution():
            return _scattered(operation, centred, weights)
        case Convolution() | DepthwiseConvolution():
            return _gathered(operation, centred, weights)


def _product(left: Numbers, right: Numbers) -> Numbers:
    """Multiply matrices exactly: a product has 17 bits, so float64 holds sums of 2**36 of them."""
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)


def _gathered(
    operation: Convolution | DepthwiseConvolution, centred: Numbers, weights: Numbers
) -> Numbers:
    """Sum what lies under a kernel at each of its positions; outside the plane lie zeros."""
    padding, stride = operation.padding, operation.stride
    around = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
    padded = np.pad(centred, around)
    kernel_height, kernel_width, _, last = weights.shape
    height = (padded.shape[1] - kernel_height) // stride.y + 1
    width = (padded.shape[2] - kernel_width) // stride.x + 1
    is_depthwise = isinstance(operation, DepthwiseConvolution)
    channels = padded.shape[3] * last if is_depthwise else last
    sums = np.zeros((len(centred), height, width, channels), np.int64)
    for y, x in np.ndindex(kernel_height, kernel_width):
        lines = slice(y, y + (height - 1) * stride.y + 1, stride.y)
        columns = slice(x, x + (width - 1) * stride.x + 1, stride.x)
        under = padded[:, lines, columns]
        if is_depthwise:
            sums += (under[..., None] * weights[y, x]).reshape(sums.shape)
        else:
            sums += _product(under, weights[y, x])
    return sums


def _scattered(operation: TransposeConvolution, centred: Numbers, weights: Numbers) -> Numbers:
    """Add each element's multiple of the kernel where it belongs, then cut the padding off."""
    stride, cut = operation.stride, operation.padding
    count, height, width, _ = centred.shape
    kernel_height, kernel_width, _, channels = weights.shape
    lines = (height - 1) * stride.y + max(kernel_height, stride.y)
    columns = (width - 1) * stride.x + max(kernel_width, stride.x)
    sums = np.zeros((count, lines, columns, channels), np.int64)
    for y, x in np.ndindex(kernel_height, kernel_width):
        down = slice(y, y + (height - 1) * stride.y + 1, stride.y)
        right = slice(x, x + (width - 1) * stride.x + 1, stride.x)
        sums[:, down, right] += _product(centred, weights[y, x])
    bottom = height * stride.y + kernel_height - stride.y - cut.bottom
    far = width * stride.x + kernel_width - stride.x - cut.right
    return sums[:, cut.top : bottom, cut.left : far]


def upsampled(numbers: Numbers, algorithm: ResizeAlgorithm, height: int, width: int) -> Numbers:
    """Return planes of twice the height and width, or one less of each.

    Elements at even places are those of the input. Between them lies the nearest before
    (NEAREST_NEIGHBOUR), or the mean of the two or four around (BILINEAR), halves up, where the last
    row and column of an even plane repeat those before them. The sources do not say how the engine
    rounds the mean; it takes 8-bit elements, so the mean is rounded before anything else.
    """
    if algorithm is ResizeAlgorithm.NEAREST_NEIGHBOUR:
        doubled = numbers.repeat(2, axis=1).repeat(2, axis=2)
    else:
        doubled = (_between(_between(numbers, 1), 2) + 2) >> 2
    return doubled[:, :height, :width]


def _between(numbers: Numbers, axis: int) -> Numbers:
    """Return each element doubled, then its sum with the next; the last is its own next."""
    extent = numbers.shape[axis]
    places = [*range(1, extent), extent - 1]
    following: Numbers = np.take(numbers, places, axis)
    pairs = np.stack([2 * numbers, numbers + following], axis + 1)
    return pairs.reshape(*numbers.shape[:axis], 2 * extent, *numbers.shape[axis + 1 :])
