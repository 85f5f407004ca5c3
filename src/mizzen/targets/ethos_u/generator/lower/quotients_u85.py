"""DIV of bytes on U85 as its kernel does it: a reciprocal, products, a shift for each element.

What depends on one byte alone is looked up, and so is what depends on the dividend with the sign
of the divisor, of which there are 511.

Ref: TFLite Micro, kernels/internal/reference/div.h; what the front-end says of DIV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType
from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.generator.lower.carrying import INT16, INT32, ONE, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, each, spread
from mizzen.targets.ethos_u.generator.lower.customs import custom_rule_u85
from mizzen.targets.ethos_u.generator.lower.finish import FRACTION_BITS, LINES, NARROW_RANGE
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.lower.words import Words
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Kernel,
    Map,
    OperandScale,
    Pooling,
    Rounding,
    Scale,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    ElementwiseModeU85,
    PoolingModeU85,
    RoundMode,
    RoundModeOfmU85,
)

Numbers = npt.NDArray[np.int64]
INT8 = np.dtype(np.int8)
EVERY = np.arange(-128, 128)
WIDE, SHORT = Activation(*NARROW_RANGE), Activation(-32768, 32767)

WORD_BITS = 32
DROPPED = 9
"""Bits that a raised dividend, which has 9 that count, is looked up without."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The kernel's numbers: of bytes in the order of `EVERY`, of signed dividends from -256 on."""

    zeros: Sequence[int]
    bounds: Sequence[int]
    multiplier: int
    signs: Numbers
    reciprocals: Numbers
    shifts: Numbers
    raised: Numbers
    heights: Numbers

    @staticmethod
    def of(options: dict[str, Any]) -> Kernels:
        """Read what the front-end says."""
        divisors = EVERY - options["zeros"][1]
        magnitudes = np.abs(divisors)
        dividends = range(-LINES // 2, LINES // 2)
        heights = [
            WORD_BITS - 1 - (value if value >= 0 else ~value).bit_length() for value in dividends
        ]
        raised = [value << height for value, height in zip(dividends, heights, strict=True)]
        return Kernels(
            options["zeros"],
            options["bounds"],
            options["multiplier"],
            np.where(divisors < 0, -1, 1),
            np.array(options["reciprocals"])[magnitudes],
            np.array(options["bits"])[magnitudes] - options["exponent"],
            np.array(raised),
            np.array(heights),
        )

    @property
    def activation(self) -> Activation:
        """The bounds of results."""
        low, high = self.bounds
        return Activation(low, high)

    @property
    def overflows(self) -> Numbers:
        """Of each divisor, whether a dividend of 0 is shifted by more than a word has."""
        return (self.shifts > 0).astype(np.int64)


@custom_rule_u85("tflite.DIV")
def quotient(site: Site, options: dict[str, Any]) -> Node:
    """DIV of bytes."""
    operation = site.operation
    assert isinstance(operation, Custom)
    need(bool(options), "no rule has a form of DIV")
    operands = operation.input_list
    need(len(operands) == 2 and site.root.dtype is DType.INT8, "one of its operands is a constant")
    kernels = Kernels.of(options)
    least = int(kernels.shifts.min()) + int(kernels.heights.min())
    need(least >= 0, "its quotients are shifted to the left")

    def write(emitter: Emitter, target: View) -> None:
        dividend, divisor = (
            spread(value.shape, target.shape, emitter.read(value)) for value in operands
        )
        _Quotient(emitter, site, kernels).write(dividend, divisor, target)

    return site.node(operands, write)


@dataclass(frozen=True, slots=True, eq=False)
class _Quotient:
    """Adds the operations."""

    emitter: Emitter
    site: Site
    kernels: Kernels

    def write(self, dividend: View, divisor: View, target: View) -> None:
        """Write the quotient of two views."""
        kernels, words = self.kernels, Words(self.emitter, self.site.origin)
        signs = self._bytes(divisor, kernels.signs, INT8)
        reciprocals = self._bytes(divisor, kernels.reciprocals, INT32)
        shifts = self._bytes(divisor, kernels.shifts, INT32)
        signed = self.emitter.tensor("signed", target.shape, INT16)
        by = Scale(1 << FRACTION_BITS, 0)
        self._add(ElementwiseMode.MUL, dividend, signs, signed, scale=by, zero=kernels.zeros[0])
        raised = self._lines(signed, kernels.raised >> (DROPPED + FRACTION_BITS))
        heights = self._lines(signed, kernels.heights)
        product = words(ElementwiseMode.MUL, raised, reciprocals, shift=31 - DROPPED)
        scaled = words(ElementwiseMode.MUL, product, kernels.multiplier, shift=31)
        amounts = self.emitter.tensor("amounts", target.shape, INT32)
        first = OperandScale(1, FRACTION_BITS)
        self._add(ElementwiseMode.ADD, heights, shifts, amounts, scales=(first, None))
        if not kernels.overflows.any():
            self._shifted(scaled, amounts, target, kernels.activation, kernels.zeros[2])
            return
        low = words(ElementwiseModeU85.AND, amounts, WORD_BITS - 1)
        whole = self.emitter.tensor("whole", target.shape, INT16)
        self._shifted(scaled, low, whole, SHORT, 0)
        more = self._one_more(dividend, divisor, target)
        self._add(
            ElementwiseMode.ADD,
            whole,
            more,
            target,
            activation=kernels.activation,
            scales=(None, None),
            result_zero=kernels.zeros[2],
        )

    def _one_more(self, dividend: View, divisor: View, target: View) -> View:
        """Return 1 where the dividend is 0 and its shift has more bits than a word."""
        nothing = np.equal(EVERY, self.kernels.zeros[0]).astype(np.int64)
        first = self._bytes(dividend, nothing, INT8)
        second = self._bytes(divisor, self.kernels.overflows, INT8)
        made = self.emitter.tensor("more", target.shape, INT16)
        self._add(ElementwiseMode.MUL, first, second, made, scale=ONE)
        return made

    def _shifted(
        self, values: View, amounts: View, target: View, activation: Activation, zero: int
    ) -> None:
        """Add a shift to the right, halves away from zero."""
        rounding = RoundModeOfmU85.SYMMETRIC
        self._add(
            ElementwiseMode.SHR, values, amounts, target,
            activation=activation, rounding=rounding, result_zero=zero, scale=None,
        )  # fmt: skip

    def _bytes(self, view: View, entries: Numbers, dtype: np.dtype[np.signedinteger]) -> View:
        """Add a table of bytes, in the order of `EVERY`."""
        data = entries.astype(dtype).tobytes()
        wide = dtype.itemsize > 1
        return self._looked_up(view, Activation(-128, 127, Table(data)), dtype if wide else INT8)

    def _lines(self, view: View, bases: Numbers) -> View:
        """Add a table of 16 bits, each of whose integers is at the start of its line."""
        lines = np.stack([bases, np.zeros(LINES, np.int64)], axis=1).astype(np.int16)
        return self._looked_up(view, Activation(*NARROW_RANGE, Table(lines.tobytes())), INT32)

    def _looked_up(
        self, view: View, activation: Activation, dtype: np.dtype[np.signedinteger]
    ) -> View:
        made = self.emitter.tensor("table", view.shape, dtype)
        for ifm, ofm in each(self.emitter, view, made):
            self.emitter.operations.append(
                Pooling(
                    self.site.origin,
                    PoolingModeU85.SUM,
                    ifm,
                    ofm,
                    Kernel(),
                    ONE,
                    activation,
                    rounding=RoundMode.NATURAL,
                )
            )
        return made

    def _add(
        self,
        mode: ElementwiseMode,
        first: View,
        second: View,
        made: View,
        *,
        scale: Scale | None = ONE,
        scales: tuple[OperandScale | None, OperandScale | None] | None = None,
        zero: int = 0,
        result_zero: int = 0,
        activation: Activation = SHORT,
        rounding: Rounding = RoundMode.NATURAL,
    ) -> None:
        for ifm, ifm2, ofm in each_with(self.emitter, first, second, made):
            self.emitter.operations.append(
                Elementwise(
                    self.site.origin,
                    mode,
                    Map(ifm.view, ifm.dtype, zero),
                    ifm2,
                    Map(ofm.view, ofm.dtype, result_zero),
                    activation,
                    scale=scale,
                    operand_scales=scales,
                    rounding=rounding,
                )
            )
