"""Layers cut to boxes: whatever the box is, its numbers are those of the whole layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Graph, TensorType
from mizzen.mesh.emission import emit
from mizzen.mesh.execution import execute
from mizzen.mesh.execution.accumulators import accumulators
from mizzen.mesh.execution.custom import custom_kernel
from mizzen.mesh.execution.cutting import cut
from mizzen.mesh.machine import MacArray, Overflow
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import (
    Box,
    Layer,
    LayerKind,
    Network,
    box_of,
    needed_boxes,
    network_of_tflite,
)
from mizzen.mesh.network.boxes import intersection, slices
from mizzen.mesh.network.network import Tensor
from mizzen.mesh.program import Kernel
from mizzen.ops import Builder
from mizzen.reference import evaluate

Made = dict[str, Callable[[], Mapping]]
LARGEST = 60_000
"""Elements of a tensor of which boxes are tried."""


def some_box(shape: tuple[int, ...], random: np.random.Generator) -> Box:
    spans: list[tuple[int, int]] = []
    for extent in shape:
        start = int(random.integers(extent))
        spans.append((start, int(random.integers(start, extent)) + 1))
    return tuple(spans)


@pytest.mark.parametrize(
    "name", ["kws_ref_model", "pretrainedResnet_quant", "vww4_128_128_INT8", "rnnoise_INT8"]
)
def test_a_box_has_the_numbers_of_the_whole(name: str, models: Path) -> None:
    network = network_of_tflite((models / f"{name}.tflite").read_bytes(), name)
    random, tried = np.random.default_rng(4), set[LayerKind]()
    for index, layer in enumerate(network.layers):
        shape = network.tensors[layer.output].shape
        if layer.kind is LayerKind.GENERAL or np.prod(shape) > LARGEST:
            continue
        assert layer.chain is not None
        given = [_numbers(value.type, random) for value in layer.chain.inputs]
        (whole,) = evaluate(layer.chain, given, custom=None)
        for _ in range(4):
            box = some_box(shape, random)
            tile = cut(network, Kernel(index, box, None, 0, False))
            needed = needed_boxes(network, layer, box)
            for place, taken in tile.takes:
                have = needed[place]
                assert have is not None
                assert intersection(have, taken) == taken, "a tile takes what it is said to need"
            parts = [given[place][slices(taken)] for place, taken in tile.takes]
            (found,) = evaluate(tile.graph, parts)
            assert np.array_equal(found, whole[slices(box)])
        tried.add(layer.kind)
    assert tried & {LayerKind.CONVOLUTION, LayerKind.POINTWISE}


def _numbers(type: TensorType, random: np.random.Generator) -> Any:
    bits = 8 if type.dtype is DType.INT8 else 16
    reach = 1 << (bits - 1)
    return random.integers(-reach, reach, type.shape).astype(type.dtype.numpy)


def padded() -> Network:
    """A network that pads its input with sevens."""
    graph = Graph("chain")
    x = graph.add_input(TensorType((1, 4, 4, 2), DType.INT8))
    builder = Builder(graph)
    around = graph.constant([0, 0, 1, 2, 0, 3, 0, 0], DType.SHAPE)
    graph.set_outputs([builder("PAD", x, around, builder.constant([7], DType.INT8))])
    tensors = Tensor("x", (1, 4, 4, 2), 1), Tensor("y", (1, 7, 7, 2), 1)
    layer = Layer("pad", LayerKind.MOVEMENT, (0,), 1, offsets=((0, 1, 0, 0),), chain=graph)
    return Network("padded", tensors, (layer,), (0,), (1,))


def test_a_box_of_padding_alone_needs_nothing() -> None:
    network = padded()
    tile = cut(network, Kernel(0, ((0, 1), (5, 7), (0, 7), (0, 2)), None, 0, False))
    assert tile.takes == ()
    (found,) = evaluate(tile.graph, [])
    assert found.shape == (1, 2, 7, 2)
    assert (found == 7).all()


def test_what_cannot_be_cut_says_so(by_hand: Made) -> None:
    network = by_hand["several_tiles_an_element"]().network
    general, pooling = len(network.layers) - 1, 2
    for kernel, text in (
        (
            Kernel(general, ((0, 1), (0, 1), (0, 1), (0, 5)), None, 0, False),
            "error[E531]: layer 'layer4' cannot be cut to [(0, 1), (0, 1), (0, 1), (0, 5)]: "
            "RESHAPE cannot be computed in parts where it mixes dimensions",
        ),
        (
            Kernel(pooling, box_of(network.tensors[3].shape), None, 0, True),
            "error[E531]: layer 'layer2' cannot give partial sums: it has no convolution",
        ),
        (
            Kernel(pooling, box_of(network.tensors[3].shape), None, 1, False),
            "error[E531]: layer 'layer2' cannot be cut to [(0, 1), (0, 4), (0, 4), (0, 8)]: no "
            "convolution is there to add partial sums to",
        ),
        (
            Kernel(pooling, ((0, 1), (0, 9), (0, 4), (0, 8)), None, 0, False),
            "error[E531]: layer 'layer2' cannot give [(0, 1), (0, 9), (0, 4), (0, 8)] of a tensor "
            "of shape [1, 4, 4, 8]",
        ),
    ):
        with pytest.raises(MizzenError) as error:
            cut(network, kernel)
        assert str(error.value) == text


def test_an_operator_that_carries_no_network_is_not_computed() -> None:
    graph = Graph("chain")
    x = graph.add_input(TensorType((1, 4), DType.INT8))
    types = [TensorType((1, 4), DType.INT8)]
    (y,) = Builder(graph).custom("tflite.SOFTMAX", [x], types, implementation_attrs=b"{}")
    graph.set_outputs([y])
    with pytest.raises(MizzenError) as error:
        evaluate(graph, [np.zeros((1, 4), np.int8)], custom=custom_kernel())
    assert str(error.value) == (
        "error[E533]: tflite.SOFTMAX must carry a network for TFLite Micro's kernels\n"
        "  help nothing else computes operations that are not TOSA's"
    )


@pytest.mark.parametrize("overflow", list(Overflow))
def test_sums_beyond_an_accumulator_wrap_or_saturate(overflow: Overflow, by_hand: Made) -> None:
    """The array has the products of the integers as they are; zero points and bias come after."""
    network = by_hand["split_channels"]().network
    chain = network.layers[0].chain
    assert chain is not None
    shape = network.tensors[1].shape
    tile = cut(network, Kernel(0, box_of(shape), None, 0, False))
    held = accumulators(MacArray(4, 16, 16, overflow), tile.sums)
    assert held is not None
    assert accumulators(MacArray(4, 16, 24, overflow), tile.sums) is None
    product: Any = tile.product
    weights = product.weight.constant.astype(np.int64)
    zero_point = int(product.input_zp.constant[0])
    given = np.random.default_rng(3).integers(-128, 128, (1, 6, 5, 3)).astype(np.int8)
    wide = np.pad(given, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=zero_point)
    traced: dict[str, Any] = {}

    def trace(value: Any, array: Any) -> Any:
        found = held.trace(value, array)
        if found is not None:
            traced["sums"] = found
        return found

    evaluate(tile.graph, [given], trace=trace)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2))
    raw = np.einsum("nhwcyx,oyxc->nhwo", windows.astype(np.int64), weights)
    assert np.abs(raw).max() > 1 << 15, "nothing overflows"
    if overflow is Overflow.WRAP:
        kept = raw.astype(np.int16).astype(np.int64)
    else:
        kept = np.clip(raw, -(1 << 15), (1 << 15) - 1)
    bias = product.bias.constant.astype(np.int64)
    assert np.array_equal(traced["sums"], kept - zero_point * weights.sum((1, 2, 3)) + bias)


def test_a_program_on_narrow_accumulators_computes_what_they_do(by_hand: Made) -> None:
    program = emit(by_hand["split_channels"]())
    given = np.random.default_rng(3).integers(-128, 128, (2, 1, 6, 5, 3)).astype(np.int8)
    (kind,) = program.machine.kinds
    assert kind.array is not None
    narrow = replace(kind, array=replace(kind.array, accumulator_bits=16))
    machine = replace(program.machine, kinds=(narrow,))
    (wide,) = execute(program, [given]).outputs
    (found,) = execute(replace(program, machine=machine), [given]).outputs
    assert not np.array_equal(found, wide)
