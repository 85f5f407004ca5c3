"""Graphs of one computation, of random integers, next to a model in real numbers of 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mizzen.frontends.quantized.scales import typed
from mizzen.frontends.quantized.terms import Array, Constant, Real, Target
from mizzen.graph import DType, Graph, Quantization, TensorType, Value, integer_range
from mizzen.ops import Builder
from mizzen.ops.limits import WindowLimits
from mizzen.reference import evaluate

LIMITS = WindowLimits(longest_stride=3, largest_kernel=64)

HELD = 0.9 + 1 / (1 << 11)
"""Of a range; a rounder number would put products in the middle of two integers."""


@dataclass(eq=False)
class Bench:
    """A graph that is being built, and random integers for its inputs."""

    seed: int
    graph: Graph = field(default_factory=Graph)
    arrays: list[Array] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.b = Builder(self.graph)

    def scale(self, low: float = 0.001, high: float = 0.1) -> float:
        """Return a random scale."""
        return float(np.float32(np.exp(self.random.uniform(np.log(low), np.log(high)))))

    def real(
        self, shape: Sequence[int], dtype: DType = DType.INT8, scale: float | None = None
    ) -> Real:
        """Add an input of random integers; those of 16 bits have no zero point."""
        low, high = integer_range(dtype)
        zero_point = int(self.random.integers(-100, 100)) if dtype is DType.INT8 else 0
        quantization = Quantization((scale or self.scale(),), (zero_point,))
        type = TensorType(tuple(shape), dtype).quantized(quantization)
        self.arrays.append(self.random.integers(low, high + 1, shape).astype(dtype.numpy))
        return Real(self.graph.add_input(type, f"x{len(self.arrays)}"))

    def weight(self, *shape: int) -> Array:
        """Return random weights of 8 bits."""
        return self.random.integers(-127, 128, shape).astype(np.int8)

    def numbers(self, x: Real) -> Array:
        """Return the real numbers that an input stands for."""
        integers = self.arrays[list(self.graph.inputs).index(x.value)]
        return (integers.astype(np.float64) - x.zero_point) * x.scale

    def steps_off(
        self, emit: Callable[[Target], Value], wanted: Array, target: Target
    ) -> tuple[int, int]:
        """Return by how many steps results are off, at most, and how many of them are."""
        found = self.computed(emit, target)
        assert found.shape == wanted.shape
        steps = np.floor(wanted / target.scale + 0.5) + target.zero_point
        off = np.abs(found - np.clip(steps, *target.bounds))
        return int(off.max()), int(np.count_nonzero(off))

    def computed(self, emit: Callable[[Target], Value], target: Target) -> Array:
        """Return the integers that are computed."""
        value = emit(target)
        assert typed(value, target).dtype is target.dtype
        self.graph.set_outputs([value])
        (found,) = evaluate(self.graph, self.arrays)
        return found.astype(np.int64)


def target_of(numbers: Array, dtype: DType = DType.INT8) -> Target:
    """Return integers that hold most of the range of some numbers: the rest saturates."""
    low, high = integer_range(dtype)
    least, greatest = float(numbers.min()) * HELD, float(numbers.max()) * HELD
    if dtype is DType.INT16:
        quantization = Quantization((max(abs(least), greatest) / high,), (0,))
    else:
        scale = (greatest - least) / (high - low)
        quantization = Quantization((scale,), (int(np.clip(low - least / scale, low, high)),))
    return Target(dtype, quantization, low, high)


def constant_of(integers: Array, scale: float) -> Constant:
    """Return a constant of integers without zero point."""
    real = (integers * scale).astype(np.float32)
    return Constant(real, integers, Quantization((scale,), (0,)))
