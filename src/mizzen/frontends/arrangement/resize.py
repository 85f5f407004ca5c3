"""Larger and smaller images: which inputs an output is made of. Ref: TOSA 1.0, 2.12.1 RESIZE."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mizzen.frontends.arrangement.movement import image
from mizzen.graph import ResizeMode, Value
from mizzen.ops import Builder
from mizzen.ops.image import NUMERATOR

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Rows or columns: how many there are before and after, where output 0 is in the input, and
    how far apart two outputs are.

    places  of the nearest: which input each output is
    """

    before: int
    after: int
    start: Fraction
    step: Fraction
    places: tuple[int, ...] = ()

    def numbers(self, mode: ResizeMode) -> tuple[int, int, int, int] | None:
        """Return RESIZE's scale (two numbers), offset and border; None where it has none.

        The output's index i is at ``(i * scale_d + offset) / scale_n`` of the input; the border
        makes ``out = ((in - 1) * scale_n - offset + border) / scale_d + 1`` hold.
        """
        start, step = self.start, self.step
        if mode is ResizeMode.NEAREST:
            if self.places != self._floors():
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

    def _floors(self) -> tuple[int, ...]:
        return tuple(min(int(index * self.step), self.before - 1) for index in range(self.after))


@dataclass(frozen=True, slots=True)
class Resizing:
    """RESIZE's mode and numbers, rows before columns."""

    mode: ResizeMode
    scale: tuple[int, int, int, int]
    offset: tuple[int, int]
    border: tuple[int, int]

    @staticmethod
    def of(mode: ResizeMode, lines: Dimension, columns: Dimension) -> Resizing | None:
        """Return how RESIZE resizes; None where its scale is not a small fraction."""
        down, along = (each.numbers(mode) for each in (lines, columns))
        if down is None or along is None:
            return None
        pairs = zip(down[2:], along[2:], strict=True)
        return Resizing(mode, (*down[:2], *along[:2]), *pairs)

    @property
    def weights(self) -> int:
        """By how much interpolated sums are larger than what they are of."""
        return self.scale[0] * self.scale[2] if self.mode is ResizeMode.BILINEAR else 1

    def emit(self, b: Builder, value: Value) -> Value:
        """Add the operation to [N,C,H,W] or [N,C,W], which gives [N,H,W,C].

        Interpolated sums are larger by `weights`; they have no quantisation.
        """
        source = image(b, value)
        kept = value.quantization if self.mode is ResizeMode.NEAREST else None
        numbers = (b.shape(each) for each in (self.scale, self.offset, self.border))
        return b("RESIZE", source, *numbers, mode=self.mode, quantization=kept)
