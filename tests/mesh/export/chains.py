"""Networks of layers that are any operations, all of one input, each giving an output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.mesh.emission import emit
from mizzen.mesh.machine import find_machine
from mizzen.mesh.mapping import Mapping as MeshMapping
from mizzen.mesh.mapping import Tile
from mizzen.mesh.network.boxes import box_of
from mizzen.mesh.network.network import Layer, LayerKind, Network, Tensor
from mizzen.mesh.program import MeshProgram
from mizzen.ops import Builder

Chain = Callable[["Chains", Value], Value]


class Chains:
    """Builds the operations of a layer."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.random = np.random.default_rng(7)

    def __call__(self, kind: str, *operands: Value, **attributes: Any) -> Value:
        """Add an operation."""
        return self.builder(kind, *operands, **attributes)

    def constant(self, values: Any, dtype: DType = DType.INT32) -> Value:
        """Return a constant."""
        return self.builder.graph.constant(np.asarray(values), dtype)

    def some(self, shape: tuple[int, ...], low: int, high: int, dtype: DType) -> Value:
        """Return a constant of random integers."""
        return self.constant(self.random.integers(low, high, shape), dtype)

    def rescaled(
        self, value: Value, target: DType, shift: Any, zero_point: int = 0, **others: Any
    ) -> Value:
        """Scale by numbers about a half times ``2**(31 - shift)``."""
        shifts = np.atleast_1d(shift)
        wide = others.get("scale32", True)
        least = 1 << 30 if wide else 1 << 14
        multiplier = self.random.integers(least, 2 * least - 1, len(shifts))
        rounding = RoundingMode.SINGLE_ROUND
        settings = {
            "scale32": True,
            "rounding_mode": rounding,
            "per_channel": len(shifts) > 1,
            "input_unsigned": False,
            "output_unsigned": False,
        }
        return self(
            "RESCALE",
            value,
            self.constant(multiplier, DType.INT32 if wide else DType.INT16),
            self.constant(shifts, DType.INT8),
            self.constant([others.pop("input_zp", 0)], value.dtype),
            self.constant([zero_point], target),
            **(settings | others),
        )

    def wide(self, value: Value) -> Value:
        """Return 8 bits as 32, some of them large."""
        return self.rescaled(value, DType.INT32, 12)

    def narrow(self, value: Value, shift: int = 45) -> Value:
        """Return 32 bits as 8."""
        return self.rescaled(value, DType.INT8, shift)


def program_of(
    chains: Mapping[str, Chain], shape: tuple[int, ...], kind: LayerKind = LayerKind.GENERAL
) -> MeshProgram:
    """Return a program of one element that computes each chain of one int8 input."""
    tensors, layers, tiles = [Tensor("x", shape, 1)], list[Layer](), list[Tile]()
    for name, chain in chains.items():
        graph = Graph("chain")
        x = graph.add_input(TensorType(shape, DType.INT8))
        result = chain(Chains(Builder(graph)), x)
        graph.set_outputs([result])
        layers.append(Layer(name, kind, (0,), len(tensors), chain=graph))
        tiles.append(Tile(len(tiles), 0, box_of(result.shape), None, 0))
        tensors.append(Tensor(name, result.shape, result.dtype.numpy.itemsize))
    outputs = tuple(range(1, len(tensors)))
    network = Network("chains", tuple(tensors), tuple(layers), (0,), outputs)
    machine = find_machine("grid4x4")
    return emit(MeshMapping(machine, network, 1, tuple(tiles), (), {}, 0))
