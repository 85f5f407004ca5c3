"""Convolutions, products, pools and softmax, against ONNX's NumPy implementation in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.graph import Array

from .comparing import Layer, Weight, integers
from .networks import Network, Scale, computed, from_runtime, lowered, on_host

X = Scale(0.0173, 7)
UX = Scale(0.0173, 119, "uint8")
WX = Scale(0.000131, 0, "int16")
RANDOM = np.random.default_rng(11)


def per_tensor(shape: Sequence[int], dtype: str = "int8", zero: int = 0) -> Weight:
    scale = Scale(0.0071, zero, dtype)
    return Weight(integers(scale, shape, 5), scale)


def per_channel(shape: Sequence[int], axis: int = 0, dtype: str = "int8") -> Weight:
    zero = 128 if dtype == "uint8" else 0
    scales = np.random.default_rng(6).uniform(0.002, 0.009, shape[axis]).astype(np.float32)
    scale = Scale(scales, np.full(shape[axis], zero), dtype, axis)
    return Weight(integers(scale, shape, 5), scale)


def bias_for(x: Scale, weight: Weight, outputs: int) -> Weight:
    """Return a bias of 32 bits on the scale of the sums."""
    scales = np.asarray(weight.scale.scale, np.float32) * np.float32(x.scale)
    array = RANDOM.integers(-3000, 3000, outputs).astype(np.int32)
    axis = 0 if scales.ndim else None
    return Weight(array, Scale(scales, np.zeros(scales.shape, np.int64), "int32", axis))


def reals(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


IMAGE = (1, 4, 9, 8)
ROW = (2, 4, 19)
FIRST = per_channel((6, 4, 3, 3))
CONVOLUTIONS: dict[str, Layer] = {
    "per channel": Layer("Conv", [(IMAGE, X), FIRST, bias_for(X, FIRST, 6)], Scale(0.071, 3)),
    "per tensor, asymmetric pads": Layer(
        "Conv", [(IMAGE, X), per_tensor((6, 4, 3, 3))], Scale(0.071, 3),
        {"pads": [0, 1, 2, 3], "strides": [2, 1]},
    ),
    "dilated": Layer(
        "Conv", [(IMAGE, X), per_tensor((6, 4, 3, 3)), reals(6)], Scale(0.071, 3),
        {"dilations": [2, 2], "pads": [2, 2, 2, 2]},
    ),
    "same upper": Layer(
        "Conv", [(IMAGE, X), per_tensor((6, 4, 4, 4))], Scale(0.071, 3),
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ),
    "same lower": Layer(
        "Conv", [(IMAGE, X), per_tensor((6, 4, 4, 4))], Scale(0.071, 3),
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    ),
    "valid": Layer(
        "Conv", [(IMAGE, X), per_tensor((6, 4, 2, 3))], Scale(0.071, 3), {"auto_pad": "VALID"}
    ),
    "depthwise": Layer(
        "Conv", [(IMAGE, X), per_channel((4, 1, 3, 3)), reals(4)], Scale(0.031, 3),
        {"group": 4, "pads": [1, 1, 1, 1]},
    ),
    "depthwise, two of each": Layer(
        "Conv", [(IMAGE, X), per_channel((8, 1, 3, 3)), reals(8)], Scale(0.031, 3), {"group": 4}
    ),
    "groups": Layer(
        "Conv", [(IMAGE, X), per_channel((6, 2, 3, 3)), reals(6)], Scale(0.041, 3), {"group": 2}
    ),
    "rows": Layer(
        "Conv", [(ROW, X), per_channel((6, 4, 5)), reals(6)], Scale(0.071, 3),
        {"pads": [3, 1], "strides": [2]},
    ),
    "rows, depthwise": Layer(
        "Conv", [(ROW, X), per_channel((4, 1, 5))], Scale(0.031, 3), {"group": 4}
    ),
    "bytes without a sign": Layer(
        "Conv", [(IMAGE, UX), per_tensor((6, 4, 3, 3), "uint8", 137)], Scale(0.071, 103, "uint8"),
        {"pads": [1, 1, 1, 1]},
    ),
    "weights without a sign, per channel": Layer(
        "Conv", [(IMAGE, UX), per_channel((6, 4, 3, 3), dtype="uint8")], Scale(0.071, 103, "uint8")
    ),
    "weights with a zero point": Layer(
        "Conv", [(IMAGE, X), per_tensor((6, 4, 3, 3), zero=-17)], Scale(0.071, 3)
    ),
    "16 bits": Layer(
        "Conv", [(IMAGE, WX), per_channel((6, 4, 3, 3)), reals(6)], Scale(0.00031, 0, "int16")
    ),
    "16 bits about 32768": Layer(
        "Conv", [(IMAGE, Scale(0.000131, 32768, "uint16")), per_channel((6, 4, 3, 3))],
        Scale(0.00031, 32768, "uint16"),
    ),
    "gives 16 bits": Layer(
        "Conv", [(IMAGE, X), per_channel((6, 4, 3, 3)), reals(6)], Scale(0.00031, 0, "int16")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    off = CONVOLUTIONS[name].steps_off()
    wide = CONVOLUTIONS[name].result.dtype.endswith("16")
    assert off.max() <= 1
    # A bias is rounded to the unit of the sums, and theirs of 48 bits are scaled by 15.
    assert wide or np.count_nonzero(off) <= 1, np.count_nonzero(off)


BACK = (1, 4, 5, 6)
TRANSPOSED: dict[str, tuple[Sequence[int], Weight, int, dict[str, Any]]] = {
    "plain": (BACK, per_tensor((4, 3, 3, 3)), 3, {}),
    "stride 2": (BACK, per_channel((4, 3, 3, 3), 1), 3, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "output padding": (
        BACK, per_channel((4, 3, 3, 3), 1), 3,
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    "asymmetric pads": (
        BACK, per_channel((4, 3, 4, 4), 1), 3, {"strides": [2, 2], "pads": [0, 1, 2, 1]}
    ),
    "output shape": (
        BACK, per_channel((4, 3, 3, 3), 1), 3, {"strides": [2, 2], "output_shape": [10, 12]}
    ),
    "same upper": (
        BACK, per_channel((4, 3, 3, 3), 1), 3, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}
    ),
    "same lower": (
        BACK, per_channel((4, 3, 3, 3), 1), 3, {"strides": [2, 2], "auto_pad": "SAME_LOWER"}
    ),
    "groups": (BACK, per_channel((4, 3, 3, 3), 1), 6, {"strides": [2, 2], "group": 2}),
    "depthwise": (BACK, per_tensor((4, 1, 3, 3)), 4, {"strides": [2, 2], "group": 4}),
    "dilated": (BACK, per_tensor((4, 3, 3, 3)), 3, {"dilations": [2, 2]}),
    "stride 3": (BACK, per_tensor((4, 3, 3, 3)), 3, {"strides": [3, 3]}),
    "rows": ((1, 4, 7), per_channel((4, 3, 5), 1), 3, {"strides": [2], "pads": [1, 2]}),
    "weights with a zero point, dilated": (
        BACK, per_tensor((4, 3, 3, 3), zero=9), 3, {"dilations": [2, 2]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name: str) -> None:
    """Against ONNX Runtime on numbers that were dequantised: ONNX's own takes fewer forms."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    shape, weight, outputs, attributes = TRANSPOSED[name]
    layer = Layer("ConvTranspose", [(shape, X), weight, reals(outputs)], Scale(0.051, 3),
                  attributes)  # fmt: skip
    lowering, given = lowered(layer.network()), layer.given()
    assert on_host(lowering) == {}
    (result,) = computed(lowering, *given.values())
    wanted = layer.result.quantize(from_runtime(layer.plain(), layer.reals(given))[0])
    off = np.abs(result.astype(int) - wanted)
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 1


ROWS, MATRIX = (5, 16), (16, 7)
PRODUCTS: dict[str, Layer] = {
    "Gemm": Layer("Gemm", [(ROWS, X), per_tensor(MATRIX), reals(7)], Scale(0.041, 3)),
    "Gemm, transposed weight": Layer(
        "Gemm", [(ROWS, X), per_channel((7, 16)), reals(1, 7)], Scale(0.041, 3), {"transB": 1}
    ),
    "Gemm, transposed input": Layer(
        "Gemm", [((16, 5), X), per_channel(MATRIX, 1)], Scale(0.041, 3), {"transA": 1}
    ),
    "Gemm, alpha and beta": Layer(
        "Gemm", [(ROWS, X), per_tensor(MATRIX), reals(7)], Scale(0.041, 3),
        {"alpha": 0.7, "beta": 0.3},
    ),
    "Gemm, one number": Layer("Gemm", [(ROWS, X), per_tensor(MATRIX), reals(1)], Scale(0.041, 3)),
    "Gemm of computed matrices": Layer(
        "Gemm", [(ROWS, X), ((7, 16), Scale(0.0071, -3))], Scale(0.041, 3),
        {"transB": 1, "alpha": 0.5},
    ),
    "MatMul": Layer("MatMul", [(ROWS, X), per_channel(MATRIX, 1)], Scale(0.041, 3)),
    "MatMul, batch": Layer("MatMul", [((2, 3, 5, 16), X), per_tensor(MATRIX)], Scale(0.041, 3)),
    "MatMul, batch of one weight": Layer(
        "MatMul", [((2, 3, 5, 16), X), per_tensor((1, 1, *MATRIX))], Scale(0.041, 3)
    ),
    "MatMul by a vector": Layer("MatMul", [(ROWS, X), per_tensor((16,))], Scale(0.041, 3)),
    "MatMul of a vector": Layer("MatMul", [((16,), X), per_tensor(MATRIX)], Scale(0.041, 3)),
    "MatMul of computed tensors": Layer(
        "MatMul", [((2, 3, 5, 16), X), ((2, 3, 16, 7), Scale(0.0071, -3))], Scale(0.041, 3)
    ),
    "MatMul, broadcast": Layer(
        "MatMul", [((2, 1, 5, 16), X), ((3, 16, 7), Scale(0.0071, -3))], Scale(0.041, 3)
    ),
    "MatMul of computed vectors": Layer(
        "MatMul", [((16,), X), ((2, 16, 7), Scale(0.0071, -3))], Scale(0.041, 3)
    ),
    "MatMul by a computed vector": Layer(
        "MatMul", [((2, 5, 16), X), ((16,), Scale(0.0071, -3))], Scale(0.041, 3)
    ),
    "MatMul of a constant": Layer(
        "MatMul", [per_tensor((5, 16)), (MATRIX, X)], Scale(0.041, 3)
    ),
    "MatMul, bytes without a sign": Layer(
        "MatMul", [(ROWS, UX), per_tensor(MATRIX, "uint8", 120)], Scale(0.041, 99, "uint8")
    ),
    "MatMul, 16 bits": Layer("MatMul", [(ROWS, WX), per_tensor(MATRIX)], WX),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    off = PRODUCTS[name].steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 1


POOLS: dict[str, Layer] = {
    "maxima": Layer("MaxPool", [(IMAGE, X)], X, {"kernel_shape": [3, 2]}),
    "maxima, another scale": Layer(
        "MaxPool", [(IMAGE, X)], Scale(0.0213, 2), {"kernel_shape": [2, 2], "strides": [2, 2]}
    ),
    "maxima, pads": Layer(
        "MaxPool", [(IMAGE, X)], X,
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 2]},
    ),
    "maxima, ceiling": Layer(
        "MaxPool", [(IMAGE, X)], X, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    ),
    "maxima, same": Layer(
        "MaxPool", [(IMAGE, X)], X,
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    "maxima of rows": Layer("MaxPool", [(ROW, X)], X, {"kernel_shape": [4], "strides": [3]}),
    "maxima, bytes without a sign": Layer("MaxPool", [(IMAGE, UX)], UX, {"kernel_shape": [3, 2]}),
    "means": Layer("AveragePool", [(IMAGE, X)], Scale(0.0113, -3), {"kernel_shape": [3, 3]}),
    "means, stride": Layer(
        "AveragePool", [(IMAGE, X)], Scale(0.0113, -3), {"kernel_shape": [2, 2], "strides": [2, 2]}
    ),
    "means, pads": Layer(
        "AveragePool", [(IMAGE, X)], Scale(0.0113, -3),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 2]},
    ),
    "means, pads count": Layer(
        "AveragePool", [(IMAGE, X)], Scale(0.0113, -3),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "means, ceiling": Layer(
        "AveragePool", [(IMAGE, X)], Scale(0.0113, -3),
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    "means, large stride": Layer(
        "AveragePool", [((1, 3, 12, 8), X)], Scale(0.0053, -3),
        {"kernel_shape": [4, 4], "strides": [4, 4]},
    ),
    "means of rows": Layer(
        "AveragePool", [(ROW, X)], Scale(0.0113, -3), {"kernel_shape": [3], "strides": [2]}
    ),
    "means, 16 bits": Layer(
        "AveragePool", [(IMAGE, WX)], Scale(0.000093, 0, "int16"),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    ),
    "means of planes": Layer("GlobalAveragePool", [(IMAGE, X)], Scale(0.0041, -3)),
    "means of large planes": Layer("GlobalAveragePool", [((1, 2, 70, 9), X)], Scale(0.0041, -3)),
    "means of rows as planes": Layer("GlobalAveragePool", [(ROW, X)], Scale(0.0041, -3)),
    "maxima of planes": Layer("GlobalMaxPool", [(IMAGE, X)], X),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str) -> None:
    off = POOLS[name].steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 1, np.count_nonzero(off)


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("x", [Scale(0.061, 7), Scale(0.061, 133, "uint8")])
def test_softmax(kind: str, axis: int, x: Scale) -> None:
    result = Scale(1 / 256, -128) if kind == "Softmax" else Scale(0.09, 127)
    off = Layer(kind, [((3, 20, 10), x)], result, {"axis": axis}).steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 2, np.count_nonzero(off)


REFUSED: dict[str, tuple[Layer, str]] = {
    "computed weight": (
        Layer("Conv", [(IMAGE, X), ((6, 4, 3, 3), X)], X),
        "its input 1 is no constant",
    ),
    "float weight": (
        Layer("Conv", [(IMAGE, X), reals(6, 4, 3, 3)], X),
        "its weight is not quantised",
    ),
    "wrong axis": (
        Layer("Conv", [(IMAGE, X), per_channel((6, 4, 3, 3), 1)], X),
        "its weight has a scale for each index of dimension 1, which is not that of its outputs",
    ),
    "volumes": (
        Layer("Conv", [((1, 2, 4, 4, 4), X), per_tensor((3, 2, 2, 2, 2))], X),
        "its input has 5 dimensions, and windows go over 3 or 4: batch, channels, height and width",
    ),
    "dilated pool": (
        Layer("MaxPool", [(IMAGE, X)], X, {"kernel_shape": [2, 2], "dilations": [2, 2]}),
        "its window is dilated",
    ),
    "weights of 16 bits": (
        Layer("Gemm", [(ROWS, WX), per_tensor(MATRIX, "int16")], WX),
        "its weight is of int16",
    ),
    "negative alpha": (
        Layer("Gemm", [(ROWS, X), per_tensor(MATRIX)], X, {"alpha": -1.0}),
        "its alpha is -1.0, and no positive number",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_a_reason(name: str) -> None:
    layer, reason = REFUSED[name]
    assert layer.reason() == reason


def after(
    kind: str, inputs: Sequence[Any], *further: tuple[str, Sequence[Array | np.float32]]
) -> Network:
    """Return a layer with operators behind it, all in floating point but for the ends."""
    layer = Layer(kind, inputs, Scale(0.041, 3))
    network = layer.network()
    network.nodes.pop()
    value = network.nodes[-1][2][0]
    for name, constants in further:
        value = network.add(name, value, *(network.constant(each) for each in constants))
    network.outputs[:] = [network.quantize(value, layer.result)]
    return network


BEHIND: dict[str, tuple[Network, str]] = {
    "Relu": (after("Conv", [(IMAGE, X), FIRST], ("Relu", [])), "CONV2D"),
    "Clip": (
        after("Conv", [(IMAGE, X), FIRST],
              ("Clip", [np.float32(0.0), np.float32(4.0)])), "CONV2D",
    ),
    "a bias": (
        after("MatMul", [(ROWS, X), per_tensor(MATRIX)], ("Add", [reals(7)]), ("Relu", [])),
        "CONV2D",
    ),
    "a bias that is taken away": (
        after("Conv", [(IMAGE, X), FIRST], ("Sub", [reals(1, 6, 1, 1)])), "CONV2D",
    ),
    "a factor": (
        after("Conv", [(IMAGE, X), FIRST], ("Mul", [np.float32(0.37)])), "CONV2D",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BEHIND)
def test_operators_behind_a_layer_are_part_of_it(name: str) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    network, kind = BEHIND[name]
    lowering = lowered(network)
    assert on_host(lowering) == {}
    groups = {row.group for row in lowering.graph if row.kind == kind}
    (group,) = groups
    assert group is not None
    wanted = [node for node in lowering.model.nodes if node.kind not in ("QuantizeLinear",
              "DequantizeLinear")]  # fmt: skip
    assert set(wanted) <= set(lowering.nodes[group])
    given = {name: integers(X, type.shape, 3) for name, type in network.inputs.items()}
    (result,) = computed(lowering, *given.values())
    (reference,) = from_runtime(network, given)
    off = np.abs(result.astype(int) - reference)
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 2


@pytest.mark.parametrize("name", ["per channel", "groups", "rows", "weights with a zero point"])
def test_onnx_runtime_fused_gives_the_same(name: str) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    layer = CONVOLUTIONS[name]
    network, given = layer.network(), layer.given()
    (result,) = computed(lowered(network), *given.values())
    (wanted,) = from_runtime(network, given)
    assert np.count_nonzero(result != wanted) <= 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_pools_of_integers_without_scale(dtype: type) -> None:
    network = Network()
    x = network.input("x", IMAGE, dtype)
    network.outputs.append(network.add("MaxPool", x, kernel_shape=[2, 2]))
    given = integers(Scale(1.0, 0, np.dtype(dtype).name), IMAGE, 4)
    (result,) = computed(lowered(network), given)
    windows = np.lib.stride_tricks.sliding_window_view(given, (2, 2), (2, 3))
    np.testing.assert_array_equal(result, windows.max((4, 5)))


def test_maxima_of_rows() -> None:
    """ONNX's own implementation is wrong here."""
    layer = Layer("GlobalMaxPool", [(ROW, UX)], UX)
    given = layer.given()
    (result,) = computed(lowered(layer.network()), *given.values())
    np.testing.assert_array_equal(result, given["x0"].max(2, keepdims=True))


def with_bias(number: float, scale: float) -> Layer:
    """Return a product whose weights stand for next to nothing, with a bias."""
    tiny = Weight(integers(X, MATRIX, 5), Scale(scale))
    return Layer("Gemm", [(ROWS, X), tiny, np.full(7, number, np.float32)], Scale(0.041, 3))


def test_a_bias_of_all_bits_is_cut_where_that_changes_nothing() -> None:
    """A channel that is dead in the data of the calibration has weights of a scale of 1e-8."""
    assert with_bias(0.37, 1e-8).steps_off().max() == 0


def test_a_bias_that_sums_have_no_room_for_is_the_runtimes() -> None:
    layer = with_bias(-1.0, 1e-8)
    assert "its sums do not fit into 32 bits" in on_host(lowered(layer.network()))["Gemm"]


def gated(network: Network, x: str) -> str:
    """Return x * sigmoid(x)."""
    return network.add("Mul", x, network.add("Sigmoid", x))


def hard_gated(network: Network, x: str) -> str:
    """Return x * clip(x + 3, 0, 6) / 6."""
    three, zero, six = (network.constant(np.float32(number)) for number in (3, 0, 6))
    cut = network.add("Clip", network.add("Add", x, three), zero, six)
    return network.add("Div", network.add("Mul", x, cut), six)


def one(kind: str) -> Callable[[Network, str], str]:
    return lambda network, x: network.add(kind, x)


FUNCTIONS: dict[str, tuple[Callable[[Network, str], str], Scale]] = {
    "sigmoid": (one("Sigmoid"), Scale(1 / 256, -128)),
    "tanh": (one("Tanh"), Scale(1 / 128, 0)),
    "hard swish": (one("HardSwish"), Scale(0.031, -117)),
    "leaky": (one("LeakyRelu"), Scale(0.031, -110)),
    "elu": (one("Elu"), Scale(0.031, -90)),
    "x * sigmoid(x)": (gated, Scale(0.031, -119)),
    "x * clip(x + 3, 0, 6) / 6": (hard_gated, Scale(0.031, -117)),
    "a sum": (
        lambda network, x: network.add("Add", x, network.dequantize(
            network.input("y", (1, 6, 7, 6), np.int8), Scale(0.0213, -7))),
        Scale(0.047, -9),
    ),
    "a difference": (
        lambda network, x: network.add("Sub", network.dequantize(
            network.input("y", (1, 6, 7, 6), np.int8), Scale(0.0213, -7)), x),
        Scale(0.047, -9),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_sums_that_are_not_quantised(name: str) -> None:
    """As quantisers for other targets leave them: 16 bits up to where the result ends to change."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    build, result = FUNCTIONS[name]
    network = after("Conv", [(IMAGE, X), FIRST, reals(6)])
    value = network.nodes.pop()[1][0]
    network.outputs[:] = [network.quantize(build(network, value), result)]
    lowering = lowered(network)
    assert on_host(lowering) == {}
    given = {name: integers(X, type.shape, 3) for name, type in network.inputs.items()}
    (computed_ones,) = computed(lowering, *given.values())
    (wanted,) = from_runtime(network, given)
    off = np.abs(computed_ones.astype(int) - wanted)
    assert off.max() <= 1
    assert np.count_nonzero(off) <= off.size // 50, np.count_nonzero(off)


def test_a_function_that_never_ends_to_change_needs_a_scale() -> None:
    network = after("Conv", [(IMAGE, X), FIRST], ("Sin", []))
    reasons = on_host(lowered(network))
    assert reasons["Sin"] == "its input is not quantised, and it never ends to change"


def test_two_sums_without_scales_are_the_runtimes() -> None:
    network = after("Conv", [(IMAGE, X), FIRST])
    value = network.nodes.pop()[1][0]
    other = network.add("Relu", network.add("Neg", value))
    network.outputs[:] = [network.quantize(network.add("Add", other, network.add(
        "Reshape", value, network.constant(np.array([1, 6, 7, 6])))), X)]  # fmt: skip
    assert on_host(lowered(network))["Add"] == "none of its inputs is quantised"
