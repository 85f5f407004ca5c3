"""TABLE of 16 bits whose numbers are of 32: what a line gives before its fraction is taken off.

The machine's tables give 16 bits. So a line's base, its slope, and where on it an integer is, are a
table each; products and sums of these have 32 bits.

Ref: TOSA 1.0, 2.5.17 TABLE; registers of Ethos-U55, ACTIVATION.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Operation, integer_range
from mizzen.ops.elementwise import Table
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, each
from mizzen.targets.ethos_u.generator.lower.finish import (
    FRACTION_BITS,
    LINES,
    NARROW_RANGE,
    numbers,
    plain,
)
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Kernel,
    Map,
    Pooling,
    Scalar,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    PoolingMode,
    RoundMode,
)

Int64 = npt.NDArray[np.int64]
INT16, INT32 = np.dtype(np.int16), np.dtype(np.int32)
ONE = Scale(1, 0)
FRACTION = 1 << FRACTION_BITS


def is_wide_table(step: Operation) -> bool:
    """Whether an operation looks up 16 bits, and gives 32."""
    return isinstance(step, Table) and step.result.dtype is DType.INT32


def interpolated(site: Site) -> Node:
    """Return the node of a TABLE alone that gives 32 bits."""
    (table,) = site.steps
    assert isinstance(table, Table)
    entries = numbers(table.table)
    slopes, nothing = np.diff(entries), np.zeros(LINES, np.int64)
    low, high = integer_range(DType.INT16)
    gentle = low <= int(slopes.min()) and int(slopes.max()) <= high
    need(gentle, "a line of its table is too steep")

    def write(emitter: Emitter, target: View) -> None:
        lines = _Lines(site, emitter, emitter.read(site.root))
        base, slope = lines.of(entries[:-1], nothing), lines.of(slopes, nothing)
        place = lines.of(nothing, np.full(LINES, FRACTION))
        wide = [emitter.scratch(base, "line", INT32) for _ in range(2)]
        for ifm, ofm in each(emitter, base, wide[0]):
            lines.combine(ElementwiseMode.MUL, ifm, Scalar(FRACTION, INT16), ofm)
        for ifm, ifm2, ofm in each(emitter, slope, place, wide[1]):
            lines.combine(ElementwiseMode.MUL, ifm, ifm2, ofm)
        for ifm, ifm2, ofm in each(emitter, *wide, target):
            lines.combine(ElementwiseMode.ADD, ifm, ifm2, ofm)

    return site.node((site.root,), write, site.steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Adds tables of 16 bits of one view, and what combines them to 32 bits."""

    site: Site
    emitter: Emitter
    source: View

    def of(self, bases: Int64, slopes: Int64) -> View:
        """Return a table of lines, looked up."""
        made = self.emitter.scratch(self.source, "line")
        segments = np.stack([bases, slopes], axis=1).astype(np.int16)
        finish = replace(plain(DType.INT16), segments=segments)
        for ifm, ofm in each(self.emitter, self.source, made):
            self.emitter.operations.append(
                Pooling(
                    self.site.origin,
                    PoolingMode.AVERAGE,
                    ifm,
                    ofm,
                    Kernel(),
                    ONE,
                    finish.activation,
                    rounding=RoundMode.NATURAL,
                )
            )
        return made

    def combine(self, mode: ElementwiseMode, ifm: Map, ifm2: Map | Scalar, ofm: Map) -> None:
        """Add an operation that gives 32 bits."""
        operand = ONE if mode is ElementwiseMode.ADD else None
        self.emitter.operations.append(
            Elementwise(
                self.site.origin,
                mode,
                ifm,
                ifm2,
                ofm,
                Activation(*NARROW_RANGE),
                scale=ONE,
                scale_a=operand,
                scale_b=operand,
                rounding=RoundMode.NATURAL,
            )
        )
