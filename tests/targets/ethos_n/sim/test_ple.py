"""Kernels of the programmable layer engine, one by one."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.targets.ethos_n.commands_values import PleOperation, PleRecord
from mizzen.targets.ethos_n.sim.geometry import interleave, interleaved_channels

from .assembler import (
    FURTHER,
    SRAM_INPUT_1,
    TYPES,
    Array,
    Extents,
    Kernel,
    mce_ple,
    ple_only,
    program,
    run,
    run_mce,
    source,
    table,
    target,
    tensor,
)

BOTH = pytest.mark.parametrize("dtype", [np.uint8, np.int8])


def drawn(shape: tuple[int, ...], dtype: npt.DTypeLike, seed: int = 3) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8).view(dtype)


def alone(
    operation: PleOperation, values: Array, zero_points: tuple[int, ...], *constants: int
) -> Array:
    """Execute a kernel on one or two maps, `[inputs, n, H, W, C]`; the last zero point is out."""
    extents: Extents = values.shape[2:]  # pyright: ignore[reportAssignmentType] NumPy does not say how many
    kind = {"data_type": TYPES[values.dtype]}
    first = source(extents, zero_point=zero_points[0], **kind)
    second = tensor(extents, FURTHER, SRAM_INPUT_1, zero_point=zero_points[-2], **kind)
    output = target(extents, zero_point=zero_points[-1], **kind)
    command = ple_only(operation, [first, second][: len(values)], output, *constants)
    size = math.prod(extents)
    made = program([command], table([size] * len(values), size))
    return run(made, *values).view(values.dtype).reshape(values.shape[1:])


def behind(
    operation: PleOperation, values: Array, made: Extents, zero_points: tuple[int, int], *pairs: int
) -> Array:
    """Execute a kernel behind a compute engine that passes `[n, H, W, C]` as it is."""
    extents: Extents = values.shape[1:]  # pyright: ignore[reportAssignmentType] NumPy does not say how many
    kind = {"data_type": TYPES[values.dtype]}
    kernel = Kernel.identity(extents[2])
    command = mce_ple(
        kernel,
        source(extents, zero_point=zero_points[0], **kind),
        extents,
        target(made, zero_point=zero_points[1], **kind),
        PleRecord(0, 0, operation, *pairs),
        output_zero_point=zero_points[0],
    )
    return run_mce(kernel, command, values)


def rescaled(number: int, zero_point: int, multiplier: int, shift: int) -> int:
    """One number as the registers have it."""
    product = (number - zero_point) * multiplier
    halves = max(-32768, min(32767, product >> (shift - 1)))
    return ((halves + 1 + 32768) % 65536 - 32768) >> 1


@BOTH
def test_addition_of_one_quantisation(dtype: npt.DTypeLike) -> None:
    pairs = np.stack(np.meshgrid(np.arange(256), np.arange(256))).astype(np.uint8).view(dtype)
    values = pairs.reshape(2, 1, 64, 64, 16)
    limits = np.iinfo(dtype)
    wide = values.astype(int)
    expected = np.clip(wide[0] - 7 + wide[1], limits.min, limits.max)
    np.testing.assert_array_equal(alone(PleOperation.ADDITION, values, (7, 7, 7)), expected)


@BOTH
@pytest.mark.parametrize("pairs", [(37449, 17, 46811, 16), (65535, 3, 40000, 30)])
def test_addition_with_rescaling(dtype: npt.DTypeLike, pairs: tuple[int, int, int, int]) -> None:
    """The second pair of constants saturates, and wraps behind the saturation."""
    values = drawn((2, 2, 8, 8, 16), dtype)
    result = alone(PleOperation.ADDITION_RESCALE, values, (3, 100, 9), *pairs)
    limits = np.iinfo(dtype)
    for place in np.ndindex(1, 8, 8, 16):
        left = rescaled(int(values[0][place]), 3, *pairs[:2])
        total = left + 9 + rescaled(int(values[1][place]), 100, *pairs[2:])
        total = (total + 32768) % 65536 - 32768
        assert result[place] == max(limits.min, min(limits.max, total))


@BOTH
@pytest.mark.parametrize("extents", [(5, 6, 3), (1, 4, 8), (8, 1, 8)])
def test_averages(dtype: npt.DTypeLike, extents: Extents) -> None:
    values = drawn((1, 1, *extents), dtype)
    result = alone(PleOperation.AVGPOOL_3X3_1_1_UDMA, values, (0, 0))
    height, width, depth = extents
    for y, x, c in np.ndindex(height, width, depth):
        rows, columns = slice(max(y - 1, 0), y + 2), slice(max(x - 1, 0), x + 2)
        taps = (2 if y in (0, height - 1) else 3) * (2 if x in (0, width - 1) else 3)
        total = int(values[0, 0, rows, columns, c].astype(int).sum()) + taps // 2
        assert result[0, y, x, c] == total * (65536 // taps + 1) >> 16


@BOTH
@pytest.mark.parametrize(
    ("side", "operation"), [(7, PleOperation.MEAN_XY_7X7), (8, PleOperation.MEAN_XY_8X8)]
)
def test_means(dtype: npt.DTypeLike, side: int, operation: PleOperation) -> None:
    """Half up; the reciprocal is a little large, so that a whole negative number is one too low."""
    values = drawn((4, side, side, 16), dtype)
    result = behind(operation, values, (1, 1, 16), (0, 0))
    count = side * side
    sums = values.astype(int).sum((1, 2)) + count // 2
    lower = (sums < 0) & (sums % count == 0)
    np.testing.assert_array_equal(result[:, 0, 0], sums // count - lower)


@BOTH
@pytest.mark.parametrize(
    ("operation", "extents", "made"),
    [
        (PleOperation.MAXPOOL_2X2_2_2, (6, 8, 8), (3, 4, 8)),
        (PleOperation.MAXPOOL_2X2_2_2, (5, 7, 8), (3, 4, 8)),
        (PleOperation.MAXPOOL_3X3_2_2_ODD, (7, 9, 8), (3, 4, 8)),
        (PleOperation.MAXPOOL_3X3_2_2_EVEN, (8, 6, 8), (4, 3, 8)),
    ],
)
def test_maxima(
    dtype: npt.DTypeLike, operation: PleOperation, extents: Extents, made: Extents
) -> None:
    size = 2 if operation is PleOperation.MAXPOOL_2X2_2_2 else 3
    values = drawn((2, *extents), dtype)
    result = behind(operation, values, made, (0, 0))
    for y, x in np.ndindex(made[0], made[1]):
        window = values[:, 2 * y : 2 * y + size, 2 * x : 2 * x + size]
        np.testing.assert_array_equal(result[:, y, x], window.max((1, 2)))


@BOTH
def test_transpose_and_downsampling(dtype: npt.DTypeLike) -> None:
    values = drawn((2, 5, 7, 8), dtype)
    turned = behind(PleOperation.TRANSPOSE_XY, values, (7, 5, 8), (0, 0))
    np.testing.assert_array_equal(turned, values.transpose(0, 2, 1, 3))
    fewer = behind(PleOperation.DOWNSAMPLE_2X2, values, (3, 4, 8), (0, 0))
    np.testing.assert_array_equal(fewer, values[:, ::2, ::2])


@BOTH
def test_leaky_relu(dtype: npt.DTypeLike) -> None:
    values = np.arange(256, dtype=np.uint8).view(dtype).reshape(1, 8, 8, 4)
    pairs = (43690, 16, 34952, 19)
    result = behind(PleOperation.LEAKY_RELU, values, (8, 8, 4), (28, 90), *pairs).ravel()
    limits = np.iinfo(dtype)
    for number, found in zip(values.ravel().tolist(), result.tolist(), strict=True):
        larger = max(rescaled(number, 28, *pairs[:2]), rescaled(number, 28, *pairs[2:]))
        assert found == max(limits.min, min(limits.max, larger + 90))


@BOTH
@pytest.mark.parametrize(("multiplier", "shift"), [(60511, 13), (37819, 11), (32767, 0)])
def test_sigmoid(dtype: npt.DTypeLike, multiplier: int, shift: int) -> None:
    """Within one of the logistic function of the scaled input; a half is exact."""
    values = np.arange(256, dtype=np.uint8).view(dtype).reshape(1, 8, 8, 4)
    zero_point, lowest = (128, 0) if dtype == np.uint8 else (3, -128)
    zero_points = (zero_point, lowest)
    result = behind(PleOperation.SIGMOID, values, (8, 8, 4), zero_points, multiplier, shift)
    centred = values.astype(int) - zero_point
    powers = np.minimum(np.abs(centred) * multiplier >> shift, 32767) / 256
    exact = 256 / (1 + np.exp2(-powers))
    exact = np.minimum(np.where(centred < 0, 256 - exact, exact), 255) + lowest
    if shift:
        assert np.abs(result - exact).max() <= 1
    assert result[centred == 0] == 128 + lowest


def test_a_scaled_input_beyond_15_bits_wraps() -> None:
    """So far from zero no network is: 2 for EXP2 wraps to a positive power."""
    values = np.zeros((1, 8, 8, 8), np.uint8)
    result = behind(PleOperation.SIGMOID, values, (8, 8, 8), (200, 0), 60000, 8)
    assert (200 * 60000 >> 8) > 32767
    # EXP2 of 73.0 saturates to 0xFFFF, plus 1.0 is 0x00FF; RCP of that is 257: 0x01, less 0x01.
    assert not result.any()


@pytest.mark.parametrize(("channels", "banks"), [(3, 16), (32, 16), (19, 16), (8, 8), (20, 8)])
def test_submaps_lie_in_the_channels_as_the_kernel_walks_them(channels: int, banks: int) -> None:
    """Ref: `OutputToInput` of the kernel, which says where an output channel comes from."""
    values = drawn((1, 5, 6, channels), np.uint8)
    result = interleave(values, banks)
    count = interleaved_channels(channels, banks)
    assert result.shape == (1, 3, 3, count)
    seen = 0
    for z in range(count):
        channel = z % banks + z // (4 * banks) * banks
        submap = z // banks % 4
        if channel < channels:
            part = values[0, submap // 2 :: 2, submap % 2 :: 2, channel]
            np.testing.assert_array_equal(result[0, : part.shape[0], : part.shape[1], z], part)
            seen += 1
    assert seen == 4 * channels
    assert {(3, 16): 51, (19, 16): 115}.get((channels, banks), count) == count
