"""What a real tensor stands for on its way to integers, and the integers it is to become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Quantization, Value

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Target:
    """The integers that a real tensor is quantised to, and the real bounds that it is clamped to.

    quant_min, quant_max are the least and greatest integer that the model allows.
    """

    dtype: DType
    quantization: Quantization
    quant_min: int
    quant_max: int
    low: float = -inf
    high: float = inf

    @property
    def scale(self) -> float:
        """The scale of the integers."""
        return self.quantization.scale

    @property
    def zero_point(self) -> int:
        """The integer that stands for zero."""
        return self.quantization.zero_point

    def quantize(self, real: float) -> int:
        """Return the integer for a real number, half to even, clamped."""
        if real == -inf:
            return self.quant_min
        if real == inf:
            return self.quant_max
        rounded = int(np.rint(real / self.scale)) + self.zero_point
        return min(max(rounded, self.quant_min), self.quant_max)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and greatest integer that the clamped tensor can have."""
        return self.quantize(self.low), self.quantize(self.high)


@dataclass(frozen=True, slots=True)
class Quantized:
    """A tensor of integers in the graph."""

    value: Value


@dataclass(frozen=True, slots=True)
class Real:
    """A real tensor that a tensor of integers in the graph stands for (with a quantisation)."""

    value: Value

    @property
    def quantization(self) -> Quantization:
        """How the integers stand for real numbers."""
        assert self.value.quantization is not None
        return self.value.quantization

    @property
    def scale(self) -> float:
        """The scale of the integers."""
        return self.quantization.scale

    @property
    def zero_point(self) -> int:
        """The integer that stands for zero."""
        return self.quantization.zero_point


@dataclass(frozen=True, slots=True)
class Pending:
    """A real tensor that was computed, of which no integers exist yet.

    emit       adds the operations that give its integers, for a target
    low, high  what an activation clamps it to
    """

    emit: Callable[[Target], Value]
    shape: tuple[int, ...]
    low: float = -inf
    high: float = inf

    def clamped(self, low: float, high: float) -> Pending:
        """Clamp the tensor, besides what it is clamped to already."""
        return replace(
            self,
            low=min(max(self.low, low), high),
            high=max(min(self.high, high), low),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant real tensor; `integers` with `quantization` where the model quantises it.

    real      the real numbers, float32
    integers  what stands for them, int8, int16 or int32
    """

    real: Array
    integers: Array | None = None
    quantization: Quantization | None = None
    source: object = None
    """What the front-end knows the constant by, so that it is one value of the graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Integers:
    """A constant tensor of integers."""

    array: Array


@dataclass(frozen=True, slots=True)
class Plain:
    """A tensor of the graph that is not a quantised number: indices, truth values, floats."""

    value: Value


@dataclass(frozen=True, slots=True)
class Wide:
    """Integers of 64 bits, of which the graph has the 32 that an NPU takes."""

    value: Value


Term = Quantized | Real | Pending | Constant | Integers | Plain | Wide
