"""How far a lowered operator is off the same operator in float32, in steps of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mizzen.graph import Array

from .networks import Network, Scale, computed, float_model, lowered, on_host


@dataclass(frozen=True, eq=False)
class Weight:
    """A constant with integers."""

    integers: Array
    scale: Scale


Input = tuple[Sequence[int], Scale] | Weight | Array | None
"""A computed tensor's shape and scale, a quantised constant, or one in floating point."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One operator between DequantizeLinear and QuantizeLinear."""

    kind: str
    inputs: Sequence[Input]
    result: Scale
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 21

    def network(self) -> Network:
        """Return the quantised network."""
        network = Network(self.opset)
        names = [self._quantized(network, index, item) for index, item in enumerate(self.inputs)]
        value = network.add(self.kind, *names, **self.attributes)
        network.outputs.append(network.quantize(value, self.result))
        return network

    def _quantized(self, network: Network, index: int, item: Input) -> str:
        match item:
            case None:
                return ""
            case Weight(integers, scale):
                return network.weight(integers, scale)
            case np.ndarray():  # a sequence too, since NumPy 2.5
                return network.constant(item)
            case (shape, scale):
                return network.dequantize(network.input(f"x{index}", shape, scale.dtype), scale)

    def plain(self) -> Network:
        """Return the network in floating point."""
        network = Network(self.opset)
        names: list[str] = []
        for index, item in enumerate(self.inputs):
            match item:
                case None:
                    names.append("")
                case Weight(integers, scale):
                    names.append(network.constant(scale.dequantize(integers)))
                case np.ndarray():
                    names.append(network.constant(item))
                case (shape, _):
                    names.append(network.input(f"x{index}", shape))
        network.outputs.append(network.add(self.kind, *names, **self.attributes))
        return network

    def given(self, seed: int = 0) -> dict[str, Array]:
        """Return random integers for the inputs."""
        return {
            f"x{index}": integers(item[1], item[0], seed + index)
            for index, item in enumerate(self.inputs)
            if isinstance(item, tuple)
        }

    def reals(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Return the numbers that integers of the inputs stand for."""
        return {
            name: item[1].dequantize(given[name])
            for index, item in enumerate(self.inputs)
            if isinstance(item, tuple)
            for name in (f"x{index}",)
        }

    def steps_off(self) -> Array:
        """Return by how many steps the graph's result is off the float model's."""
        lowering, given = lowered(self.network()), self.given()
        assert on_host(lowering) == {}
        (result,) = computed(lowering, *given.values())
        (real,) = float_model(self.plain(), self.reals(given))
        wanted = self.result.quantize(real)
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        return np.abs(result.astype(np.int64) - wanted.astype(np.int64))

    def reason(self) -> str:
        """Return why ONNX Runtime computes the operator."""
        return on_host(lowered(self.network()))[self.kind]


def integers(scale: Scale, shape: Sequence[int], seed: int) -> Array:
    """Return random integers of a scale's type."""
    limit = np.iinfo(scale.dtype)
    generator = np.random.default_rng(seed)
    return generator.integers(limit.min, limit.max + 1, shape).astype(scale.dtype)
