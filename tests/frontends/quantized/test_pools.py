"""Pools, sums and means along dimensions, and larger and smaller images."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mizzen.frontends.arrangement.lookup import MOST_RANGES, joined
from mizzen.frontends.arrangement.resize import Dimension, Resizing
from mizzen.frontends.arrangement.windows import (
    Window,
    adaptive,
    cuts_of,
    greatest,
    pooled,
    regular_step,
)
from mizzen.frontends.quantized.pools import Means
from mizzen.frontends.quantized.reductions import mean, summed
from mizzen.frontends.quantized.resize import resized
from mizzen.frontends.quantized.scales import as_target
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, ResizeMode, Value

from .graphs import LIMITS, Bench, target_of

WINDOWS = {
    "image": Window((2, 3)),
    "strides": Window((3, 3), (2, 2)),
    "padding": Window((3, 3), (1, 1), (1, 1, 1, 1)),
    "asymmetric padding": Window((3, 2), (2, 2), (0, 2, 1, 0)),
    "strides too long for a convolution": Window((4, 4), (4, 4), (1, 1, 0, 0)),
}


def windows_of(x: Array, window: Window, filling: float) -> Array:
    """Return what is in each window, [N,C,H,W,taps]; padding is a number."""
    top, bottom, left, right = window.pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=filling)
    views = np.lib.stride_tricks.sliding_window_view(x, window.kernel, (2, 3))
    views = views[:, :, :: window.stride[0], :: window.stride[1]]
    return views.reshape(*views.shape[:4], -1)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("name", WINDOWS)
def test_means_are_rounded_once_at_borders_too(name: str, dtype: DType) -> None:
    window, bench = WINDOWS[name], Bench(1)
    x = bench.real((2, 3, 9, 8), dtype)
    wanted = np.nanmean(windows_of(bench.numbers(x), window, np.nan), axis=4)

    def emit(target: Target) -> Value:
        means = Means(bench.b, x, target, LIMITS).at_borders
        return pooled(bench.b, x.value, window, means, wanted.shape)

    target = target_of(wanted, dtype)
    most, count = bench.steps_off(emit, wanted, target)
    if max(window.stride) > LIMITS.longest_stride:  # rounded in the scale of the input, then again
        assert most <= 1 + x.scale / target.scale / 2
    else:
        assert most <= 1
        assert count == 0 or dtype is DType.INT16


@pytest.mark.parametrize("name", WINDOWS)
def test_padding_counts_where_it_has_a_number(name: str) -> None:
    window, bench = WINDOWS[name], Bench(2)
    x = bench.real((1, 3, 9, 8))
    wanted = windows_of(bench.numbers(x), window, 0.0).mean(axis=4)

    def emit(target: Target) -> Value:
        means = Means(bench.b, x, target, LIMITS).of
        return pooled(bench.b, x.value, window, means, wanted.shape, x.zero_point)

    most, _ = bench.steps_off(emit, wanted, target_of(wanted))
    assert most <= 1


@pytest.mark.parametrize("name", WINDOWS)
def test_the_greatest_of_a_window_is_one_of_its_integers(name: str) -> None:
    window, bench = WINDOWS[name], Bench(3)
    x = bench.real((1, 3, 9, 8))
    wanted = windows_of(bench.numbers(x), window, -np.inf).max(axis=4)
    kept = Target(DType.INT8, x.quantization, -128, 127)
    assert bench.steps_off(
        lambda _: pooled(bench.b, x.value, window, greatest(bench.b), wanted.shape), wanted, kept
    ) == (0, 0)


def test_the_last_window_may_reach_beyond_the_image() -> None:
    bench = Bench(4)
    x = bench.real((1, 2, 5, 6))
    wanted = windows_of(bench.numbers(x), Window((2, 4), (2, 3), (0, 1, 0, 1)), np.nan)

    def emit(target: Target) -> Value:
        means = Means(bench.b, x, target, LIMITS).at_borders
        return pooled(bench.b, x.value, Window((2, 4), (2, 3)), means, (1, 2, 3, 2))

    wanted = np.nanmean(wanted, axis=4)
    assert bench.steps_off(emit, wanted, target_of(wanted)) == (0, 0)


def test_rows_are_images_of_one_line() -> None:
    bench = Bench(5)
    x = bench.real((2, 3, 9))
    wanted = bench.numbers(x)[:, :, :8].reshape(2, 3, 4, 2).mean(axis=3)

    def emit(target: Target) -> Value:
        means = Means(bench.b, x, target, LIMITS).of
        return pooled(bench.b, x.value, Window((1, 2), (1, 2)), means, wanted.shape)

    assert bench.steps_off(emit, wanted, target_of(wanted)) == (0, 0)


@pytest.mark.parametrize("counts", [(2, 4), (3, 5), (7, 7), (1, 1)])
def test_adaptive_pools_cut_an_image(counts: tuple[int, int]) -> None:
    bench = Bench(6)
    x = bench.real((1, 2, 7, 8))
    numbers = bench.numbers(x)
    wanted = np.array([[[[numbers[0, channel, top:bottom, left:right].mean()
                          for left, right in cuts_of(8, counts[1])]
                         for top, bottom in cuts_of(7, counts[0])]
                        for channel in range(2)]])  # fmt: skip

    def emit(target: Target) -> Value:
        return adaptive(bench.b, x.value, Means(bench.b, x, target, LIMITS).of, wanted.shape)

    most, _ = bench.steps_off(emit, wanted, target_of(wanted))
    assert most == 0


def test_cuts_overlap_where_they_do_not_come_out_even() -> None:
    assert cuts_of(7, 3) == [(0, 3), (2, 5), (4, 7)]
    assert regular_step(cuts_of(7, 3)) == (3, 2)
    assert regular_step(cuts_of(7, 5)) is None


def test_windows_of_one_place_have_no_step() -> None:
    assert regular_step([(0, 1), (0, 1)]) is None


REDUCTIONS: dict[str, tuple[Callable[..., Array], tuple[int, ...], tuple[int, ...]]] = {
    "sum": (np.sum, (3, 40, 5), (1,)),
    "sum of two": (np.sum, (3, 4, 5, 6), (0, 2)),
    "mean": (np.mean, (3, 40, 5), (1, 2)),
    "mean of planes": (np.mean, (2, 3, 7, 9), (2, 3)),
    "mean of planes larger than a window": (np.mean, (1, 2, 65, 3), (2, 3)),
}


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_sums_along_axes_are_rounded_once(name: str, dtype: DType) -> None:
    function, shape, axes = REDUCTIONS[name]
    bench = Bench(7)
    x = bench.real(shape, dtype)
    wanted = function(bench.numbers(x), axis=axes)

    def emit(target: Target) -> Value:
        if function is np.sum:
            return summed(bench.b, x, axes, target, wanted.shape)
        return mean(bench.b, x, axes, target, wanted.shape, LIMITS)

    most, _ = bench.steps_off(emit, wanted, target_of(wanted, dtype))
    assert most <= (0 if dtype is DType.INT8 else 1)


def half_pixels(before: int, after: int) -> Dimension:
    step = Fraction(before, after)
    places = tuple(min(int(index * step), before - 1) for index in range(after))
    return Dimension(before, after, step / 2 - Fraction(1, 2), step, places)


@pytest.mark.parametrize(("lines", "columns"), [((4, 8), (5, 15)), ((6, 3), (4, 4))])
@pytest.mark.parametrize("mode", ResizeMode)
def test_images_are_resized(
    lines: tuple[int, int], columns: tuple[int, int], mode: ResizeMode
) -> None:
    bench = Bench(8)
    x = bench.real((1, 2, lines[0], columns[0]))
    dimensions = half_pixels(*lines), half_pixels(*columns)
    form = Resizing.of(mode, *dimensions)
    assert form is not None
    wanted = bench.numbers(x)
    for axis, each in enumerate(dimensions, 2):
        centres = [float(each.start + index * each.step) for index in range(each.after)]
        places: Array = (
            np.array(each.places, np.float64)
            if mode is ResizeMode.NEAREST
            else np.clip(centres, 0, each.before - 1)
        )
        low = places.astype(int)
        high = np.minimum(low + 1, each.before - 1)
        part = (places - low).reshape(-1, *(1,) * (3 - axis))
        wanted = wanted.take(low, axis) * (1 - part) + wanted.take(high, axis) * part
    kept = Target(DType.INT8, x.quantization, -128, 127)
    most, count = bench.steps_off(
        lambda target: resized(bench.b, x, form, target, wanted.shape), wanted, kept
    )
    assert most <= 1  # real numbers in the middle of two integers may be either
    assert count <= (0 if mode is ResizeMode.NEAREST else wanted.size // 10)


def test_constant_indices_are_slices_that_are_joined() -> None:
    bench = Bench(9)
    x = bench.real((3, 9))
    indices = np.array([4, 5, 6, 0, 0, 8])
    kept = Target(DType.INT8, x.quantization, -128, 127)
    found = bench.computed(
        lambda target: as_target(bench.b, Real(joined(bench.b, x.value, 1, indices)), target), kept
    )
    assert found.tolist() == bench.arrays[0][:, indices].tolist()


def test_too_many_ranges_are_refused() -> None:
    bench = Bench(10)
    x = bench.real((2 * MOST_RANGES + 2,))
    with pytest.raises(RefusedError, match="ranges of neighbours"):
        joined(bench.b, x.value, 0, np.arange(0, 2 * MOST_RANGES + 2, 2))
