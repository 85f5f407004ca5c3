"""The kernels of the programmable layer engine; the poolings' are 8-bit `[n, H, W, C]` in and out.

Ref: Ethos-N driver stack 25.03, `firmware/ple/src`, a file for each kernel; of the poolings
`MeanXyCommon.hpp`, `AvgPool_3x3_1_1_Udma.cpp`, `MaxPool_2x2_2_2.cpp`, `MaxPool_3x3_2_2_Common.hpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import PleOperation, PleRecord
from mizzen.targets.ethos_n.sim.geometry import interleave, interleaved_channels
from mizzen.targets.ethos_n.sim.rounding import (
    every_input,
    looked_up,
    rescaled,
    saturated,
    sigmoid_table,
    wrapped_16,
)

Array = npt.NDArray[Any]

_MEAN_SHIFT = 20
_AVERAGE_SHIFT = 16


def mean_of_plane(values: Array) -> Array:
    """Return mean of each plane, `[n, 1, 1, C]`, rounded half up but for the reciprocal's error.

    Sums of at most 64 elements fit 16 bits; products are of 32, whose high half is shifted.
    """
    count = values.shape[1] * values.shape[2]
    multiplier = (1 << _MEAN_SHIFT) // count + 1
    sums = values.sum(axis=(1, 2), dtype=np.int64, keepdims=True)
    return ((sums + count // 2) * multiplier >> _MEAN_SHIFT).astype(values.dtype)


def average_3x3(values: Array) -> Array:
    """Return the mean of the 3 x 3 elements around each, those outside the plane left out.

    The kernel knows whether an element is in the first or last row, and column, not how many
    elements there are: it divides by 9, 6 or 4 also where a plane has only one row.
    """
    n, height, width, depth = values.shape
    padded = np.zeros((n, height + 2, width + 2, depth), np.int32)
    padded[:, 1:-1, 1:-1] = values
    down = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    sums = down[:, :, :-2] + down[:, :, 1:-1] + down[:, :, 2:]
    taps = np.multiply.outer(_taps(height), _taps(width))[:, :, None]
    sums += taps // 2
    sums *= (1 << _AVERAGE_SHIFT) // taps + 1
    return (sums >> _AVERAGE_SHIFT).astype(values.dtype)


def _taps(extent: int) -> npt.NDArray[np.int32]:
    """Return 2 for the first and last place along an axis, 3 for others."""
    taps = np.full(extent, 3, np.int32)
    taps[[0, -1]] = 2
    return taps


def largest_2x2(values: Array) -> Array:
    """Return the largest of each 2 x 2 elements; the last row or column may stand alone."""
    return _largest(_largest(values, 2, 1), 2, 2)


def largest_3x3(values: Array) -> Array:
    """Return the largest of 3 x 3 elements at every second place that has two rows and columns."""
    return _largest(_largest(values, 3, 1), 3, 2)


def _largest(values: Array, size: int, axis: int) -> Array:
    """Return the largest of windows of `size` at every second place along an axis."""
    extent = values.shape[axis]
    count = -(-extent // 2) if size == 2 else extent // 2
    turned = values.swapaxes(0, axis)
    result = turned[: 2 * count : 2].copy()
    for tap in range(1, size):
        part = turned[tap : tap + 2 * count : 2]
        np.maximum(result[: len(part)], part, out=result[: len(part)])
    return result.swapaxes(0, axis)


Extents = tuple[int, int, int]
"""H, W, C."""


@dataclass(frozen=True, slots=True)
class PleSettings:
    """What a kernel is told: the zero points of its inputs and its output, the type, the banks."""

    ple: PleRecord
    input_zero_points: tuple[int, ...]
    output_zero_point: int
    dtype: np.dtype[Any]
    banks: int


Bound = Callable[..., Array]
"""Takes the inputs, `[n, H, W, C]` of the kernel's type, returns the output."""


@dataclass(frozen=True, slots=True)
class PleKernel:
    """A row: what a kernel reads, what it makes of extents, how it is prepared to run.

    from_mce  whether it reads what the compute engine makes, or tensors in SRAM
    sides     extents of a plane that it can have; empty for any
    """

    from_mce: bool
    inputs: int
    extents: Callable[[Extents, int], Extents]
    bind: Callable[[PleSettings], Bound]
    sides: tuple[int, ...] = ()


def _same(extents: Extents, banks: int) -> Extents:
    return extents


def _interleaved(extents: Extents, banks: int) -> Extents:
    height, width, channels = extents
    return -(-height // 2), -(-width // 2), interleaved_channels(channels, banks)


def _halved_up(extents: Extents, banks: int) -> Extents:
    return -(-extents[0] // 2), -(-extents[1] // 2), extents[2]


def _halved_down(extents: Extents, banks: int) -> Extents:
    return extents[0] // 2, extents[1] // 2, extents[2]


def _to_one(extents: Extents, banks: int) -> Extents:
    return 1, 1, extents[2]


def _turned(extents: Extents, banks: int) -> Extents:
    return extents[1], extents[0], extents[2]


def _plain(kernel: Bound) -> Callable[[PleSettings], Bound]:
    """Bind a kernel that needs no settings."""
    return lambda settings: kernel


def _passed(values: Array) -> Array:
    return values


def _downsampled(values: Array) -> Array:
    return values[:, ::2, ::2]


def _transposed(values: Array) -> Array:
    return values.transpose(0, 2, 1, 3)


def _bind_interleave(settings: PleSettings) -> Bound:
    return partial(interleave, banks=settings.banks)


def _bind_sigmoid(settings: PleSettings) -> Bound:
    ple = settings.ple
    zero_point = settings.input_zero_points[0]
    table = sigmoid_table(settings.dtype, zero_point, ple.multiplier0, ple.shift0)
    return partial(looked_up, table=table, dtype=settings.dtype)


def _bind_leaky(settings: PleSettings) -> Bound:
    ple = settings.ple
    numbers, zero_point = every_input(settings.dtype), settings.input_zero_points[0]
    straight = rescaled(numbers, zero_point, ple.multiplier0, ple.shift0)
    leaked = rescaled(numbers, zero_point, ple.multiplier1, ple.shift1)
    total = wrapped_16(np.maximum(straight, leaked) + settings.output_zero_point)
    table = saturated(total, settings.dtype).astype(np.int64)
    return partial(looked_up, table=table, dtype=settings.dtype)


def _bind_addition(settings: PleSettings) -> Bound:
    # All three tensors have the same quantisation; the kernel is told the output's.
    zero_point = np.int16(settings.output_zero_point)

    def add(first: Array, second: Array) -> Array:
        total = first.astype(np.int16)
        total -= zero_point
        total += second
        return saturated(total, settings.dtype)

    return add


def _bind_addition_rescale(settings: PleSettings) -> Bound:
    ple, numbers = settings.ple, every_input(settings.dtype)
    zero_points = settings.input_zero_points
    left = rescaled(numbers, zero_points[0], ple.multiplier0, ple.shift0)
    left = wrapped_16(left + settings.output_zero_point)
    right = rescaled(numbers, zero_points[1], ple.multiplier1, ple.shift1)
    int16 = np.dtype(np.int16)

    def add(first: Array, second: Array) -> Array:
        total = looked_up(first, left, int16)
        total += looked_up(second, right, int16)  # int16 wraps as the register does
        return saturated(total, settings.dtype)

    return add


def _pooled(extents: Callable[[Extents, int], Extents], kernel: Bound) -> PleKernel:
    return PleKernel(True, 1, extents, _plain(kernel))


KERNELS: dict[PleOperation, PleKernel] = {
    PleOperation.ADDITION: PleKernel(False, 2, _same, _bind_addition),
    PleOperation.ADDITION_RESCALE: PleKernel(False, 2, _same, _bind_addition_rescale),
    PleOperation.AVGPOOL_3X3_1_1_UDMA: PleKernel(False, 1, _same, _plain(average_3x3)),
    PleOperation.INTERLEAVE_2X2_2_2: PleKernel(True, 1, _interleaved, _bind_interleave),
    PleOperation.MAXPOOL_2X2_2_2: _pooled(_halved_up, largest_2x2),
    PleOperation.MAXPOOL_3X3_2_2_EVEN: _pooled(_halved_down, largest_3x3),
    PleOperation.MAXPOOL_3X3_2_2_ODD: _pooled(_halved_down, largest_3x3),
    PleOperation.MEAN_XY_7X7: PleKernel(True, 1, _to_one, _plain(mean_of_plane), (7,)),
    PleOperation.MEAN_XY_8X8: PleKernel(True, 1, _to_one, _plain(mean_of_plane), (8,)),
    PleOperation.PASSTHROUGH: _pooled(_same, _passed),
    PleOperation.SIGMOID: PleKernel(True, 1, _same, _bind_sigmoid),
    PleOperation.TRANSPOSE_XY: _pooled(_turned, _transposed),
    PleOperation.LEAKY_RELU: PleKernel(True, 1, _same, _bind_leaky),
    PleOperation.DOWNSAMPLE_2X2: _pooled(_halved_up, _downsampled),
}
"""Every kernel but FAULT, which stops the engine."""
