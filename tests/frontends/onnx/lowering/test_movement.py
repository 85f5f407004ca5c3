"""Operators that move elements, look them up or join them, against ONNX's own implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.graph import Array

from .comparing import Layer, Weight, integers
from .networks import Network, Scale, computed, float_model, from_runtime, lowered, on_host

X = Scale(0.0173, 7)
UX = Scale(0.0173, 119, "uint8")
WX = Scale(0.000131, 0, "int16")
OTHER = Scale(0.0417, -31)


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def number(real: float) -> Array:
    return np.array(real, np.float32)


PLANE, IMAGE, CUBE = (6, 10), (2, 8, 4, 6), (2, 3, 4, 5, 6)

MOVES: dict[str, Layer] = {
    "reshape to rank 1": Layer("Reshape", [(IMAGE, X), whole(-1)], X),
    "reshape to rank 5": Layer("Reshape", [(IMAGE, X), whole(2, 2, 4, 4, 6)], X),
    "flatten": Layer("Flatten", [(CUBE, X)], X, {"axis": 2}),
    "squeeze": Layer("Squeeze", [((1, 4, 1, 5), X), whole(2)], X),
    "unsqueeze": Layer("Unsqueeze", [(PLANE, X), whole(0, -1)], X),
    "transpose of two": Layer("Transpose", [(PLANE, X)], X),
    "transpose of five": Layer("Transpose", [(CUBE, X)], X, {"perm": [0, 2, 1, 4, 3]}),
    "expand": Layer("Expand", [((3, 1), X), whole(2, 1, 6)], X),
    "expand to less": Layer("Expand", [((4, 3, 6), X), whole(1, 6)], X),
    "tile": Layer("Tile", [(PLANE, X), whole(2, 3)], X),
    "slice": Layer("Slice", [(IMAGE, X), whole(1, 2), whole(7, 100), whole(1, 3)], X),
    "slice in steps": Layer(
        "Slice", [(IMAGE, X), whole(0, 1), whole(99, 6), whole(1, 3), whole(3, 2)], X
    ),
    "slice backwards": Layer(
        "Slice", [(PLANE, X), whole(-1, 8), whole(-100, 1), whole(0, 1), whole(-1, -3)], X
    ),
    "slice of a row": Layer("Slice", [((40,), X), whole(-7), whole(39)], X),
    "pad": Layer("Pad", [(IMAGE, X), whole(0, 1, 2, 3, 0, 0, 1, 2)], X),
    "pad of some axes": Layer(
        "Pad", [(IMAGE, X), whole(2, 1), number(0.0173 * 9), whole(-1)], X
    ),
    "pad by reflection": Layer("Pad", [(PLANE, X), whole(3, 2, 1, 4)], X, {"mode": "reflect"}),
    "pad by the edge": Layer("Pad", [(IMAGE, X), whole(*(0, 0, 1, 2) * 2)], X, {"mode": "edge"}),
    "pad around": Layer("Pad", [(PLANE, X), whole(3, 2, 1, 4)], X, {"mode": "wrap"}),
    "depth to space": Layer("DepthToSpace", [(IMAGE, X)], X, {"blocksize": 2}),
    "depth to space, CRD": Layer(
        "DepthToSpace", [((2, 18, 3, 5), X)], X, {"blocksize": 3, "mode": "CRD"}
    ),
    "space to depth": Layer("SpaceToDepth", [(IMAGE, X)], X, {"blocksize": 2}),
    "gather": Layer("Gather", [(IMAGE, X), whole(7, 0, -1, 3, 4)], X, {"axis": 1}),
    "gather of two dimensions": Layer(
        "Gather", [(PLANE, X), whole(1, 5, 0, 2).reshape(2, 2)], X, {"axis": 0}
    ),
    "gather one": Layer("Gather", [(IMAGE, X), np.array(-2, np.int64)], X, {"axis": 2}),
    "gather of many": Layer(
        "Gather", [((4, 300), X), np.random.default_rng(1).permutation(300)], X, {"axis": 1}
    ),
    "gather elements": Layer(
        "GatherElements", [(PLANE, X), np.random.default_rng(2).integers(-6, 6, (3, 10))], X
    ),
    "gather n-d": Layer("GatherND", [(IMAGE, X), whole(1, 3, 0, 7).reshape(2, 2)], X),
    "gather n-d of batches": Layer(
        "GatherND", [(IMAGE, X), whole(3, 7).reshape(2, 1)], X, {"batch_dims": 1}
    ),
    "trilu": Layer("Trilu", [((2, 5, 7), X), np.array(1, np.int64)], X),
    "trilu, lower": Layer("Trilu", [((5, 7), X)], X, {"upper": 0}),
    "nearest": Layer(
        "Resize", [(IMAGE, X), None, np.array([1, 1, 2, 3], np.float32)], X,
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "nearest, fractions": Layer("Resize", [(IMAGE, X), None, None, whole(2, 8, 7, 5)], X),
    "nearest of a row": Layer(
        "Resize", [((1, 3, 9), X), None, np.array([1, 1, 2], np.float32)], X
    ),
    "nearest, channels last": Layer(
        "Resize", [((1, 4, 5, 3), X), None, np.array([1, 2, 2, 1], np.float32)], X
    ),
    "nearest of three dimensions": Layer(
        "Resize", [(CUBE, X), None, None, whole(2, 3, 8, 3, 9)], X
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("scale", [X, UX, WX], ids=lambda scale: scale.dtype)
def test_elements_are_moved_as_they_are(name: str, scale: Scale) -> None:
    layer = replaced(MOVES[name], scale)
    assert layer.steps_off().max() == 0


def replaced(layer: Layer, scale: Scale) -> Layer:
    """Return a layer with another scale for its input and its result."""
    return replace(layer, inputs=[(shape_of(layer), scale), *layer.inputs[1:]], result=scale)


def shape_of(layer: Layer) -> Sequence[int]:
    """Return the shape of a layer's first input."""
    first = layer.inputs[0]
    assert isinstance(first, tuple)
    return first[0]


@pytest.mark.parametrize("name", MOVES)
def test_to_another_scale_there_is_one_rounding(name: str) -> None:
    off = replace(MOVES[name], result=OTHER).steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 2e-3 * off.size


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bool"])
@pytest.mark.parametrize("name", [name for name in MOVES if name not in ("pad of some axes",)])
def test_integers_without_a_scale_are_moved(name: str, dtype: str) -> None:
    layer = MOVES[name]
    network = Network(21)
    if dtype == "bool" and layer.kind == "Resize":
        pytest.skip("ONNX's own implementation does not resize truths")
    names = [network.input("x", shape_of(layer), dtype)]
    for item in layer.inputs[1:]:
        assert item is None or isinstance(item, np.ndarray)
        names.append("" if item is None else network.constant(item))
    network.outputs.append(network.add(layer.kind, *names, **layer.attributes))
    given = np.random.default_rng(0).integers(0, 100, shape_of(layer)).astype(dtype)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    (result,) = computed(lowering, given)
    (wanted,) = float_model(network, {"x": given})
    np.testing.assert_array_equal(result, wanted)


def test_a_negative_border_is_cut_off() -> None:
    network = Layer("Pad", [(PLANE, X), whole(-1, 2, 3, -2)], X).network()
    given = integers(X, PLANE, 1)
    (result,) = computed(lowered(network), given)
    np.testing.assert_array_equal(result, from_runtime(network, {"x0": given})[0])


@pytest.mark.parametrize(
    ("kind", "sizes", "attributes"),
    [
        ("given", whole(1, 4, 3), {}),
        ("equal", None, {"num_outputs": 2}),
        ("a smaller last one", None, {"num_outputs": 3}),
    ],
)
def test_split(kind: str, sizes: Array | None, attributes: dict[str, int]) -> None:
    count = 3 if sizes is not None else attributes["num_outputs"]
    network = Network(21)
    x = network.dequantize(network.input("x", (2, 8, 3), "int8"), X)
    names = [x] if sizes is None else [x, network.constant(sizes)]
    first = network.add("Split", *names, outputs=count, axis=1, **attributes)
    for index in range(count):
        network.outputs.append(network.quantize(first.replace("_0", f"_{index}"), X))
    given = integers(X, (2, 8, 3), 3)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    for one, other in zip(
        computed(lowering, given), from_runtime(network, {"x": given}), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scales", [(X, X), (X, OTHER), (X, OTHER, Scale(0.0031, 90))])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_of_several_scales(scales: tuple[Scale, ...], axis: int) -> None:
    layer = Layer("Concat", [((3, 40, 50), each) for each in scales], X, {"axis": axis})
    off = layer.steps_off()
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 1e-3 * off.size


def test_concat_with_a_constant() -> None:
    weight = Weight(integers(OTHER, (3, 4), 9), OTHER)
    layer = Layer("Concat", [((3, 5), X), weight], X, {"axis": 1})
    assert layer.steps_off().max() <= 1


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["Gather", "GatherElements"])
def test_indices_that_are_computed(kind: str, dtype: str) -> None:
    network = Network(21)
    x = network.dequantize(network.input("x", (7, 6), "int8"), X)
    shape = (5,) if kind == "Gather" else (5, 6)
    index = network.input("index", shape, dtype)
    network.outputs.append(network.quantize(network.add(kind, x, index, axis=0), X))
    given = integers(X, (7, 6), 4)
    places = np.random.default_rng(5).integers(-7, 7, shape).astype(dtype)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    (result,) = computed(lowering, given, places)
    np.testing.assert_array_equal(result, from_runtime(network, {"x": given, "index": places})[0])


def test_a_border_that_no_integer_stands_for_takes_the_results_scale() -> None:
    layer = Layer("Pad", [((3, 50), X), whole(1, 1, 1, 1), number(1.2345)], OTHER)
    assert layer.steps_off().max() <= 1


def test_a_transposed_convolutions_result_is_moved_before_it_is_rounded() -> None:
    """What moves a sum that has no integers yet is a part of its computation."""
    network = Network(21)
    x = network.dequantize(network.input("x", (1, 3, 4, 4), "int8"), X)
    weight = network.weight(integers(X, (6, 3, 1, 1), 2), Scale(0.01))
    moved = network.add("Transpose", network.add("Conv", x, weight), perm=[0, 2, 3, 1])
    network.outputs.append(network.quantize(moved, OTHER))
    given = integers(X, (1, 3, 4, 4), 1)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    off = computed(lowering, given)[0].astype(int) - from_runtime(network, {"x": given})[0]
    assert np.abs(off).max() <= 1


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (
            Layer("Resize", [(IMAGE, X), None, np.array([1, 1, 2, 2], np.float32)], X,
                  {"mode": "cubic"}),
            'its mode is "cubic", which takes negative weights',
        ),
        (
            Layer("Resize", [(IMAGE, X), None, np.array([1, 1, 0.5, 0.5], np.float32)], X,
                  {"mode": "linear", "antialias": 1}),
            "it smooths before it makes an image smaller",
        ),
        (
            Layer("Gather", [(PLANE, X), whole(17)], X),
            "an index is beyond the 6 that there are",
        ),
        (
            Layer("GatherND", [(PLANE, X), whole(3, 10).reshape(1, 2)], X),
            "an index is beyond the shape [6, 10]",
        ),
        (
            Layer("ScatterND", [(PLANE, X), whole(1).reshape(1, 1), ((1, 10), X)], X),
            "there is no TOSA form of ScatterND here: it writes at places among others, of which "
            "none may come twice on an NPU",
        ),
    ],
)  # fmt: skip
def test_refusals_say_why(layer: Layer, reason: str) -> None:
    assert layer.reason() == reason
