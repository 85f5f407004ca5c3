"""Mappings by hand: each kind of split, tiles beside each other, replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mizzen.mesh.machine import Machine, find_machine
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import LayerKind, Network

from .hand import MappingMaker, NetworkMaker

GRID = find_machine("grid4x4")
ROWS, COLUMNS, CHANNELS = 1, 2, 3


def split_channels() -> Mapping:
    made = NetworkMaker((1, 6, 5, 3))
    made.convolution(made.convolution(0, 8), 6, stride=2)
    mapping = MappingMaker(GRID, made.network())
    mapping.split(0, [0, 1, 4], CHANNELS)
    mapping.split(1, [5, 2], CHANNELS)
    return mapping.mapping()


def split_rows_with_halo() -> Mapping:
    made = NetworkMaker((1, 9, 7, 3))
    made.convolution(made.convolution(0, 4, kernel=5), 4, depthwise=True)
    mapping = MappingMaker(GRID, made.network())
    mapping.split(0, [0, 1, 2], ROWS)
    mapping.split(1, [3, 4, 5, 6], COLUMNS)
    return mapping.mapping()


def split_sums() -> Mapping:
    made = NetworkMaker((1, 5, 5, 4))
    made.convolution(made.convolution(0, 12), 8)
    mapping = MappingMaker(GRID, made.network())
    mapping.split(0, [0, 1], ROWS)
    mapping.split(1, [2, 3, 6, 8, 9, 10], CHANNELS, sums=3)
    return mapping.mapping()


def residual() -> Mapping:
    made = NetworkMaker((1, 6, 6, 4))
    first = made.convolution(0, 8)
    second = made.convolution(first, 8)
    third = made.convolution(second, 8, skip=first)
    made.concatenation(third, made.sum(second, third))
    mapping = MappingMaker(GRID, made.network())
    mapping.split(0, [0, 1], CHANNELS)
    mapping.split(1, [2, 3], ROWS)
    mapping.split(2, [4, 5, 6, 7], CHANNELS, sums=2)
    mapping.split(3, [8], ROWS)
    mapping.split(4, [9, 12], CHANNELS)
    return mapping.mapping()


def several_tiles_an_element() -> Mapping:
    made = NetworkMaker((1, 8, 8, 3))
    first = made.convolution(0, 8)
    second = made.convolution(first, 8, skip=first)
    made.flattening(made.greatest(made.pooling(second, 2)))
    mapping = MappingMaker(GRID, made.network())
    mapping.split(0, [0, 1], ROWS)
    mapping.split(1, [0, 1, 1, 0], ROWS, sums=2)
    mapping.split(2, [1, 0], CHANNELS)
    mapping.split(3, [0, 1], ROWS)
    mapping.split(4, [0], ROWS)
    return mapping.mapping()


def replicas() -> Mapping:
    made = NetworkMaker((1, 6, 6, 3))
    made.convolution(made.convolution(0, 4), 4)
    mapping = MappingMaker(GRID, made.network(), replicas=3)
    for replica in range(3):
        mapping.split(0, [replica, replica + 4], ROWS, replica)
        mapping.split(1, [replica + 8], ROWS, replica)
    return mapping.mapping()


def split_at_random(network: Network, seed: int) -> Mapping:
    """Cut each layer along an axis, and some sums, and lay the tiles anywhere."""
    random = np.random.default_rng(seed)
    mapping = MappingMaker(GRID, network)
    for index, layer in enumerate(network.layers):
        shape = network.tensors[layer.output].shape
        axes = [axis for axis in range(len(shape)) if axis not in layer.reduced_axes]
        axis = int(random.choice(axes))
        parts = 1 if layer.kind is LayerKind.GENERAL else min(shape[axis], random.integers(1, 5))
        summed = layer.kind is LayerKind.CONVOLUTION and layer.input_channels >= 4
        sums = 2 if summed and random.integers(2) else 1
        mapping.split(index, random.integers(0, 16, parts * sums).tolist(), axis, sums=sums)
    return mapping.mapping()


def on_chips(machine: Machine, chips: Sequence[int]) -> Mapping:
    """A convolution on one element of each chip, then one on another element of the first."""
    made = NetworkMaker((1, 6, 6, 3))
    made.convolution(made.convolution(0, 8), 4)
    mapping = MappingMaker(machine, made.network())
    firsts = [int(np.flatnonzero(machine.element_chip == chip)[0]) for chip in chips]
    mapping.split(0, firsts, ROWS)
    mapping.split(1, [firsts[0] + 1], ROWS)
    return mapping.mapping()


BY_HAND: dict[str, Callable[[], Mapping]] = {
    made.__name__: made
    for made in (
        split_channels,
        split_rows_with_halo,
        split_sums,
        residual,
        several_tiles_an_element,
        replicas,
    )
}
