"""Networks from graphs and as shapes: what they compute, hold, and need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Value
from mizzen.mesh.machine import find_machine
from mizzen.mesh.machine.work import cycles
from mizzen.mesh.network import (
    Box,
    Layer,
    LayerKind,
    Network,
    box_of,
    needed_boxes,
    network_of_tflite,
    work_of,
)
from mizzen.mesh.network.boxes import slices
from mizzen.mesh.network.shapes import SHAPES, mobilenet_v2, resnet50
from mizzen.ops import verify
from mizzen.reference import evaluate

NETWORKS = ["ad01_int8", "kws_micronet_m", "hello_world_int8", "yolo-fastest_192_face_v4"]
LARGEST = 40_000
"""Elements of a tensor of which boxes are tried."""


@pytest.fixture(scope="module", params=NETWORKS)
def network(request: pytest.FixtureRequest, models: Path) -> Network:
    name = f"{request.param}.tflite"
    return network_of_tflite((models / name).read_bytes(), name)


def numbers(value: Value, random: np.random.Generator) -> Any:
    low, high = {DType.INT8: (-128, 128), DType.INT16: (-32768, 32768)}[value.dtype]
    return random.integers(low, high, value.shape).astype(value.dtype.numpy)


def test_layer_by_layer_is_the_whole_network(network: Network) -> None:
    assert network.graph is not None
    random = np.random.default_rng(1)
    inputs = [numbers(value, random) for value in network.graph.inputs]
    tensors = dict(zip(network.inputs, inputs, strict=True))
    for layer in network.layers:
        assert layer.chain is not None
        (tensors[layer.output],) = evaluate(layer.chain, [tensors[index] for index in layer.inputs])
    whole = evaluate(network.graph, inputs)
    for index, expected in zip(network.outputs, whole, strict=True):
        assert np.array_equal(tensors[index], expected)


def _boxes(shape: tuple[int, ...], random: np.random.Generator) -> Box:
    spans: list[tuple[int, int]] = []
    for extent in shape:
        start = int(random.integers(extent))
        spans.append((start, int(random.integers(start, extent)) + 1))
    return tuple(spans)


def _unmoved(layer: Layer, given: list[Any], box: Box, needed: tuple[Box | None, ...]) -> bool:
    """Whether numbers outside the needed boxes leave the box of the output as it is."""
    assert layer.chain is not None
    (before,) = evaluate(layer.chain, given)
    changed: list[Any] = []
    for array, kept in zip(given, needed, strict=True):
        other = ~array
        if kept is not None:
            other[slices(kept)] = array[slices(kept)]
        changed.append(other)
    (after,) = evaluate(layer.chain, changed)
    return bool(np.array_equal(before[slices(box)], after[slices(box)]))


def test_a_box_needs_nothing_outside_the_boxes_that_are_told(network: Network) -> None:
    random = np.random.default_rng(2)
    tried = 0
    for layer in network.layers:
        shape = network.tensors[layer.output].shape
        if layer.chain is None or np.prod(shape) > LARGEST:
            continue
        given = [numbers(value, random) for value in layer.chain.inputs]
        for _ in range(3):
            box = _boxes(shape, random)
            assert _unmoved(layer, given, box, needed_boxes(network, layer, box)), layer.name
            tried += 1
    assert tried >= 6


@pytest.mark.parametrize("name", ["person_detect", "micro_speech_quantized"])
def test_graphs_that_are_rewritten_are_sound(name: str, models: Path) -> None:
    network = network_of_tflite((models / f"{name}.tflite").read_bytes(), name)
    for layer in network.layers:
        assert layer.chain is not None
        assert not verify(layer.chain)


def test_layers_hold_all_weights(network: Network) -> None:
    held = sum(network.weight_bytes(layer) for layer in network.layers)
    assert network.graph is not None
    weights = {
        value: value.constant
        for operation in network.graph
        if operation.kind in ("CONV2D", "DEPTHWISE_CONV2D")
        for value in operation.operands[1:3]
    }
    assert held >= sum(array.nbytes for array in weights.values() if array is not None) > 0


def test_residual_sums_are_part_of_convolutions(models: Path) -> None:
    name = "pretrainedResnet_quant.tflite"
    network = network_of_tflite((models / name).read_bytes(), name)
    kinds = [layer.kind for layer in network.layers]
    assert kinds.count(LayerKind.POINTWISE) == 0
    assert sum(len(layer.inputs) == 2 for layer in network.layers) == 3
    assert max(tensor.item_bytes for tensor in network.tensors) == 1


def test_networks_with_states_are_refused(models: Path) -> None:
    name = "audio_preprocessor_int8.tflite"
    with pytest.raises(MizzenError) as caught:
        network_of_tflite((models / name).read_bytes(), name)
    assert str(caught.value).startswith(
        "error[E565]: operations on a mesh must give one tensor, of their inputs alone, "
        "and CUSTOM gives 2 or has a state\n"
    )
    assert "help compile the network for a single NPU: mizzen compile keeps states" in str(
        caught.value
    )


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_fit_each_other(name: str) -> None:
    network = SHAPES[name]()
    for layer in network.layers:
        whole = box_of(network.tensors[layer.output].shape)
        for tensor, box in zip(layer.inputs, needed_boxes(network, layer, whole), strict=True):
            assert box is not None
            extents = zip(box, network.tensors[tensor].shape, strict=True)
            assert all(0 <= start < stop <= extent for (start, stop), extent in extents)


@pytest.mark.parametrize(
    ("network", "giga_macs", "mega_bytes", "images_per_s"),
    [(resnet50(), 4.089, 25.5, 31_608), (mobilenet_v2(), 0.301, 3.5, 214_943)],
    ids=["resnet50", "mobilenet-v2"],
)
def test_shapes_are_those_that_are_published(
    network: Network, giga_macs: float, mega_bytes: float, images_per_s: int
) -> None:
    """Multiply-accumulates, weights; and the images a second that arrays of 4 x 16 allow."""
    works = [
        work_of(network, layer, box_of(network.tensors[layer.output].shape))
        for layer in network.layers
    ]
    assert round(sum(work.macs for work in works) / 1e9, 3) == giga_macs
    held = sum(network.weight_bytes(layer) for layer in network.layers)
    assert held / 1e6 == pytest.approx(mega_bytes, abs=0.6)
    board = find_machine("spinnaker2-48")
    array_cycles = [cycles(board.kinds[0], work) for work in works if work.macs]
    bound = len(board.usable) * board.kinds[0].clock_hz / sum(array_cycles)
    assert bound == pytest.approx(images_per_s, rel=0.03)
