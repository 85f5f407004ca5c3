"""What an FX node stands for while a program is lowered, and how integers come to a scale.

Ref: TOSA 1.0, 2.10.2 RESCALE, 1.11.1 apply_scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import frexp, inf
from typing import Any

import numpy as np

from mizzen.frontends.torch.program import Array
from mizzen.graph import DType, Quantization, RoundingMode, Value, integer_range
from mizzen.ops import Builder


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
        """Return the integer for a real number, half to even as PyTorch rounds, clamped."""
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
    source: Any = None
    """The FX node of the constant's integers, so that one constant is one value of the graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Integers:
    """A constant tensor of integers."""

    array: Array


@dataclass(frozen=True, slots=True)
class Plain:
    """A tensor of the graph that is no quantised number: indices, truth values, floats."""

    value: Value


Term = Quantized | Real | Pending | Constant | Integers | Plain


MULTIPLIER_BITS = 31
"""RESCALE's multiplier is in [2**30, 2**31) with scale32, in [2**14, 2**15) without."""

MULTIPLIER_BITS_SHORT = 15

SHIFT_MIN, SHIFT_MAX = 2, 62
"""The shifts that TOSA 1.0 allows."""


def multiplier_of(scale: float, bits: int = MULTIPLIER_BITS) -> tuple[int, int]:
    """Return multiplier and shift with ``multiplier / 2**shift`` nearest to `scale` > 0."""
    fraction, exponent = frexp(scale)
    multiplier = round(fraction * (1 << bits))
    if multiplier == 1 << bits:
        multiplier, exponent = multiplier >> 1, exponent + 1
    shift = bits - exponent
    while shift > SHIFT_MAX:
        multiplier, shift = (multiplier + 1) >> 1, shift - 1
    if shift < SHIFT_MIN:
        raise ValueError(f"a scale of {scale} is beyond what RESCALE can do")
    return multiplier, shift


def rescale(
    b: Builder,
    value: Value,
    scale: float | Sequence[float] | Array,
    to: DType,
    zero_points: tuple[int, int] = (0, 0),
) -> Value:
    """Add a RESCALE; `scale` is one, or one for each index of the last dimension.

    zero_points  of the input and of the output
    """
    scales = np.atleast_1d(np.asarray(scale, np.float64))
    long = value.dtype is not DType.INT48
    bits = MULTIPLIER_BITS if long else MULTIPLIER_BITS_SHORT
    pairs = [multiplier_of(float(item), bits) for item in scales]
    kind = DType.INT32 if long else DType.INT16
    return b(
        "RESCALE",
        value,
        b.constant([multiplier for multiplier, _ in pairs], kind),
        b.constant([shift for _, shift in pairs], DType.INT8),
        b.constant([zero_points[0]], value.dtype),
        b.constant([zero_points[1]], to),
        scale32=long,
        rounding_mode=RoundingMode.SINGLE_ROUND,
        per_channel=len(pairs) > 1,
    )


def requantize(
    b: Builder,
    value: Value,
    scale: float | Sequence[float] | Array,
    target: Target,
    zero_point: int = 0,
) -> Value:
    """Turn integers of a given scale (the last dimension's, if several) into the target's."""
    ratio = np.asarray(scale, np.float64) / target.scale
    same = (
        value.dtype is target.dtype
        and zero_point == target.zero_point
        and bool(np.all(ratio == 1.0))
    )
    if not same:
        value = rescale(b, value, ratio, target.dtype, (zero_point, target.zero_point))
    return clamped(b, value, target)


def as_target(b: Builder, x: Real, target: Target) -> Value:
    """Return a real tensor's integers for a target."""
    return requantize(b, x.value, x.scale, target, x.zero_point)


def clamped(b: Builder, value: Value, target: Target) -> Value:
    """Add a CLAMP if the target's bounds are tighter than its type's.

    16-bit numbers keep their least value, -32768, which a symmetric range leaves out: it differs
    from -32767 by one step, and only where the tensor saturates.
    """
    low, high = target.bounds
    least, greatest = integer_range(target.dtype)
    if low == -greatest and target.dtype is DType.INT16:
        low = least
    if (low, high) == (least, greatest):
        return typed(value, target)
    return typed(b("CLAMP", value, min_val=low, max_val=high), target)


def typed(value: Value, target: Target) -> Value:
    """Say how a value's integers stand for real numbers."""
    value.type = value.type.quantized(target.quantization)
    return value
