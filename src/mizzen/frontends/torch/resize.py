"""Larger and smaller images: which inputs an output is made of. Ref: TOSA 1.0, 2.12.1 RESIZE."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import image
from mizzen.frontends.torch.call import Call
from mizzen.graph import ResizeMode, Value
from mizzen.ops.image import NUMERATOR

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Rows or columns: how many there are before and after, where output 0 is in the input, and
    how far apart two outputs are."""

    before: int
    after: int
    start: Fraction
    step: Fraction

    def numbers(self, mode: ResizeMode) -> tuple[int, int, int, int] | None:
        """Return RESIZE's scale (two numbers), offset and border; None where it has none.

        The output's index i is at ``(i * scale_d + offset) / scale_n`` of the input; the border
        makes ``out = ((in - 1) * scale_n - offset + border) / scale_d + 1`` hold.
        """
        start, step = self.start, self.step
        if mode is ResizeMode.NEAREST:
            if self.nearest() != self._floors():
                return None
            start = self._nearest_start()
        if self.after == 1:
            step = step or Fraction(1)
        if step <= 0:
            return None
        numerator = np.lcm(start.denominator, step.denominator).item()
        scale_d, offset = int(step * numerator), int(start * numerator)
        border = (self.after - 1) * scale_d - (self.before - 1) * numerator + offset
        fits = (
            numerator <= NUMERATOR
            and 0 < scale_d < 16 * numerator
            and -numerator <= offset < 16 * numerator
            and -16 * numerator <= border < numerator
        )
        return (numerator, scale_d, offset, border) if fits else None

    def _nearest_start(self) -> Fraction:
        """Return where output 0 is, so that TOSA's rounding to the nearest input rounds down.

        Where the scale is whole, the input is also the one whose centre is nearest, the form that
        Ethos-U55 has.
        """
        return HALF * self.step - HALF if self.step.numerator == 1 else -HALF

    def nearest(self) -> list[int]:
        """Return the inputs that PyTorch takes: positions are products in float32, cut off."""
        places = np.arange(self.after, dtype=np.float32) * np.float32(float(self.step))
        return np.minimum(np.floor(places), self.before - 1).astype(int).tolist()

    def _floors(self) -> list[int]:
        return [min(int(index * self.step), self.before - 1) for index in range(self.after)]


def dimensions(call: Call[Any], mode: ResizeMode) -> tuple[Dimension, Dimension]:
    """Return rows and columns; one dimension is columns."""
    given, spatial = call.shape_of(call.first), len(call.shape) - 2
    before, after = (1, *given[2:])[-2:], (1, *call.shape[2:])[-2:]
    lines, columns = (
        _dimension(call, mode, before[axis], after[axis], axis - (2 - spatial)) for axis in (0, 1)
    )
    return lines, columns


def _dimension(call: Call[Any], mode: ResizeMode, before: int, after: int, axis: int) -> Dimension:
    """Say where outputs are.

    PyTorch's nearest takes input ``floor(i * step)``. The others let corners of images meet, or
    centres of corner pixels (``align_corners``).
    """
    step = Fraction(before, after)
    if mode is ResizeMode.NEAREST:
        return Dimension(before, after, Fraction(0), _given_step(call, axis) or step)
    if call["align_corners"]:
        step = Fraction(before - 1, after - 1) if after > 1 else Fraction(0)
        return Dimension(before, after, Fraction(0), step)
    step = _given_step(call, axis) or step
    return Dimension(before, after, HALF * step - HALF, step)


def _given_step(call: Call[Any], axis: int) -> Fraction | None:
    """Return 1 / scale where the model says a scale."""
    factors: list[float | None] | None = call.arguments.get("scale_factors")
    if factors is None and "scales" in call.arguments:
        factors = [call["scales"]]
    elif factors is None:
        factors = [call.arguments.get("scales_h"), call.arguments.get("scales_w")]
    factor = factors[axis] if 0 <= axis < len(factors) else None
    return None if factor is None else 1 / Fraction(float(factor)).limit_denominator(1 << 20)


@dataclass(frozen=True, slots=True)
class Resizing:
    """RESIZE's mode and numbers, rows before columns."""

    mode: ResizeMode
    scale: tuple[int, int, int, int]
    offset: tuple[int, int]
    border: tuple[int, int]

    def emit(self, call: Call[Any], value: Value) -> Value:
        """Add the operation to [N,C,H,W] or [N,C,W], which gives [N,H,W,C].

        Interpolated sums are larger by the product of the scales' first numbers; they have no
        quantisation.
        """
        b = call.b
        source = image(b, value, len(call.shape) - 2)
        kept = value.quantization if self.mode is ResizeMode.NEAREST else None
        numbers = (b.shape(each) for each in (self.scale, self.offset, self.border))
        return b("RESIZE", source, *numbers, mode=self.mode, quantization=kept)


def resizing(call: Call[Any], mode: ResizeMode) -> Resizing | None:
    """Return how RESIZE does what a node does; None where its scale is not a small fraction."""
    lines, columns = (each.numbers(mode) for each in dimensions(call, mode))
    if lines is None or columns is None:
        return None
    pairs = zip(lines[2:], columns[2:], strict=True)
    return Resizing(mode, (*lines[:2], *columns[:2]), *pairs)
