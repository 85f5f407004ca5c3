"""SOFTMAX of 16 bits as TFLite Micro's kernel computes it, made of 16 operations.

Exponentials, and the reciprocal of their sum, are tables of lines; the rest is in 32 bits.

Ref: TFLite Micro, kernels/internal/reference/softmax.h, SoftmaxInt16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.lower.carrying import INT16, INT32, ONE, by_number, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, each
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.lower.words import Words, greatest_of_rows, sums_of_rows
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Kernel,
    Pooling,
    Scale,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    PoolingMode,
    RoundMode,
)

LOW, HIGH = -32768, 32767
MOST_RAISED = 14
"""Bits by which distances of 16 bits are shifted left at most."""

MOST_SUMMED = 1 << 16
"""Exponentials of up to 2**15 that 32 bits hold the sum of."""

UNIT_BITS = 14
"""Bits that the reciprocal's table does not see of a sum whose first bit is the 31st."""

SEEN_START = -((1 << 15) + (1 << 16))
"""What makes sums of 1 to 2 in 16 bits the integers of the reciprocal's table."""


@dataclass(frozen=True, slots=True, eq=False)
class LinesOf:
    """What the kernel computes with.

    multiplier, shift  distances are multiplied with one, and shifted right by the other
    exp, reciprocal    base and slope of the 512 lines of each table, int16 [512, 2]
    """

    multiplier: int
    shift: int
    exp: npt.NDArray[np.int16]
    reciprocal: npt.NDArray[np.int16]

    @classmethod
    def read(cls, options: dict[str, Any]) -> LinesOf:
        """Read what the front-end says; refused where the machine cannot do it."""
        need(bool(options), "its kernel is another than for INT16")
        exponent = int(options["exponent"])
        need(exponent <= MOST_RAISED, "its distances have more than 32 bits")
        tables = [np.array(options[name], np.int64) for name in ("exp", "reciprocal")]
        lines = [np.stack([row[:-1], np.diff(row)], axis=1) for row in tables]
        need(all(int(np.abs(row).max()) < 1 << 15 for row in lines), "a line of it is too steep")
        first, second = (row.astype(np.int16) for row in lines)
        return cls(int(options["multiplier"]), 31 - exponent, first, second)

    def write(self, emitter: Emitter, origin: Origin, view: View, target: View) -> None:
        """Add the operations for rows [N, C]."""
        words, mode = Words(emitter, origin), ElementwiseMode
        step = _Step(emitter, origin)
        powers = step.looked_up(self.exp, self._distances(words, step, view))
        total = sums_of_rows(emitter, origin, powers)
        zeros = words(mode.CLZ, total)
        whole = words(mode.SHL, total, words(mode.SUB, zeros, 1))
        seen = step.combined(mode.ADD, words(mode.SHR, whole, UNIT_BITS), SEEN_START, INT16)
        inverse = step.looked_up(self.reciprocal, seen)
        product = step.combined(mode.MUL, powers, inverse, INT32)
        bits = words(mode.SUB, zeros, 31, turned=True)
        for ifm, ifm2, ofm in each_with(emitter, product, bits, target):
            narrow, rounding = Activation(0, HIGH), RoundMode.NATURAL
            emitter.operations.append(
                Elementwise(origin, mode.SHR, ifm, ifm2, ofm, narrow, rounding=rounding)
            )

    def _distances(self, words: Words, step: _Step, view: View) -> View:
        """Return how far elements are from the greatest, as integers of the table."""
        emitter, mode = step.emitter, ElementwiseMode
        greatest = greatest_of_rows(emitter, step.origin, view)
        apart = step.combined(mode.SUB, view, greatest, INT32)
        scaled = emitter.scratch(apart, "scaled")
        factor = by_number(emitter, self.multiplier)
        for ifm, ifm2, ofm in each_with(emitter, apart, factor, scaled):
            wide, scale = Activation(*NARROW_RANGE), Scale(1, self.shift)
            emitter.operations.append(
                Elementwise(step.origin, mode.MUL, ifm, ifm2, ofm, wide, scale=scale)
            )
        return step.combined(mode.ADD, scaled, HIGH, INT16)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """Adds operations that give other types than those on 32 bits."""

    emitter: Emitter
    origin: Origin

    def combined(
        self, mode: ElementwiseMode, first: View, second: View | int, dtype: np.dtype[Any]
    ) -> View:
        """Return two views combined, or a view and a number, in a type that it saturates at."""
        made = self.emitter.scratch(first, mode.name.lower(), dtype)
        operand = by_number(self.emitter, second) if isinstance(second, int) else second
        narrow = Activation(LOW, HIGH)
        own = ONE if mode is not ElementwiseMode.MUL else None
        for ifm, ifm2, ofm in each_with(self.emitter, first, operand, made):
            self.emitter.operations.append(
                Elementwise(
                    self.origin,
                    mode,
                    ifm,
                    ifm2,
                    ofm,
                    narrow,
                    scale=ONE,
                    scale_a=own,
                    scale_b=own,
                    rounding=RoundMode.NATURAL,
                )
            )
        return made

    def looked_up(self, lines: npt.NDArray[np.int16], view: View) -> View:
        """Return what a table of lines says of each element."""
        made = self.emitter.scratch(view, "looked_up")
        table = Activation(LOW, HIGH, Table(lines.tobytes()))
        for ifm, ofm in each(self.emitter, view, made):
            self.emitter.operations.append(
                Pooling(
                    self.origin,
                    PoolingMode.AVERAGE,
                    ifm,
                    ofm,
                    Kernel(),
                    ONE,
                    table,
                    rounding=RoundMode.NATURAL,
                )
            )
        return made
