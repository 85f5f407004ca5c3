"""Constant matrices of recurrent layers: integers of 8 bits, or sums of two.

Quantisers leave the weights of recurrent layers in floating point. Such a matrix is the sum of two
of 8 bits, one of 256 times the scale of the other, so each weight has 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.recurrence import Recurrence
from mizzen.frontends.quantized.terms import Constant, Real

MOST_OF_16_BITS = 127 << 8
"""The greatest number whose upper half, rounded, has 8 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Integers of 8 bits, [outputs, inputs], and their scales: by output, or one for all."""

    integers: Array
    scales: Array


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A matrix, the sum of one or two parts.

    reach  the greatest sum of each output, for inputs of at most 1
    """

    parts: tuple[Part, ...]
    reach: Array


def matrix_of(constant: Constant, direction: int) -> Matrix:
    """Return a direction's matrix of a constant, [directions, outputs, inputs]."""
    real = constant.real[direction].astype(np.float64)
    reach = np.abs(real).sum(axis=1)
    scales = _scales(constant, direction)
    if constant.integers is None or scales is None:
        return Matrix(_halves(real), reach)
    return Matrix((Part(constant.integers[direction], scales),), reach)


def _scales(constant: Constant, direction: int) -> Array | None:
    """Return the scales of integers that can be taken as they are; None where they cannot."""
    integers, quantization = constant.integers, constant.quantization
    if integers is None or quantization is None or integers.dtype != np.int8:
        return None
    if any(quantization.zero_points) or quantization.axis not in (None, 0, 1):
        return None
    scales = np.asarray(quantization.scales, np.float64)
    return scales[direction : direction + 1] if quantization.axis == 0 else scales


def _halves(real: Array) -> tuple[Part, Part]:
    """Return numbers as sums of two integers, with a scale for each output."""
    most = np.abs(real).max(axis=1, initial=0.0)
    scales = np.where(most > 0, most, 1.0) / MOST_OF_16_BITS
    whole = np.rint(real / scales[:, None]).astype(np.int64)
    upper = (whole + 128) >> 8
    return Part(upper, scales * 256), Part(whole - (upper << 8), scales)


@dataclass(frozen=True, eq=False)
class FineRecurrence(Recurrence):
    """A recurrence whose weight has a second part.

    lower  the same recurrence with that part as its weight, and no bias
    """

    lower: Recurrence | None = None

    def recurrent(self, hidden: Real, index: int = 0, count: int | None = None) -> Real:
        """Multiply the hidden state by the weight of some gates."""
        upper = super().recurrent(hidden, index, count)
        if self.lower is None:
            return upper
        return self.sum(upper, self.lower.recurrent(hidden, index, count), "gates")
