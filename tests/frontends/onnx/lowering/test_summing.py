"""Reductions, normalisations, interpolated images and Einstein sums, against float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.graph import Array

from .comparing import Input, Layer, integers
from .networks import Network, Scale, computed, float_model, from_runtime, lowered, on_host

X = Scale(0.0173, 7)
UX = Scale(0.0173, 119, "uint8")
WX = Scale(0.000131, 0, "int16")
RANDOM = np.random.default_rng(4)
BATCH, IMAGE, CUBE = (4, 6, 20, 30), (3, 5, 7, 9), (2, 3, 4, 5, 6)
SMALL = Scale(0.0091, -9)


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def reals(*shape: int, mean: float = 0.0) -> Array:
    return (RANDOM.normal(size=shape) * 0.5 + mean).astype(np.float32)


def channels(kind: str, count: int, result: Scale, shape: tuple[int, ...] = BATCH) -> Layer:
    """Return a normalisation with factors and addends of some size."""
    constants: list[Input] = [reals(count, mean=1.0), reals(count)]
    return Layer(kind, [(shape, X), *constants], result)


REDUCED: dict[str, Layer] = {
    "mean of planes": Layer("ReduceMean", [(BATCH, X), whole(2, 3)], SMALL),
    "mean of all": Layer("ReduceMean", [(IMAGE, X)], SMALL),
    "mean of rank 1": Layer("ReduceMean", [((50,), X)], SMALL, {"keepdims": 0}),
    "mean of channels": Layer("ReduceMean", [(BATCH, X), whole(1)], SMALL, {"keepdims": 0}),
    "mean of rank 5": Layer("ReduceMean", [(CUBE, X), whole(-1, 2)], SMALL),
    "mean of nothing": Layer(
        "ReduceMean", [(IMAGE, X), whole()], X, {"noop_with_empty_axes": 1}
    ),
    "sum": Layer("ReduceSum", [(BATCH, X), whole(1)], Scale(0.041, 3)),
    "sum of rank 2": Layer("ReduceSum", [((40, 30), X), whole(-1)], Scale(0.081, 3)),
    "greatest": Layer("ReduceMax", [(BATCH, X), whole(2)], X),
    "least": Layer("ReduceMin", [(IMAGE, X), whole(1, 3)], SMALL, {"keepdims": 0}),
    "sum of distances": Layer("ReduceL1", [(BATCH, X), whole(3)], Scale(0.21, -128)),
    "sum of squares": Layer("ReduceSumSquare", [(BATCH, X), whole(1)], Scale(0.09, -128)),
    "logarithm": Layer("ReduceLogSumExp", [(BATCH, X), whole(3)], Scale(0.04, -100)),
    "running sum": Layer("CumSum", [(IMAGE, X), np.array(2)], Scale(0.0533, 4)),
    "running sum, exclusive": Layer(
        "CumSum", [(IMAGE, X), np.array(-1)], Scale(0.0533, 4), {"exclusive": 1}
    ),
    "running sum, backwards": Layer(
        "CumSum", [((9, 30), X), np.array(0)], Scale(0.0533, 4), {"reverse": 1, "exclusive": 1}
    ),
    "sum of three": Layer("Sum", [(BATCH, X), ((6, 1, 30), SMALL), reals(1)], Scale(0.034, 3)),
    "mean of three": Layer("Mean", [(BATCH, X), (BATCH, SMALL), ((30,), X)], Scale(0.011, 3)),
    "product": Layer("Einsum", [((3, 20, 7), X), ((3, 7, 30), SMALL)], Scale(0.017, 3),
                     {"equation": "bij,bjk->bik"}),
    "product, turned": Layer("Einsum", [((20, 3, 7), X), ((3, 30, 7), SMALL)], Scale(0.017, 3),
                             {"equation": "ibj,bkj->bki"}),
    "outer product": Layer("Einsum", [((40,), X), ((50,), SMALL)], Scale(0.017, 3),
                           {"equation": "i,j->ij"}),
    "order": Layer("Einsum", [((3, 4, 5), X)], X, {"equation": "ijk->kij"}),
}  # fmt: skip

NORMALIZED: dict[str, Layer] = {
    "batch": Layer(
        "BatchNormalization",
        [(BATCH, X), reals(6, mean=1.0), reals(6), reals(6), np.abs(reals(6)) + 0.1],
        Scale(0.031, 5),
    ),
    "batch of rank 2": Layer(
        "BatchNormalization",
        [((50, 60), X), reals(60), reals(60), reals(60), np.abs(reals(60)) + 0.1],
        Scale(0.031, 5),
    ),
    "layer": Layer(
        "LayerNormalization", [(BATCH, X), reals(30, mean=1.0), reals(30)], Scale(0.029, 5)
    ),
    "layer of two axes": Layer(
        "LayerNormalization", [(BATCH, X), reals(20, 30)], Scale(0.029, 5), {"axis": 2}
    ),
    "instance": channels("InstanceNormalization", 6, Scale(0.029, 5)),
    "instance of a row": channels("InstanceNormalization", 6, Scale(0.029, 5), (3, 6, 80)),
    "root mean square": Layer(
        "RMSNormalization", [(BATCH, X), reals(30, mean=1.0)], Scale(0.029, 5), opset=23
    ),
}


@pytest.mark.parametrize("name", REDUCED)
def test_sums_are_rounded_once(name: str) -> None:
    off = REDUCED[name].steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 2e-3 * off.size


@pytest.mark.parametrize("name", [name for name in REDUCED if "of nothing" not in name])
def test_sums_of_bytes_without_a_sign(name: str) -> None:
    layer = REDUCED[name]
    given = [(item[0], UX) if isinstance(item, tuple) else item for item in layer.inputs]
    result = Scale(layer.result.scale, int(layer.result.zero) + 128, "uint8")
    assert replace(layer, inputs=given, result=result).steps_off().max() <= 1


@pytest.mark.parametrize("name", [name for name in REDUCED if name != "sum of squares"])
def test_sums_of_16_bits(name: str) -> None:
    layer = REDUCED[name]
    given = [(item[0], WX) if isinstance(item, tuple) else item for item in layer.inputs]
    result = Scale(0.0009, 0, "int16")
    assert replace(layer, inputs=given, result=result).steps_off().max() <= 1


@pytest.mark.parametrize("name", NORMALIZED)
def test_normalisations(name: str) -> None:
    off = NORMALIZED[name].steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= (2e-4 if "batch" in name else 2e-3) * off.size


def test_batch_normalisation_of_16_bits() -> None:
    layer = NORMALIZED["batch"]
    wide = replace(layer, inputs=[(BATCH, WX), *layer.inputs[1:]], result=Scale(2e-4, 0, "int16"))
    assert wide.steps_off().max() <= 1


def normalized(kind: str, constants: Sequence[Array], **attributes: int) -> tuple[Array, Array]:
    """Return the integers that an operator gives whose shape the package onnx does not infer.

    And the numbers that it takes.
    """
    x = integers(X, BATCH, 1)
    network = Network(21)
    given = network.dequantize(network.input("x", BATCH, "int8"), X)
    value = network.add(kind, given, *map(network.constant, constants), **attributes)
    network.shapes[value] = BATCH
    network.outputs.append(network.quantize(value, NORMAL))
    (one,) = computed(lowered(network), x)
    return one, X.dequantize(x).astype(np.float64)


NORMAL = Scale(0.029, 5)


def test_group_normalisation() -> None:
    weight, bias = reals(6, mean=1.0), reals(6)
    one, real = normalized("GroupNormalization", (weight, bias), num_groups=3)
    real = real.reshape(4, 3, -1)
    spread = (real - real.mean(2, keepdims=True)) / np.sqrt(real.var(2, keepdims=True) + 1e-5)
    own = (6, 1, 1)
    wanted = NORMAL.quantize(spread.reshape(BATCH) * weight.reshape(own) + bias.reshape(own))
    assert np.abs(one.astype(int) - wanted).max() <= 1


def test_mean_variance_normalisation() -> None:
    one, real = normalized("MeanVarianceNormalization", ())
    axes = (0, 2, 3)
    wanted = NORMAL.quantize(
        (real - real.mean(axes, keepdims=True)) / real.std(axes, keepdims=True)
    )
    assert np.abs(one.astype(int) - wanted).max() <= 1


LINEAR: dict[str, Layer] = {
    f"{way}, {sizes}": Layer(
        "Resize", [((2, 3, 4, 5), X), None, None, whole(2, 3, *sizes)], X,
        {"mode": "linear", "coordinate_transformation_mode": way},
    )
    for way in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    for sizes in ((8, 10), (8, 5), (4, 15), (6, 7), (2, 3))
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("result", [X, SMALL], ids=["its own scale", "another"])
def test_interpolated_images(name: str, result: Scale) -> None:
    assert replace(LINEAR[name], result=result).steps_off().max() <= 1


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((1, 3, 9), (1, 3, 18)), ((1, 4, 5, 3), (1, 8, 10, 3)), ((7, 9), (14, 9)),
     ((2, 2, 3, 4, 5), (2, 2, 3, 8, 10))],
)  # fmt: skip
def test_interpolated_images_of_other_ranks(shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    layer = Layer("Resize", [(shape, X), None, None, whole(*sizes)], X, {"mode": "linear"})
    assert layer.steps_off().max() <= 1


def test_an_interpolated_image_alone() -> None:
    """A batch of 1 has no distance between its corners."""
    layer = Layer(
        "Resize", [((1, 1, 4, 5), X), None, None, whole(1, 1, 7, 9)], SMALL,
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    )  # fmt: skip
    assert layer.steps_off().max() <= 1


def test_interpolated_images_of_16_bits() -> None:
    layer = Layer(
        "Resize", [((1, 3, 4, 5), WX), None, None, whole(1, 3, 8, 10)], WX, {"mode": "linear"}
    )
    assert layer.steps_off().max() <= 1


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("attributes", [{"axis": 1}, {"axis": -1, "keepdims": 0},
                                        {"select_last_index": 1}])  # fmt: skip
@pytest.mark.parametrize("scale", [X, UX, WX], ids=lambda scale: scale.dtype)
def test_where_extremes_are(kind: str, attributes: dict[str, int], scale: Scale) -> None:
    network = Network(21)
    x = network.dequantize(network.input("x", (6, 9, 5), scale.dtype), scale)
    network.outputs.append(network.add(kind, x, **attributes))
    given = (integers(scale, (6, 9, 5), 2) // 30 * 30).astype(scale.dtype)
    lowering = lowered(network)
    if kind == "ArgMin" and scale is WX:
        assert on_host(lowering)[kind] == "it is of 16 bits"
        return
    assert on_host(lowering) == {}
    (one,) = computed(lowering, given)
    (wanted,) = from_runtime(network, {"x": given})
    np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_of_an_order_is_an_extreme(largest: int) -> None:
    network = Network(21)
    x = network.dequantize(network.input("x", (6, 9), "int8"), X)
    value = network.add("TopK", x, network.constant(whole(1)), outputs=2, largest=largest)
    network.outputs += [network.quantize(value, X), value.replace("_0", "_1")]
    given = integers(X, (6, 9), 2)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    for one, other in zip(computed(lowering, given), from_runtime(network, {"x": given}),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)


def test_integers_are_summed_as_they_are() -> None:
    network = Network(21)
    x = network.input("x", (6, 9), "int32")
    network.outputs.append(network.add("ReduceSum", x, network.constant(whole(1)), keepdims=0))
    given = RANDOM.integers(-1000, 1000, (6, 9)).astype(np.int32)
    (one,) = computed(lowered(network), given)
    np.testing.assert_array_equal(one, float_model(network, {"x": given})[0])


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (Layer("ReduceProd", [(IMAGE, X), whole(1)], X),
         "there is no TOSA form of ReduceProd here: a product of many numbers leaves 32 bits"),
        (Layer("ReduceSumSquare", [(IMAGE, WX), whole(1)], X),
         "it sums squares of 16 bits, which 32 bits do not hold"),
        (Layer("ReduceSum", [((1, 40000), WX), whole(1)], WX),
         "it sums 40000 numbers, and 32 bits hold 16384"),
        (Layer("Einsum", [((3, 3), X)], X, {"equation": "ii->i"}),
         "it takes a diagonal: a label comes twice"),
        (Layer("Einsum", [((3, 4), X), ((4, 5), X)], X, {"equation": "ij,jk->k"}),
         "it sums over a dimension of one tensor"),
    ],
)  # fmt: skip
def test_refusals_say_why(layer: Layer, reason: str) -> None:
    assert layer.reason() == reason
