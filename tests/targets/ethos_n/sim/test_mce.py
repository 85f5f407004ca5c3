"""The compute engine: sums, geometry, rounding; against the sums written out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Convert,
    DataTypeCode,
    Format,
    Location,
    MceOperation,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.sim import Simulator
from mizzen.targets.ethos_n.sim.geometry import bilinear, interleave

from .assembler import (
    BANKS,
    HARDWARE,
    Array,
    Extents,
    Kernel,
    encoded,
    mce_ple,
    program,
    run,
    run_mce,
    source,
    table,
    target,
)

RANDOM = np.random.default_rng(11)


def kernel_of(*shape: int, largest: int = 127) -> Kernel:
    """Weights whose results fill 8 bits, a bias and a scale for them."""
    weights = RANDOM.integers(-largest, largest + 1, shape)
    outputs = shape[3] if shape[3] > 1 else shape[2]
    taps = math.prod(shape) // outputs
    scale = 100 / (largest * 80 * math.sqrt(taps))
    shift = 16 - math.frexp(scale)[1]
    bias = RANDOM.integers(-4000, 4000, outputs)
    return Kernel(weights, bias, round(math.ldexp(scale, shift)), shift)


def finished(sums: Array, kernel: Kernel, zero_point: int, low: int, high: int) -> Array:
    """Scale sums with the bias as Python's integers do, half up."""
    half = 1 << kernel.shift >> 1
    total = (sums.astype(object) + kernel.bias) * kernel.multiplier
    return np.clip((total + half) // (1 << kernel.shift) + zero_point, low, high).astype(int)


def convolved(padded: Array, kernel: Kernel, made: Extents, stride: int) -> Array:
    """Sums of windows over `[n, H, W, C]`, tap by tap."""
    weights = kernel.weights.astype(np.int64)
    total = np.zeros((len(padded), *made), np.int64)
    for y, x in np.ndindex(*weights.shape[:2]):
        rows = slice(y, y + (made[0] - 1) * stride + 1, stride)
        columns = slice(x, x + (made[1] - 1) * stride + 1, stride)
        part = padded[:, rows, columns].astype(np.int64)
        taps = weights[y, x]
        total += part * taps[:, 0] if taps.shape[1] == 1 else part @ taps
    return total


def drawn(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape, np.uint8)


def padded_by(values: Array, zero_point: int, top: int, left: int, more: int = 12) -> Array:
    """Return numbers less the zero point with zeros around them, more than are needed behind."""
    around = ((0, 0), (top, more), (left, more), (0, 0))
    return np.pad(values.astype(np.int64) - zero_point, around)


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize(
    ("height", "width", "top", "left"), [(1, 1, 0, 0), (3, 3, 1, 1), (1, 3, 0, 2), (2, 2, 0, 0)]
)
def test_convolutions(algorithm: Algorithm, height: int, width: int, top: int, left: int) -> None:
    kernel, values = kernel_of(height, width, 5, 11), drawn(3, 9, 10, 5)
    made = (9, 10, 11)
    command = mce_ple(
        kernel,
        source((9, 10, 5), zero_point=120),
        made,
        target(made, zero_point=100),
        pad_top=top,
        pad_left=left,
        algorithm=algorithm,
        activation_min=7,
        activation_max=240,
    )
    sums = convolved(padded_by(values, 120, top, left), kernel, made, 1)
    result = run_mce(kernel, command, values)
    np.testing.assert_array_equal(result, finished(sums, kernel, 100, 7, 240))
    assert len(np.unique(result)) > 100


@pytest.mark.parametrize("channels", [3, 8, 12])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(("top", "left"), [(0, 0), (1, 1), (0, 1)])
def test_strides(channels: int, depthwise: bool, top: int, left: int) -> None:
    """The input comes as submaps; the plane that they make is what the window sees."""
    outputs = 1 if depthwise else 9
    kernel, values = kernel_of(3, 3, channels, outputs), drawn(2, 9, 7, channels)
    made = (5, 4, channels if depthwise else 9)
    cut = interleave(values, BANKS)
    data = source((5, 4, cut.shape[3]), zero_point=60)
    command = mce_ple(
        kernel,
        data,
        made,
        target(made),
        stride_x=2,
        stride_y=2,
        pad_top=top,
        pad_left=left,
        uninterleaved_input_shape=(1, 9, 7, channels),
    )
    shape = command.weights.stripe_shape
    stripe = -(-cut.shape[3] // BANKS) * BANKS
    whole = (*shape[:2], stripe if depthwise else cut.shape[3], shape[3])
    command = replace(command, weights=replace(command.weights, stripe_shape=whole))
    sums = convolved(padded_by(values, 60, top, left), kernel, made, 2)
    expected = finished(sums, kernel, 0, 0, 255)
    np.testing.assert_array_equal(run_mce(kernel, command, cut), expected)


def upsampled(values: Array, kind: Upsample) -> Array:
    """Double a plane element by element."""
    n, height, width, depth = values.shape
    result = np.zeros((n, 2 * height, 2 * width, depth), np.int64)
    for y, x in np.ndindex(2 * height, 2 * width):
        at = values[:, y // 2, x // 2].astype(np.int64)
        if kind is Upsample.TRANSPOSE:
            at = at * (y % 2 == x % 2 == 0)
        elif kind is Upsample.BILINEAR:
            down, across = min(-(-y // 2), height - 1), min(-(-x // 2), width - 1)
            others = values[:, [y // 2, down, down], [across, x // 2, across]]
            at = (at + others.astype(np.int64).sum(1) + 2) // 4
        result[:, y, x] = at
    return result


@pytest.mark.parametrize("kind", [Upsample.NEAREST_NEIGHBOUR, Upsample.BILINEAR])
@pytest.mark.parametrize("edge", UpsampleEdge)
def test_resizing(kind: Upsample, edge: UpsampleEdge) -> None:
    values = drawn(2, 4, 3, 8)
    made = (8 - edge, 6 - edge, 8)
    command = mce_ple(
        Kernel.identity(8),
        source((4, 3, 8), zero_point=9),
        made,
        target(made, zero_point=9),
        upsample=kind,
        upsample_edge_row=edge,
        upsample_edge_column=edge,
    )
    result = run_mce(Kernel.identity(8), command, values)
    np.testing.assert_array_equal(result, upsampled(values, kind)[:, : made[0], : made[1]])


def test_transpose_convolution() -> None:
    kernel, values = kernel_of(3, 3, 4, 9), drawn(2, 4, 5, 4)
    made = (8, 10, 9)
    command = mce_ple(
        kernel,
        source((4, 5, 4), zero_point=30),
        made,
        target(made),
        pad_top=2,
        pad_left=2,
        upsample=Upsample.TRANSPOSE,
    )
    spread = upsampled(values.astype(np.int64) - 30, Upsample.TRANSPOSE)
    sums = convolved(padded_by(spread, 0, 2, 2), kernel, made, 1)
    expected = finished(sums, kernel, 0, 0, 255)
    np.testing.assert_array_equal(run_mce(kernel, command, values), expected)


def test_a_mean_of_four_may_reach_every_sum() -> None:
    values = np.array([[[[255], [255]], [[255], [254]]]], np.uint8)
    assert bilinear(values)[0, ..., 0].tolist() == [
        [255, 255, 255, 255],
        [255, 255, 255, 255],
        [255, 255, 254, 254],
        [255, 255, 254, 254],
    ]


def fully_connected(location: Location) -> tuple[Array, Array]:
    """Execute 1000 inputs to 24 outputs, of a part of SRAM or of DRAM; gives it and what it is."""
    values = drawn(3, 1000)
    kernel = kernel_of(1, 1, 1024, 24)
    kernel = replace(kernel, weights=kernel.weights * (np.arange(1024) < 1000)[:, None])
    data = source((8, 8, 16), format=Format.NHWCB, zero_point=77)
    kept = replace(data, location=Location.SRAM)
    read = kept if location is Location.SRAM else data
    output = target((1, 1, 24))
    command = mce_ple(
        kernel,
        read,
        (1, 1, 24),
        output,
        operation=MceOperation.FULLY_CONNECTED,
        uninterleaved_input_shape=(1, 1, 1, 1000),
    )
    weights = replace(command.weights, stripe_shape=(1, 1, 1024, 24))
    command = replace(command, weights=weights)
    before = [Convert(data, kept)] if location is Location.SRAM else []
    made = program([*before, command], table([1024], 24), encoded(kernel, command))
    rest = np.zeros((3, 24 if location is Location.SRAM else 0), np.uint8)
    sums = (values.astype(np.int64) - 77) @ kernel.weights[0, 0, :1000]
    return run(made, np.hstack([values, rest])), finished(sums, kernel, 0, 0, 255)


@pytest.mark.parametrize("location", Location)
def test_fully_connected(location: Location) -> None:
    """From DRAM only the elements that there are need to be given."""
    result, expected = fully_connected(location)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("data_type", DataTypeCode)
def test_requantisation_is_half_up(data_type: DataTypeCode) -> None:
    """Every sum from far below to far above the bounds; a quarter has its half at 2, 6, -2."""
    made = (8, 8, 8)
    values = np.arange(512).reshape(1, 8, 8, 8).astype(np.uint8)
    kernel = Kernel(np.ones((1, 1, 8, 1), int), np.arange(8) - 4, 1 << 15, 17)
    output = target(made, zero_point=-5 if data_type is DataTypeCode.S8 else 5, data_type=data_type)
    command = mce_ple(kernel, source(made, zero_point=128), made, output)
    low, high = (-128, 127) if data_type is DataTypeCode.S8 else (0, 255)
    sums = values.astype(int) - 128
    expected = finished(sums, kernel, output.zero_point, low, high)
    np.testing.assert_array_equal(run_mce(kernel, command, values), expected)


@pytest.mark.parametrize("shift", [0, 47])
def test_the_ends_of_the_shift(shift: int) -> None:
    """At 47 all of 2**47 units count: of a sum of 2**31 - 1 and 65535, and a half."""
    bias = np.array([(1 << 31) - 300, -(1 << 31) + 300, 1 << 30, 1073758208])
    kernel = Kernel(np.ones((1, 1, 4, 1), int), bias, 65535 if shift else 1, shift)
    values = drawn(1, 8, 8, 4)
    command = mce_ple(kernel, source((8, 8, 4)), (8, 8, 4), target((8, 8, 4), zero_point=100))
    expected = finished(values.astype(int), kernel, 100, 0, 255)
    np.testing.assert_array_equal(run_mce(kernel, command, values), expected)


def test_sums_beyond_24_bits_are_exact() -> None:
    """Of sums over 2**25 every unit counts; float32 has steps of 4 there."""
    channels = 600
    weights = np.full((1, 1, channels, 8), 255)
    weights[:, :, 1] = 1
    values = np.full((1, 8, 8, channels), 255, np.uint8)
    values[0, :, :, 1] = np.arange(64).reshape(8, 8)
    kernel = Kernel(weights, np.full(8, -(channels - 1) * 255 * 255), 1, 0)
    command = mce_ple(kernel, source((8, 8, channels)), (8, 8, 8), target((8, 8, 8)))
    result = run_mce(kernel, command, values)
    np.testing.assert_array_equal(result[..., 0].ravel(), np.arange(64))


def test_weights_without_an_input_must_be_zero() -> None:
    kernel = kernel_of(1, 1, 1024, 24)
    command = mce_ple(
        kernel,
        source((8, 8, 16), format=Format.NHWCB),
        (1, 1, 24),
        target((1, 1, 24)),
        operation=MceOperation.FULLY_CONNECTED,
        uninterleaved_input_shape=(1, 1, 1, 1023),
    )
    weights = replace(command.weights, stripe_shape=(1, 1, 1024, 24))
    command = replace(command, weights=weights)
    with pytest.raises(MizzenError) as caught:
        Simulator(program([command], table([1024], 24), encoded(kernel, command)))
    assert caught.value.diagnostic.render() == (
        "error[E961]: command 0 MCE_PLE: weights beyond channel 1023 of the input must be zero\n"
        "  at   command at word 4"
    )


def test_accumulators_of_32_bits() -> None:
    kernel = Kernel(np.full((1, 1, 8, 1), 255), np.full(8, (1 << 31) - 100), 1 << 15, 47)
    command = mce_ple(kernel, source((1, 1, 8)), (1, 1, 8), target((1, 1, 8)))
    simulator = Simulator(program([command], table([8], 8), encoded(kernel, command)))
    simulator.run([np.zeros((1, 8), np.uint8)], 1)
    with pytest.raises(MizzenError) as caught:
        simulator.run([np.ones((1, 8), np.uint8)], 1)
    assert caught.value.diagnostic.render() == (
        "error[E965]: command 0 MCE_PLE: an accumulator must fit 32 bits, and reaches "
        "2147483803..2147483803\n  at   command at word 4\n"
        "  help the network computes beyond the machine's integers; its quantisation is broken"
    )


@pytest.mark.parametrize(
    "read_as",
    [{}, {"stripe_shape": (1, 8, 8, 8)}, {"stripe_shape": (1, 16, 8, 16), "tile_bytes": 2048}],
)
def test_a_tensor_stays_in_sram_between_passes(read_as: dict[str, Any]) -> None:
    """The next may take it in lower stripes, and as a larger tile than there is room for."""
    kernel, extents = Kernel.identity(8), (12, 4, 8)
    at = HARDWARE.sram_bytes // BANKS - 128
    kept = target(extents, location=Location.SRAM, sram_offset_bytes=at)
    first = mce_ple(kernel, source(extents), extents, kept)
    output = target(extents, sram_offset_bytes=4096)
    second = mce_ple(kernel, replace(kept, **read_as), extents, output)
    made = program([first, second], table([384], 384), encoded(kernel, first))
    values = drawn(2, *extents)
    np.testing.assert_array_equal(run(made, values).reshape(values.shape), values)
