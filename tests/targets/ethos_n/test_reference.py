"""The integer meaning of networks, against float arithmetic and against what Arm's library emits.

A quantised number q stands for scale * (q - zero_point). `steps` below gives a float result in
steps of the output, and every bound is in such steps:

- Sums of weights: rounding makes 1/2. The scale has 16 significant bits, so it is off by at most
  2**-16 of the result, and the result that is not clamped is at most 255 steps from the zero point:
  1/2 + 255 * 2**-16 < 0.51. Clamping cannot increase a difference.
- A factor of the programmable layer engine is truncated to 16 significant bits: off by at most
  2**-15 of the term, whose rounding makes 1/2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.network import (
    Addition,
    Array,
    Concatenation,
    Convolution,
    DepthToSpace,
    DepthwiseConvolution,
    EstimateOnly,
    FullyConnected,
    LeakyRelu,
    MeanXy,
    Multiplication,
    Network,
    Operand,
    Operation,
    Pooling,
    PoolingType,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Sigmoid,
    Split,
    Tanh,
    Transpose,
    TransposeConvolution,
    Weighted,
)
from mizzen.targets.ethos_n.reference import evaluate, evaluate_apart
from mizzen.targets.ethos_n.reference.mce_arithmetic import sum_constants
from mizzen.targets.ethos_n.reference.ple_arithmetic import factor_constants, logistic_constants
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)

from .golden import Compiled, compiled_networks, needs_golden

Reals = npt.NDArray[np.float64]
MCE_STEPS = 0.51
FACTOR = 2.0**-15
BATCH = 3
KINDS = pytest.mark.parametrize("kind", [DataType.U8, DataType.S8], ids=lambda kind: kind.name)

DECODED = [row for row in compiled_networks() if row.path("cmds.json").exists()]
"""Networks whose commands come with them as text; MobileNet's do not."""


def quantization(zero_point: int, scale: float, kind: DataType) -> QuantizationInfo:
    """Return a quantisation whose zero point is given as that of unsigned numbers."""
    return QuantizationInfo(zero_point + kind.lowest, (scale,))


def drawn(info: TensorInfo, seed: int = 0) -> Array:
    """Draw numbers of the whole range of a type."""
    kind = info.data_type
    random = np.random.default_rng(seed)
    shape = (BATCH, *info.shape[1:])
    return random.integers(kind.lowest, kind.highest, shape, kind.dtype, endpoint=True)


def real(numbers: Array, info: TensorInfo) -> Reals:
    return (numbers.astype(np.float64) - info.quantization.zero_point) * info.quantization.scale


def within(made: Array, wanted: Reals, info: TensorInfo, steps: float) -> None:
    """Require numbers to stand for reals, clamped to the output's range, within some steps."""
    kind = info.data_type
    exact = wanted / info.quantization.scale + info.quantization.zero_point
    assert made.dtype == kind.dtype
    assert abs(made - np.clip(exact, kind.lowest, kind.highest)).max() <= steps


def of_one(operation: Operation, info: TensorInfo) -> tuple[Array, Array, TensorInfo]:
    """Return drawn inputs and what an operation makes of them."""
    network = Network()
    node = network.add(operation, network.add_input(info))
    network.add_output(node.operand)
    inputs = drawn(info)
    (made,) = evaluate(network, [inputs])
    return inputs, made, node.operand.info


def weighted_network(
    operation: Weighted, info: TensorInfo, kernel: Shape, per_channel: bool = False
) -> tuple[Network, Operand, Array, Array]:
    """Return a network of one operation of weights, its result, its weights and bias as reals."""
    random = np.random.default_rng(1)
    is_depthwise = isinstance(operation, DepthwiseConvolution)
    channels = kernel[2] * kernel[3] if is_depthwise else kernel[3]
    scales = tuple(random.uniform(0.005, 0.02, channels).tolist() if per_channel else [0.01])
    axis = (2 if is_depthwise else 3) if per_channel else None
    form = DataFormat.HWIM if is_depthwise else DataFormat.HWIO
    of_weights = TensorInfo(kernel, DataType.U8, form, QuantizationInfo(120, scales, axis))
    input_scale = np.float32(info.quantization.scale)
    bias_scales = (input_scale * np.asarray(of_weights.quantization.scales, np.float32)).tolist()
    of_bias = TensorInfo(
        (1, 1, 1, channels),
        DataType.S32,
        DataFormat.NHWC,
        QuantizationInfo(0, tuple(bias_scales), 3 if per_channel else None),
    )
    weights = random.integers(0, 256, kernel).astype(np.uint8)
    bias = random.integers(-5000, 5000, (1, 1, 1, channels)).astype(np.int32)
    network = Network()
    operands = (
        network.add_input(info),
        network.add_constant(of_bias, bias),
        network.add_constant(of_weights, weights),
    )
    result = network.add(operation, *operands).operand
    of_channel = np.asarray(of_weights.quantization.scales)
    if is_depthwise:
        of_channel = of_channel.reshape(-1, kernel[3]) if per_channel else of_channel
    real_weights = (weights.astype(np.float64) - 120) * of_channel
    return network, result, real_weights, bias.reshape(-1) * np.asarray(bias_scales)


def convolved(numbers: Reals, weights: Reals, operation: Convolution) -> Reals:
    """Convolve output element by output element."""
    pad, stride = operation.padding, operation.stride
    padded = np.pad(numbers, ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0)))
    kernel = weights.shape[:2]
    height = (padded.shape[1] - kernel[0]) // stride.y + 1
    width = (padded.shape[2] - kernel[1]) // stride.x + 1
    out = np.zeros((len(padded), height, width, weights.shape[3]))
    for y, x in np.ndindex(height, width):
        top, left = y * stride.y, x * stride.x
        under = padded[:, top : top + kernel[0], left : left + kernel[1]]
        out[:, y, x] = np.einsum("nyxi,yxio->no", under, weights)
    return out


@KINDS
@pytest.mark.parametrize("per_channel", [False, True], ids=["one-scale", "scales"])
@pytest.mark.parametrize(
    ("kernel", "padding", "stride"),
    [
        ((1, 1, 5, 7), Padding(), Stride()),
        ((3, 3, 5, 7), Padding(1, 1, 1, 1), Stride()),
        ((3, 2, 5, 4), Padding(0, 1, 1, 0), Stride(2, 2)),
        ((5, 1, 5, 4), Padding(2, 2, 0, 0), Stride(2, 2)),
    ],
)
def test_convolutions(
    kernel: Shape, padding: Padding, stride: Stride, per_channel: bool, kind: DataType
) -> None:
    info = TensorInfo((1, 9, 8, 5), kind, DataFormat.NHWC, quantization(130, 0.02, kind))
    operation = Convolution(padding, stride, quantization(100, 0.08, kind))
    network, result, weights, bias = weighted_network(operation, info, kernel, per_channel)
    network.add_output(result)
    inputs = drawn(info)
    (made,) = evaluate(network, [inputs])
    within(made, convolved(real(inputs, info), weights, operation) + bias, result.info, MCE_STEPS)


@pytest.mark.parametrize("per_channel", [False, True], ids=["one-scale", "scales"])
@pytest.mark.parametrize("kernel", [(3, 3, 5, 1), (2, 2, 1, 6)])
def test_depthwise_convolutions(kernel: Shape, per_channel: bool) -> None:
    info = TensorInfo((1, 9, 8, kernel[2]), quantization=QuantizationInfo(130, (0.02,)))
    operation = DepthwiseConvolution(Padding(1, 0, 0, 1), Stride(), QuantizationInfo(100, (0.08,)))
    network, result, weights, bias = weighted_network(operation, info, kernel, per_channel)
    network.add_output(result)
    inputs = drawn(info)
    (made,) = evaluate(network, [inputs])
    plain = Convolution(operation.padding, operation.stride, operation.output)
    numbers = real(inputs, info)
    planes = [
        convolved(numbers[..., at : at + 1], weights[:, :, at : at + 1], plain)
        for at in range(kernel[2])
    ]
    within(made, np.concatenate(planes, -1) + bias, result.info, MCE_STEPS)


@pytest.mark.parametrize(
    ("kernel", "padding"),
    [((3, 3), Padding(0, 1, 0, 1)), ((2, 2), Padding()), ((1, 1), Padding()), ((5, 5), Padding())],
)
def test_transpose_convolutions(kernel: tuple[int, int], padding: Padding) -> None:
    """An element apart is a convolution with the kernel turned around, by another derivation."""
    info = TensorInfo((1, 5, 4, 3), quantization=QuantizationInfo(130, (0.02,)))
    operation = TransposeConvolution(padding, Stride(2, 2), QuantizationInfo(100, (0.08,)))
    network, result, weights, bias = weighted_network(operation, info, (*kernel, 3, 6))
    network.add_output(result)
    inputs = drawn(info)
    (made,) = evaluate(network, [inputs])
    assert made.shape[1:] == result.info.shape[1:]
    apart = np.zeros((BATCH, 10, 8, 3))
    apart[:, ::2, ::2] = real(inputs, info)
    top, left = kernel[0] - 1 - padding.top, kernel[1] - 1 - padding.left
    around = Padding(top, kernel[0], left, kernel[1])
    plain = Convolution(around, Stride(), operation.output)
    wanted = convolved(apart, weights[::-1, ::-1], plain)[:, : made.shape[1], : made.shape[2]]
    within(made, wanted + bias, result.info, MCE_STEPS)


@KINDS
def test_fully_connected(kind: DataType) -> None:
    info = TensorInfo((1, 1, 1, 300), kind, DataFormat.NHWC, quantization(130, 0.02, kind))
    operation = FullyConnected(quantization(100, 0.2, kind))
    network, result, weights, bias = weighted_network(operation, info, (1, 1, 300, 11))
    network.add_output(result)
    inputs = drawn(info)
    (made,) = evaluate(network, [inputs])
    within(made, real(inputs, info) @ weights[0, 0] + bias, result.info, MCE_STEPS)


@KINDS
@pytest.mark.parametrize("scale", [0.0001, 0.004, 0.02, 0.03])
def test_requantisations(scale: float, kind: DataType) -> None:
    info = TensorInfo((1, 9, 8, 5), kind, DataFormat.NHWC, quantization(130, 0.004, kind))
    other = DataType.S8 if kind is DataType.U8 else DataType.U8
    for to in (kind, other):
        operation = Requantize(quantization(90, scale, to), to)
        inputs, made, after = of_one(operation, info)
        within(made, real(inputs, info), after, MCE_STEPS)
        if after == info:
            assert np.array_equal(made, inputs)


@KINDS
def test_clamps(kind: DataType) -> None:
    info = TensorInfo((1, 9, 8, 5), kind, DataFormat.NHWC, quantization(130, 0.004, kind))
    inputs, made, _ = of_one(Relu(kind.lowest + 100, kind.lowest + 1000), info)
    assert np.array_equal(made, np.maximum(inputs, kind.lowest + 100))


@KINDS
@pytest.mark.parametrize("scales", [(0.02, 0.03, 0.04), (0.5, 0.001, 0.01), (0.02, 0.02, 0.02)])
def test_additions(scales: tuple[float, float, float], kind: DataType) -> None:
    """The two terms' roundings and truncated factors: 1 + 2**-15 * both. A copy is exact."""
    first, second, third = (quantization(90 + at, scale, kind) for at, scale in enumerate(scales))
    left = TensorInfo((1, 9, 8, 5), kind, quantization=first)
    right = replace(left, quantization=second)
    network = Network()
    node = network.add(Addition(third), network.add_input(left), network.add_input(right))
    network.add_output(node.operand)
    inputs = [drawn(left), drawn(right, 1)]
    (made,) = evaluate(network, inputs)
    terms = [real(values, info) for values, info in zip(inputs, (left, right), strict=True)]
    largest = sum(float(abs(term).max()) / scales[2] for term in terms)
    within(made, terms[0] + terms[1], node.operand.info, 1 + FACTOR * largest)


@KINDS
def test_additions_of_one_quantisation_are_exact(kind: DataType) -> None:
    info = TensorInfo((1, 9, 8, 5), kind, quantization=quantization(77, 0.02, kind))
    network = Network()
    operands = network.add_input(info), network.add_input(info)
    network.add_output(network.add(Addition(info.quantization), *operands).operand)
    inputs = [drawn(info), drawn(info, 1)]
    (made,) = evaluate(network, inputs)
    within(made, real(inputs[0], info) + real(inputs[1], info), info, 1e-9)


@KINDS
@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.99])
def test_leaky_relu(alpha: float, kind: DataType) -> None:
    info = TensorInfo((1, 9, 8, 5), kind, quantization=quantization(130, 0.02, kind))
    inputs, made, after = of_one(LeakyRelu(alpha, quantization(60, 0.03, kind)), info)
    numbers = real(inputs, info)
    within(made, np.maximum(numbers, alpha * numbers), after, 0.5 + 255 * FACTOR)


@KINDS
@pytest.mark.parametrize("scale", [0.0001, 0.02, 0.07, 0.5, 100.0])
@pytest.mark.parametrize("operation", [Sigmoid(), Tanh()], ids=["sigmoid", "tanh"])
def test_logistic_functions(operation: Sigmoid | Tanh, scale: float, kind: DataType) -> None:
    """One step, and as much as the exponent's truncation makes where the curve is flat.

    With s = 1 / (1 + 2**-u) in 1/2..1 and in steps of 1/256: 2**-u is off by 1/2, which makes
    s**2 / 2; the reciprocal's rounding makes 1/2; u is off by up to (1 + t * 2**-15) / 256 with
    t < 2**15, which makes ln 2 * s * (1 - s) * (1 + t * 2**-15). The sum is largest at s = 1, where
    it is 1, but for the last term's t, at most 0.693 * 256 * u * 2**-15 * s * (1 - s) < 0.01.
    255 in place of 256 makes 1 where s is 1, and there nothing else is off.
    """
    info = TensorInfo((1, 16, 16, 5), kind, quantization=quantization(130, scale, kind))
    inputs, made, after = of_one(operation, info)
    numbers = real(inputs, info)
    with np.errstate(over="ignore"):
        wanted = np.tanh(numbers) if isinstance(operation, Tanh) else 1 / (1 + np.exp(-numbers))
    within(made, wanted, after, 1.01)


@KINDS
@pytest.mark.parametrize("extent", [7, 8])
def test_means_of_planes(extent: int, kind: DataType) -> None:
    """A mean of n is floor((sum + floor(n / 2)) / n): off by at most 1 - floor(n / 2) / n.

    The reciprocal, 2**20 / n, is rounded up by at most 1: 256 * n / 2**20 < 0.02 more.
    """
    info = TensorInfo((1, extent, extent, 5), kind, quantization=quantization(130, 0.02, kind))
    inputs, made, after = of_one(MeanXy(), info)
    within(made, real(inputs, info).mean((1, 2), keepdims=True), after, 25 / 49 + 0.02)
    whole = Pooling((extent, extent), Stride(), Padding(), PoolingType.AVG)
    assert np.array_equal(made, of_one(whole, info)[1])


@KINDS
def test_averages(kind: DataType) -> None:
    """As the mean of a plane, of n = 9 and with 2**16 / n: 5/9, and 256 * 9 / 2**16 < 0.04."""
    info = TensorInfo((1, 9, 8, 5), kind, quantization=quantization(130, 0.02, kind))
    operation = Pooling((3, 3), Stride(), Padding(1, 1, 1, 1), PoolingType.AVG)
    inputs, made, after = of_one(operation, info)
    numbers = real(inputs, info)
    wanted = np.zeros_like(numbers)
    for y, x in np.ndindex(9, 8):
        around = numbers[:, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
        wanted[:, y, x] = around.mean((1, 2))
    within(made, wanted, after, 5 / 9 + 0.04)


@KINDS
@pytest.mark.parametrize(
    ("extents", "size", "padding"),
    [
        ((9, 7), 1, Padding()),
        ((8, 10), 2, Padding()),
        ((9, 7), 2, Padding(0, 1, 0, 1)),
        ((9, 7), 3, Padding()),
        ((8, 10), 3, Padding(0, 1, 0, 1)),
    ],
)
def test_maxima(extents: tuple[int, int], size: int, padding: Padding, kind: DataType) -> None:
    info = TensorInfo((1, *extents, 5), kind, quantization=quantization(130, 0.02, kind))
    operation = Pooling((size, size), Stride(2, 2), padding, PoolingType.MAX)
    inputs, made, after = of_one(operation, info)
    assert made.shape[1:] == after.shape[1:]
    for y, x in np.ndindex(*made.shape[1:3]):
        under = inputs[:, 2 * y : 2 * y + size, 2 * x : 2 * x + size]
        assert np.array_equal(made[:, y, x], under.max((1, 2)))


@pytest.mark.parametrize(("height", "width"), [(10, 8), (9, 7), (10, 7)])
@pytest.mark.parametrize("algorithm", ResizeAlgorithm)
def test_resizes(algorithm: ResizeAlgorithm, height: int, width: int) -> None:
    """A mean is rounded by half a step of the input, which is a whole step of half its size."""
    info = TensorInfo((1, 5, 4, 3), quantization=QuantizationInfo(130, (0.04,)))
    for scale, steps in ((0.04, 0.5), (0.02, 1 + MCE_STEPS)):
        operation = Resize(algorithm, height, width, QuantizationInfo(100, (scale,)))
        inputs, made, after = of_one(operation, info)
        numbers = real(inputs, info)
        wanted = np.zeros(made.shape)
        for y, x in np.ndindex(height, width):
            rows, columns = [y // 2], [x // 2]
            if algorithm is ResizeAlgorithm.BILINEAR:
                rows.append(min((y + 1) // 2, 4))
                columns.append(min((x + 1) // 2, 3))
            corners = [numbers[:, row, column] for row in rows for column in columns]
            wanted[:, y, x] = np.mean(corners, 0)
        within(made, wanted, after, steps + 1e-6)


def test_moves() -> None:
    info = TensorInfo((1, 4, 6, 8), quantization=QuantizationInfo(130, (0.04,)))
    inputs, made, _ = of_one(Reshape((1, 2, 3, 32)), info)
    assert np.array_equal(made.reshape(BATCH, -1), inputs.reshape(BATCH, -1))
    inputs, made, _ = of_one(Transpose((0, 3, 1, 2)), info)
    assert made[2, 7, 3, 5] == inputs[2, 3, 5, 7]
    inputs, made, _ = of_one(ReinterpretQuantization(QuantizationInfo(3, (5.0,))), info)
    assert np.array_equal(made, inputs)
    inputs, made, _ = of_one(DepthToSpace(2), info)
    assert made.shape == (BATCH, 8, 12, 2)
    for y, x in np.ndindex(2, 2):
        picked = inputs[..., 2 * (2 * y + x) : 2 * (2 * y + x) + 2]
        assert np.array_equal(made[:, y::2, x::2], picked)


def test_parts_and_wholes() -> None:
    info = TensorInfo((1, 4, 6, 48), quantization=QuantizationInfo(130, (0.04,)))
    network = Network()
    parts = network.add(Split(3, (32, 16)), network.add_input(info)).outputs
    for part in parts:
        network.add_output(part)
    whole = network.add(Concatenation(3, QuantizationInfo(130, (0.04,))), *parts)
    network.add_output(whole.operand)
    inputs = drawn(info)
    first, second, joined = evaluate(network, [inputs])
    assert np.array_equal(first, inputs[..., :32])
    assert np.array_equal(second, inputs[..., 32:])
    assert np.array_equal(joined, inputs)


def convolution_then(add: Callable[[Network, Operand], Operand]) -> tuple[Network, Reals]:
    """Return a network of a convolution and what follows, and the convolution as reals."""
    info = TensorInfo((1, 8, 8, 5), quantization=QuantizationInfo(130, (0.02,)))
    operation = Convolution(Padding(1, 1, 1, 1), Stride(), QuantizationInfo(100, (0.08,)))
    network, result, weights, bias = weighted_network(operation, info, (3, 3, 5, 7))
    network.add_output(add(network, result))
    return network, convolved(real(drawn(info), info), weights, operation) + bias


def test_a_requantisation_is_of_the_sum_that_it_follows() -> None:
    """So it is off by as much as one rounding makes, where by itself it is off by two.

    The clamp's bounds are numbers of the convolution: they stand for 0 and 4.8, and are the same
    reals rounded to the coarser output.
    """
    coarse = QuantizationInfo(20, (0.09,))

    def then(network: Network, result: Operand) -> Operand:
        return network.add(Requantize(coarse), network.add(Relu(100, 160), result).operand).operand

    network, sums = convolution_then(then)
    info = network.outputs[0].info
    inputs = drawn(network.inputs[0].info)
    (together,) = evaluate(network, [inputs])
    (apart,) = evaluate_apart(network, [inputs])
    wanted = np.clip(sums, 0, 60 * 0.08)
    assert together.max() == 20 + round(60 * 0.08 / 0.09)
    within(together, wanted, info, MCE_STEPS)
    within(apart, wanted, info, MCE_STEPS * (1 + 0.08 / 0.09))
    assert not np.array_equal(together, apart)


def test_a_concatenation_requantises_the_sum_that_it_follows() -> None:
    coarse = QuantizationInfo(20, (0.09,))

    def then(network: Network, result: Operand) -> Operand:
        other = network.add_input(replace(result.info, quantization=coarse))
        return network.add(Concatenation(3, coarse), result, other).operand

    network, sums = convolution_then(then)
    inputs = [drawn(row.info, at) for at, row in enumerate(network.inputs)]
    (made,) = evaluate(network, inputs)
    bounds = (0 - 100) * 0.08, (255 - 100) * 0.08
    part = replace(network.outputs[0].info, shape=(1, 8, 8, 7))
    within(made[..., :7], np.clip(sums, *bounds), part, MCE_STEPS)
    assert np.array_equal(made[..., 7:], inputs[1])


def test_a_concatenation_bounds_what_is_requantised_behind_it() -> None:
    narrow, coarse = QuantizationInfo(20, (0.01,)), QuantizationInfo(90, (0.05,))

    def then(network: Network, result: Operand) -> Operand:
        whole = network.add(Concatenation(3, narrow), result).operand
        return network.add(Requantize(coarse), whole).operand

    network, sums = convolution_then(then)
    (made,) = evaluate(network, [drawn(network.inputs[0].info)])
    bounds = (0 - 20) * 0.01, (255 - 20) * 0.01
    within(made, np.clip(sums, *bounds), network.outputs[0].info, MCE_STEPS)


def test_a_pooling_between_requantisations_takes_what_is_rounded_once() -> None:
    coarse = QuantizationInfo(90, (0.05,))

    def then(network: Network, result: Operand) -> Operand:
        first = network.add(Requantize(QuantizationInfo(110, (0.07,))), result).operand
        pooling = Pooling((2, 2), Stride(2, 2), Padding(), PoolingType.MAX)
        return network.add(Requantize(coarse), network.add(pooling, first).operand).operand

    network, sums = convolution_then(then)
    (made,) = evaluate(network, [drawn(network.inputs[0].info)])
    largest = sums.reshape(BATCH, 4, 2, 4, 2, 7).max((2, 4))
    within(made, largest, network.outputs[0].info, MCE_STEPS)


def test_a_sum_of_two_users_is_rounded_for_itself() -> None:
    def then(network: Network, result: Operand) -> Operand:
        network.add_output(result)
        return network.add(Requantize(QuantizationInfo(20, (0.09,))), result).operand

    network, _ = convolution_then(then)
    inputs = drawn(network.inputs[0].info)
    together, apart = evaluate(network, [inputs]), evaluate_apart(network, [inputs])
    assert all(np.array_equal(*pair) for pair in zip(together, apart, strict=True))


@pytest.mark.parametrize("middle", [(0, 1.0), (128, 0.001)], ids=["covers", "saturates"])
def test_the_second_of_two_requantisations_alone(middle: tuple[int, float]) -> None:
    """Numbers that the first requantisation saturates stay saturated."""
    info = TensorInfo((1, 16, 16, 5), quantization=QuantizationInfo(0, (0.02,)))
    network = Network()
    first = Requantize(QuantizationInfo(middle[0], (middle[1],)))
    last = Requantize(QuantizationInfo(0, (0.021,)))
    node = network.add(last, network.add(first, network.add_input(info)).operand)
    network.add_output(node.operand)
    inputs = drawn(info)
    (made,) = evaluate(network, [inputs])
    if middle[1] == 1.0:
        within(made, real(inputs, info), node.operand.info, MCE_STEPS)
    else:
        assert made.max() == round(0.127 / 0.021)


def test_constants_of_sums_are_as_near_as_16_bits_allow() -> None:
    random = np.random.default_rng(0)
    ratios = np.exp2(random.uniform(-30, 15, 2000)).astype(np.float32)
    scale, shift = sum_constants(1.0, tuple(ratios.tolist()), 1.0)
    assert scale.min() >= 1 << 15
    assert scale.max() < 1 << 16
    assert shift.max() <= 47
    assert (abs(scale / np.exp2(shift) - ratios) <= ratios * 2.0**-16).all()
    assert [int(row[0]) for row in sum_constants(1.0, (1 - 2.0**-20,), 1.0)] == [1 << 15, 15]
    assert [int(row[0]) for row in sum_constants(1.0, (65535.99,), 1.0)] == [65535, 0]


def test_inputs_that_are_not_the_networks() -> None:
    info = TensorInfo((1, 4, 6, 8))
    network = Network()
    network.add_output(network.add_input(info))
    with pytest.raises(MizzenError) as caught:
        evaluate(network, [])
    assert caught.value.diagnostic.render() == (
        "error[E980]: a network of 1 inputs must have as many arrays, not 0"
    )
    with pytest.raises(MizzenError) as caught:
        evaluate(network, [np.zeros((2, 4, 6, 9), np.uint8)])
    assert caught.value.diagnostic.render() == (
        "error[E980]: input 0 must be uint8 of shape (N, 4, 6, 8), with one N for all inputs; "
        "it is uint8 of (2, 4, 6, 9)"
    )


def test_operations_without_an_integer_meaning() -> None:
    info = TensorInfo((1, 4, 6, 8))
    network = Network()
    operand = network.add_input(info)
    network.add(EstimateOnly((info,), "as it is"), operand)
    with pytest.raises(MizzenError) as caught:
        evaluate(network, [drawn(info)])
    assert caught.value.diagnostic.render() == (
        "error[E981]: EstimateOnly must be an operation that release 23.02 can run; it is none"
    )
    network = Network()
    operand = network.add_input(info)
    network.add(Multiplication(info.quantization), operand, operand)
    with pytest.raises(MizzenError, match=r"E981.*Multiplication must be"):
        evaluate(network, [drawn(info)])
    with pytest.raises(MizzenError, match=r"E981.*a mean must be of 7 x 7"):
        of_one(Pooling((2, 2), Stride(2, 2), Padding(), PoolingType.AVG), info)


@needs_golden
@pytest.mark.parametrize("compiled", DECODED, ids=str)
def test_constants_of_kernels_are_those_of_the_library(compiled: Compiled) -> None:
    """The factors and the bounds that Arm's commands give to kernels, for all of its networks."""
    kinds = {type(node.operation): node for node in compiled.network}
    text = compiled.path("cmds.json").read_text()
    commands = [row for row in json.loads(text) if "ple" in row]
    rescaled = {row["ple"]["op"]: row for row in commands if any(row["ple"]["rescale"][0])}
    if node := kinds.get(Addition):
        output = np.float32(node.operand.info.quantization.scale)
        for at, operand in enumerate(node.inputs):
            if command := rescaled.get("ADDITION_RESCALE"):
                ratio = np.float32(operand.info.quantization.scale) / output
                assert command["ple"]["rescale"][at] == [*factor_constants(float(ratio))]
    if node := kinds.get(LeakyRelu):
        assert isinstance(node.operation, LeakyRelu)
        before, after = node.inputs[0].info.quantization, node.operand.info.quantization
        ratio = np.float32(before.scale) / np.float32(after.scale)
        wanted = [float(ratio), float(np.float32(node.operation.alpha) * ratio)]
        found = rescaled["LEAKY_RELU"]["ple"]["rescale"]
        assert found == [[*factor_constants(factor)] for factor in wanted]
    for kind, widening in ((Sigmoid, 1), (Tanh, 2)):
        if node := kinds.get(kind):
            info = node.inputs[0].info
            multiplier, shift, largest = logistic_constants(info.quantization.scale, widening)
            command = rescaled["SIGMOID"]
            assert command["ple"]["rescale"][0] == [multiplier, shift]
            bounds = [info.quantization.zero_point + side * largest for side in (-1, 1)]
            kind_bounds = info.data_type.lowest, info.data_type.highest
            assert command["mce"]["act"] == [*np.clip(bounds, *kind_bounds).tolist()]
