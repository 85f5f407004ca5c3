"""Convolutions, linear layers and products next to loops over real numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from mizzen.frontends.arrangement.windows import (
    Convolution,
    channels_last_kernel,
    convolved,
    convolved_back,
    linear,
    transposed_kernel,
)
from mizzen.frontends.quantized.layers import IntLayer, bias_of, matmul
from mizzen.frontends.quantized.terms import Array, Constant, Real, Target
from mizzen.graph import DType, Quantization, Value

from .graphs import Bench, constant_of, target_of


@dataclass(frozen=True)
class Case:
    """Shapes and attributes of a layer; the weight is [O,C/groups,...] ([C,O/groups,...])."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    how: Convolution = field(default_factory=Convolution)
    zero_point: int = 0
    dtype: DType = DType.INT8


CASES = {
    "image": Case((2, 3, 7, 8), (4, 3, 3, 2)),
    "asymmetric padding": Case((1, 2, 5, 6), (3, 2, 3, 3), Convolution(pads=(0, 2, 1, 3))),
    "strides that leave pixels out": Case(
        (1, 2, 8, 9), (3, 2, 3, 3), Convolution(stride=(2, 3), pads=(1, 0, 1, 1))
    ),
    "dilation": Case((1, 2, 9, 9), (3, 2, 3, 2), Convolution(dilation=(2, 3), pads=(2, 2, 0, 1))),
    "groups": Case((1, 6, 5, 5), (4, 3, 2, 2), Convolution(groups=2)),
    "depthwise": Case((1, 4, 5, 5), (8, 1, 3, 3), Convolution(pads=(1, 1, 1, 1), groups=4)),
    "row": Case((2, 3, 9), (4, 3, 3), Convolution(stride=(1, 2), pads=(0, 0, 1, 0))),
    "row in groups": Case((1, 4, 9), (4, 2, 3), Convolution(groups=2)),
    "weights with a zero point": Case(
        (1, 3, 6, 6), (4, 3, 3, 3), Convolution(pads=(1, 1, 1, 1)), zero_point=-17
    ),
    "depthwise with a zero point": Case(
        (1, 4, 6, 6), (4, 1, 3, 3), Convolution(groups=4), zero_point=9
    ),
    "16 bits": Case((1, 3, 6, 6), (4, 3, 3, 3), dtype=DType.INT16),
}
TRANSPOSED = {
    "image": Case((1, 3, 4, 5), (3, 2, 3, 3), Convolution(stride=(2, 2))),
    "padding": Case((1, 3, 4, 5), (3, 2, 3, 3), Convolution(stride=(2, 2), pads=(1, 0, 1, 2))),
    "more at the end": Case((1, 3, 4, 5), (3, 2, 3, 3), Convolution((2, 3), pads=(0, -1, 1, -1))),
    "more than a kernel": Case((1, 2, 6, 6), (2, 2, 2, 2), Convolution((2, 2), pads=(3, 3, 2, 2))),
    "groups": Case((1, 4, 4, 4), (4, 3, 2, 2), Convolution((2, 2), groups=2)),
    "dilation": Case((1, 2, 4, 4), (2, 3, 2, 2), Convolution((2, 2), (2, 3)), zero_point=5),
    "row": Case((1, 3, 6), (3, 2, 4), Convolution(stride=(1, 2), pads=(0, 0, 1, 1))),
}


def in_four(x: Array) -> Array:
    return x if x.ndim == 4 else x[:, :, None]


def convolution(x: Array, weight: Array, how: Convolution) -> Array:
    """Convolve real numbers, one tap of the kernel after the other."""
    top, bottom, left, right = how.pads
    x, kernel = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right))), weight.shape[2:]
    high, wide = (
        (x.shape[2 + axis] - how.dilation[axis] * (kernel[axis] - 1) - 1) // how.stride[axis] + 1
        for axis in (0, 1)
    )
    result = np.zeros((x.shape[0], weight.shape[0], high, wide))
    inputs, outputs = x.shape[1] // how.groups, weight.shape[0] // how.groups
    for group, line, column in product(range(how.groups), *map(range, kernel)):
        taps = weight[group * outputs : (group + 1) * outputs, :, line, column]
        seen = x[:, group * inputs : (group + 1) * inputs, line * how.dilation[0] :,
                 column * how.dilation[1] :]  # fmt: skip
        seen = seen[:, :, :: how.stride[0], :: how.stride[1]][:, :, :high, :wide]
        sums = np.einsum("oc,nchw->nohw", taps, seen)
        result[:, group * outputs : (group + 1) * outputs] += sums
    return result


def convolution_back(x: Array, weight: Array, how: Convolution) -> Array:
    """Convolve real numbers transposed: each pixel is stamped with the kernel."""
    kernel, (down, along) = weight.shape[2:], how.stride
    reach = [how.dilation[axis] * (kernel[axis] - 1) for axis in (0, 1)]
    count, channels, high, wide = x.shape
    outputs, inputs = weight.shape[1], channels // how.groups
    sizes = ((high - 1) * down + reach[0] + 1, (wide - 1) * along + reach[1] + 1)
    top, bottom, left, right = how.pads
    result = np.zeros((count, outputs * how.groups, sizes[0] + 9, sizes[1] + 9))
    for channel, line, column in product(range(channels), *map(range, kernel)):
        first = channel // inputs * outputs
        at, to = line * how.dilation[0], column * how.dilation[1]
        result[:, first : first + outputs, at : at + high * down : down,
               to : to + wide * along : along] += (
            x[:, channel, None] * weight[channel, :, line, column][None, :, None, None]
        )  # fmt: skip
    return result[:, :, top : sizes[0] - bottom, left : sizes[1] - right]


def layer(bench: Bench, x: Real, kernel: Array, target: Target, zero_point: int = 0,
          offset: Array | None = None, scales: Array | None = None) -> IntLayer:  # fmt: skip
    sums = (np.array([0.01]) if scales is None else scales) * x.scale
    bias = None if offset is None else Constant(offset.astype(np.float32))
    offsets = bias_of(bias, sums, kernel.shape[0])
    return IntLayer(bench.b, x, kernel, offsets, sums, target, zero_point)


@pytest.mark.parametrize("name", CASES)
def test_convolutions(name: str) -> None:
    case, bench = CASES[name], Bench(1)
    x, weight = bench.real(case.x, case.dtype), bench.weight(*case.weight)
    outputs = case.weight[0]
    scales = bench.random.uniform(0.005, 0.02, 1 if case.zero_point else outputs)
    offset = bench.random.normal(size=outputs)
    factors = (weight.astype(np.float64) - case.zero_point) * scales.reshape(
        -1, *(1,) * (weight.ndim - 1)
    )
    wanted = convolution(in_four(bench.numbers(x)), in_four(factors), case.how)
    wanted = wanted + offset[:, None, None]
    wanted = wanted.reshape(*wanted.shape[:2], *wanted.shape[4 - len(case.x[2:]) :])

    def emit(target: Target) -> Value:
        kernel = channels_last_kernel(weight)
        parts = layer(bench, x, kernel, target, case.zero_point, offset, scales)
        return convolved(bench.b, x.value, parts, case.how, wanted.shape)

    most, count = bench.steps_off(emit, wanted, target_of(wanted, case.dtype))
    assert most <= 1
    # A bias is rounded to the sums' unit; 48 bits are rescaled with a multiplier of 15 bits.
    assert count <= (2 if case.dtype is DType.INT8 else wanted.size // 2)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name: str) -> None:
    case, bench = TRANSPOSED[name], Bench(2)
    x, weight = bench.real(case.x), bench.weight(*case.weight)
    factors = (weight.astype(np.float64) - case.zero_point) * 0.01
    wanted = convolution_back(in_four(bench.numbers(x)), in_four(factors), case.how)
    wanted = wanted.reshape(*wanted.shape[:2], *wanted.shape[4 - len(case.x[2:]) :])
    kernel = transposed_kernel(weight, case.how, case.zero_point)

    def emit(target: Target) -> Value:
        parts = layer(bench, x, kernel, target, case.zero_point)
        return convolved_back(bench.b, x.value, parts, case.how, wanted.shape)

    most, count = bench.steps_off(emit, wanted, target_of(wanted))
    assert most <= 1
    assert count <= 1


def test_linear_layers_take_any_dimensions() -> None:
    bench = Bench(3)
    x, weight = bench.real((2, 3, 5)), bench.weight(4, 5)
    wanted = bench.numbers(x) @ (weight.astype(np.float64) * 0.01).T

    def emit(target: Target) -> Value:
        parts = layer(bench, x, weight[:, None, None, :], target)
        return linear(bench.b, x.value, parts, wanted.shape)

    assert bench.steps_off(emit, wanted, target_of(wanted)) == (0, 0)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 5), (5, 6)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 3, 4, 5), (5, 6)), ((4, 5), (3, 5, 2))],
)
def test_products_broadcast(left: tuple[int, ...], right: tuple[int, ...], dtype: DType) -> None:
    bench = Bench(4)
    x, y = bench.real(left, dtype), bench.real(right, dtype)
    wanted = bench.numbers(x) @ bench.numbers(y)
    most, _ = bench.steps_off(
        lambda target: matmul(bench.b, x, y, target, wanted.shape), wanted,
        target_of(wanted, dtype),
    )  # fmt: skip
    assert most <= (0 if dtype is DType.INT8 else 1)


def test_a_bias_is_taken_as_it_is_or_rounded() -> None:
    integers = np.array([5, -7, 2**30], np.int32)
    scales = np.array([0.5, 0.5, 0.5])
    assert bias_of(constant_of(integers, 0.5), scales, 3).tolist() == integers.tolist()
    assert bias_of(constant_of(integers, 0.25), scales, 3).tolist() == [2, -4, 2**29]
    far = Constant(np.array([1e12, -1e12], np.float32))
    assert bias_of(far, np.array([0.5]), 2).tolist() == [2**31 - 1, 1 - 2**31]
    assert bias_of(None, scales, 3).tolist() == [0, 0, 0]
    shifted = Constant(np.array([1.0], np.float32), np.array([7]), Quantization((0.5,), (5,)))
    assert bias_of(shifted, np.array([0.5]), 1).tolist() == [2]
