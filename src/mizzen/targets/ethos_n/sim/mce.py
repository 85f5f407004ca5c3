"""The compute engine: what a pass asks of it, checked and prepared once, and run for a batch.

Its sums are exact integers by products of floats where these are exact. Inputs and weights are
integers below 2**9; a float32 sum of their products is exact while the sum of absolute values stays
below 2**24, a float64 sum below 2**53, in any order of addition. The bound is computed from the
real weights, so the choice is never a guess. Winograd is computed as the direct sum.

Ref: Ethos-N driver stack 23.02, `McePlePass.cpp`, `Weights.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from mizzen.targets.ethos_n.commands_values import (
    MceOperation,
    McePle,
    MceRecord,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.sim.dram import DTYPES
from mizzen.targets.ethos_n.sim.geometry import (
    STRIDE,
    UPSAMPLING,
    Geometry,
    Where,
    interleaved_channels,
)
from mizzen.targets.ethos_n.sim.rounding import Requantizer, requantizer
from mizzen.targets.ethos_n.sim.weight_decoding import DecodedWeights
from mizzen.targets.ethos_n.tensors import Shape

Array = npt.NDArray[Any]

Weights = npt.NDArray[np.int16]

FLOAT32_EXACT = 1 << 24
BLOCK_ELEMENTS = 1 << 17
"""Elements of unrolled input that are multiplied at once."""


class Summer(Protocol):
    """Makes sums of padded planes."""

    images: int
    """Images to give at once."""

    def blocks(self, padded: Array) -> Iterator[tuple[slice, Array]]:
        """Return rows of the output and their sums, `[n, rows, W, O]`."""
        ...


def exact_float(bound: int) -> type[np.float32 | np.float64]:
    """Return the type whose sums of integers up to `bound` are exact."""
    return np.float32 if bound < FLOAT32_EXACT else np.float64


class MatrixSums:
    """Sums over all input channels, of weights `[H, W, I, O]`: a product of matrices."""

    def __init__(self, geometry: Geometry, weights: Weights, dtype: npt.DTypeLike) -> None:
        self._geometry = geometry
        depth = weights.shape[3]
        self._matrix = np.ascontiguousarray(weights.reshape(-1, depth).astype(dtype))
        line_elements = geometry.output_width * max(len(self._matrix), depth)
        self._rows = min(geometry.output_height, max(1, BLOCK_ELEMENTS // line_elements))
        self.images = max(1, BLOCK_ELEMENTS // (line_elements * geometry.output_height))

    def blocks(self, padded: Array) -> Iterator[tuple[slice, Array]]:
        """Return rows of the output and their sums, `[n, rows, W, O]`."""
        height, width = self._geometry.output_height, self._geometry.output_width
        for top in range(0, height, self._rows):
            lines = slice(top, min(top + self._rows, height))
            shape = (len(padded), lines.stop - top, width, self._matrix.shape[1])
            columns = self._columns(padded, lines).reshape(-1, len(self._matrix))
            yield lines, np.matmul(columns, self._matrix).reshape(shape)

    def _columns(self, padded: Array, lines: slice) -> Array:
        """Return windows `[n, rows, W, kh, kw, C]`; a view where they are elements."""
        way = self._geometry
        if (way.kernel_height, way.kernel_width, way.stride) == (1, 1, 1):
            return padded[:, lines]
        batch, row_bytes, column, element = padded.strides
        seen = padded[:, lines.start * way.stride :]
        shape = (len(padded), lines.stop - lines.start, way.output_width)
        windows = as_strided(
            seen,
            (*shape, way.kernel_height, way.kernel_width, way.channels),
            (batch, row_bytes * way.stride, column * way.stride, row_bytes, column, element),
            writeable=False,
        )
        return np.ascontiguousarray(windows)


class DepthwiseSums:
    """Sums of each channel alone, of weights `[H, W, C]`: row by row, weight by weight."""

    def __init__(self, geometry: Geometry, weights: Weights, dtype: npt.DTypeLike) -> None:
        self._geometry = geometry
        self._weights = weights.astype(dtype)
        plane = geometry.output_height * geometry.output_width * geometry.channels
        self.images = max(1, BLOCK_ELEMENTS // plane)

    def blocks(self, padded: Array) -> Iterator[tuple[slice, Array]]:
        """Return all rows of the output and their sums, `[n, H, W, C]`."""
        way, step = self._geometry, self._geometry.stride
        total: Array | None = None
        for y in range(way.kernel_height):
            for x in range(way.kernel_width):
                last_y = y + (way.output_height - 1) * step + 1
                last_x = x + (way.output_width - 1) * step + 1
                product = padded[:, y:last_y:step, x:last_x:step] * self._weights[y, x]
                total = product if total is None else np.add(total, product, out=total)
        assert total is not None  # a kernel has at least one weight
        yield slice(0, way.output_height), total


LARGEST_KERNEL = 9
"""Rows and columns of weights that the compilers make passes of."""
ACCUMULATOR_LIMIT = 1 << 31
MOST_SPARE = 1
"""Rows or columns after the last ones that the window sees."""
MOST_WEIGHTS = 1 << 28
"""Weights of a pass beyond which it is not simulated."""


@dataclass(frozen=True, slots=True, eq=False)
class MceStage:
    """The prepared work of the compute engine in one pass."""

    where: Where
    geometry: Geometry
    summer: Summer
    finish: Requantizer
    zero_point: int
    accumulate: type[np.float32 | np.float64]
    dtype: np.dtype[Any]
    channels: int
    bias: npt.NDArray[np.int64] | None
    """Of each output channel, where accumulators are not known to fit; they are checked then."""

    def run(self, values: Array) -> Array:
        """Return output, `[n, H, W, C]`, for an input `[n, H, W, C]`; E965 for sums too large."""
        way = self.geometry
        shape = (len(values), way.output_height, way.output_width, self.channels)
        result = np.empty(shape, self.dtype)
        for start in range(0, len(values), self.summer.images):
            images = slice(start, start + self.summer.images)
            padded = way.padded(values[images], self.zero_point, self.accumulate)
            for lines, sums in self.summer.blocks(padded):
                self._require_accumulators(sums)
                self.finish(sums, result[images, lines])
        return result

    def _require_accumulators(self, sums: Array) -> None:
        if self.bias is None:
            return
        total = sums.astype(np.int64) + self.bias
        low, high = int(total.min()), int(total.max())
        if low < -ACCUMULATOR_LIMIT or high >= ACCUMULATOR_LIMIT:
            raise self.where.fault(
                "E965",
                f"an accumulator must fit 32 bits, and reaches {low}..{high}",
                help="the network computes beyond the machine's integers; its quantisation is "
                "broken",
            )


def prepare(where: Where, command: McePle, weights: DecodedWeights, geometry: Geometry) -> MceStage:
    """Fix how a pass of the compute engine is computed; E961 and E963 for numbers that cannot be.

    `geometry` is that of `geometry_of`, the weights those that `check_weights` let pass.
    """
    mce = command.mce
    values = _of_inputs(where, command, weights)
    _check_numbers(where, command, weights)
    is_depthwise = mce.operation is MceOperation.DEPTHWISE_CONVOLUTION
    axes = (0, 1, 3) if is_depthwise else (0, 1, 2)
    magnitude = _magnitude(command)
    largest = int(np.abs(values.astype(np.int64)).sum(axes).max()) * magnitude
    with_bias = largest + int(np.abs(weights.bias).max())
    dtype = exact_float(largest)
    summer: Summer
    if is_depthwise:
        summer = DepthwiseSums(geometry, values[..., 0], dtype)
    else:
        summer = MatrixSums(geometry, values, dtype)
    bounds = mce.activation_min, mce.activation_max
    finish = requantizer(
        weights.bias, weights.multipliers, weights.shifts, mce.output_zero_point, bounds
    )
    return MceStage(
        where=where,
        geometry=geometry,
        summer=summer,
        finish=finish,
        zero_point=command.input.zero_point,
        accumulate=dtype,
        dtype=DTYPES[command.output.data_type],
        channels=mce.output_shape[3],
        bias=weights.bias if with_bias >= ACCUMULATOR_LIMIT else None,
    )


def geometry_of(where: Where, command: McePle, capabilities: Capabilities) -> Geometry:
    """Return the window's way over the plane; E960 and E962 where it cannot be."""
    mce = command.mce
    _check_way(where, command)
    _check_input(where, command, capabilities)
    _, height, width, channels = mce.uninterleaved_input_shape
    if mce.upsample is not Upsample.OFF:
        height = UPSAMPLING * height - (mce.upsample_edge_row is UpsampleEdge.DROP)
        width = UPSAMPLING * width - (mce.upsample_edge_column is UpsampleEdge.DROP)
    geometry = Geometry(
        height=height,
        width=width,
        channels=channels,
        kernel_height=command.weights.shape[0],
        kernel_width=command.weights.shape[1],
        stride=mce.stride_x,
        pad_top=mce.pad_top,
        pad_left=mce.pad_left,
        output_height=mce.output_shape[1],
        output_width=mce.output_shape[2],
        upsample=mce.upsample,
        banks=capabilities.srams,
    )
    _check_edges(where, geometry)
    return geometry


def _check_way(where: Where, command: McePle) -> None:
    mce, (height, width, _, _) = command.mce, command.weights.shape
    if not (1 <= height <= LARGEST_KERNEL and 1 <= width <= LARGEST_KERNEL):
        raise where.fault(
            "E962",
            f"kernels must have 1 to {LARGEST_KERNEL} rows and columns, not {height} x {width}",
        )
    if mce.stride_x != mce.stride_y or mce.stride_x not in (1, STRIDE):
        raise where.fault(
            "E962", f"strides must be 1 x 1 or 2 x 2, not {mce.stride_x} x {mce.stride_y}"
        )
    if mce.stride_x == STRIDE and mce.upsample is not Upsample.OFF:
        raise where.fault("E962", f"a stride of 2 must go without {mce.upsample.name} upsampling")
    if 0 in mce.output_shape or mce.output_shape[0] != 1:
        raise where.fault("E960", f"the output must have N 1 and extents, not {mce.output_shape}")


def _check_input(where: Where, command: McePle, capabilities: Capabilities) -> None:
    """E960 unless the input is what the uninterleaved shape becomes."""
    mce, came = command.mce, command.input.shape
    whole = mce.uninterleaved_input_shape
    if mce.operation is MceOperation.FULLY_CONNECTED:
        _check_flat(where, mce, came)
        return
    wanted = whole
    if mce.stride_x == STRIDE:
        channels = interleaved_channels(whole[3], capabilities.srams)
        wanted = (whole[0], -(-whole[1] // 2), -(-whole[2] // 2), channels)
    if came != wanted:
        raise where.fault(
            "E960", f"the input must be {_extents(wanted)}, made of {_extents(whole)}, not "
            f"{_extents(came)}"
        )  # fmt: skip


def _check_flat(where: Where, mce: MceRecord, came: Shape) -> None:
    elements = mce.uninterleaved_input_shape[3]
    capacity = -(-came[1] // 8) * -(-came[2] // 8) * -(-came[3] // 16) * 1024
    if mce.uninterleaved_input_shape != (1, 1, 1, elements) or elements > capacity:
        raise where.fault(
            "E960", f"FULLY_CONNECTED must have an input of 1x1x1 by at most {capacity} channels, "
            f"not {_extents(mce.uninterleaved_input_shape)}"
        )  # fmt: skip
    if mce.stride_x != 1 or mce.upsample is not Upsample.OFF or mce.output_shape[:3] != (1, 1, 1):
        raise where.fault("E962", "FULLY_CONNECTED must go without stride, upsampling and planes")


def _check_edges(where: Where, way: Geometry) -> None:
    """E960 unless there are fewer zeros than the window has, and the output needs the plane.

    The last row and column may be left over: of a plane that is upsampled, here or by the pass
    before, and of a strided one.
    """
    edges = (
        ("rows", way.padded_height - way.pad_top - way.height, way.kernel_height, way.pad_top),
        ("columns", way.padded_width - way.pad_left - way.width, way.kernel_width, way.pad_left),
    )
    for name, after, kernel, before in edges:
        if not -MOST_SPARE <= after < kernel or before >= kernel:
            raise where.fault(
                "E960", f"this output needs {before} {name} of zeros before the input and {after} "
                f"after it; there must be less than {kernel}, and at most {MOST_SPARE} left over"
            )  # fmt: skip


def check_weights(where: Where, command: McePle) -> None:
    """E961 for weights for other channels than the pass has."""
    mce, shape = command.mce, command.weights.shape
    inputs, outputs = mce.uninterleaved_input_shape[3], mce.output_shape[3]
    match mce.operation:
        case MceOperation.CONVOLUTION:
            is_right = shape[2:] == (inputs, outputs)
        case MceOperation.DEPTHWISE_CONVOLUTION:
            is_right = shape[2:] == (inputs, 1) and inputs == outputs
        case MceOperation.FULLY_CONNECTED:
            is_right = shape[:2] == (1, 1) and shape[2] >= inputs and shape[3] == outputs
    if not is_right:
        raise where.fault(
            "E961", f"{mce.operation.name} of {inputs} to {outputs} channels must not have weights "
            f"of {_extents(shape)}"
        )  # fmt: skip
    if math.prod(shape) > MOST_WEIGHTS:
        raise where.fault(
            "E968", f"weights must be at most {MOST_WEIGHTS} to be executed here, not "
            f"{math.prod(shape)}"
        )  # fmt: skip


def _of_inputs(where: Where, command: McePle, weights: DecodedWeights) -> Array:
    """Return weights of the input's channels; those beyond fill up, E961 unless they are zero."""
    inputs = command.mce.uninterleaved_input_shape[3]
    if weights.weights[:, :, inputs:].any():
        raise where.fault("E961", f"weights beyond channel {inputs} of the input must be zero")
    return weights.weights[:, :, :inputs]


def _check_numbers(where: Where, command: McePle, weights: DecodedWeights) -> None:
    """E963 for bounds or zero points that are no numbers of their tensors' types."""
    mce = command.mce
    made = np.iinfo(DTYPES[command.output.data_type])
    low, high = mce.activation_min, mce.activation_max
    if not made.min <= low <= high <= made.max:
        raise where.fault(
            "E963", f"bounds of the activation must be ascending numbers of "
            f"{command.output.data_type.name}, not {low}..{high}"
        )  # fmt: skip
    for name, number, limits in (
        ("output", mce.output_zero_point, made),
        ("input", command.input.zero_point, np.iinfo(DTYPES[command.input.data_type])),
    ):
        if not limits.min <= number <= limits.max:
            raise where.fault(
                "E963",
                f"the zero point of the {name} must be {limits.min} to {limits.max}, not {number}",
            )
    wrong = (weights.zero_points - mce.output_zero_point) & 0xFF
    if wrong.any():
        raise where.fault(
            "E963", f"the zero point must be the same in the command, {mce.output_zero_point}, and "
            f"in the weight stream, {int(weights.zero_points[np.flatnonzero(wrong)[0]])}"
        )  # fmt: skip


def _magnitude(command: McePle) -> int:
    """Return the largest absolute value of an input less its zero point."""
    limits, zero = np.iinfo(DTYPES[command.input.data_type]), command.input.zero_point
    return max(int(limits.max) - zero, zero - int(limits.min))


def _extents(shape: Shape) -> str:
    return "x".join(map(str, shape))
