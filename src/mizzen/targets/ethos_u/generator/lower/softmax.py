"""SOFTMAX of bytes as TFLite Micro's kernel computes it, made of 26 operations.

Exponentials are a table of 32 bits by the distance from a row's greatest, which the front-end
gives: -255 to 0. They are divided by their sum by three steps of Newton's method, in the numbers of
gemmlowp: 31 bits behind the point, or 29.

Ref: TFLite Micro, kernels/internal/reference/softmax.h; gemmlowp, fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph import DType
from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.generator.lower.carrying import ONE, by_number, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, each
from mizzen.targets.ethos_u.generator.lower.customs import custom_rule
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, rows
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Kernel,
    Pooling,
    Scalar,
    Scale,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRange,
    ElementwiseMode,
    PoolingMode,
    RoundMode,
)

Int64 = npt.NDArray[np.int64]
INT32 = np.dtype(np.int32)

SUM_BITS = 12
"""Integer bits of the sum of exponentials."""

MOST_SUMMED = (1 << SUM_BITS) - 1
"""Exponentials of up to 1 that 12 integer bits can hold the sum of."""

LOW, HIGH = -128, 127
NEWTON_START, NEWTON_SLOPE, ONE_29 = 1515870810, -1010580540, 1 << 29
"""48/17, -32/17, and 1, of two integer bits."""

STEPS = 3
OUTPUT_SHIFT = 31 - 8
"""Bits behind the point that a byte of the result does not have."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Adds operations on integers of 32 bits; each gives a new tensor."""

    emitter: Emitter
    origin: Origin

    def __call__(
        self,
        mode: ElementwiseMode,
        first: View,
        second: View | int | None = None,
        *,
        shift: int = 0,
        turned: bool = False,
    ) -> View:
        """Return first and second combined; shifted right by `shift` after a product."""
        made = self.emitter.tensor(mode.name.lower(), first.shape, INT32)
        activation = Activation(*NARROW_RANGE)
        operand = by_number(self.emitter, second) if isinstance(second, int) else second
        summed = mode in (ElementwiseMode.ADD, ElementwiseMode.SUB)
        scale = Scale(1, shift) if mode is ElementwiseMode.MUL else ONE if summed else None
        if operand is None:
            rows = [(ifm, None, ofm) for ifm, ofm in each(self.emitter, first, made)]
        else:
            rows = each_with(self.emitter, first, operand, made)
        for ifm, ifm2, ofm in rows:
            self.emitter.operations.append(
                Elementwise(
                    self.origin,
                    mode,
                    ifm,
                    ifm2,
                    ofm,
                    activation,
                    reversed=turned,
                    scale=scale,
                    scale_a=ONE if summed else None,
                    scale_b=ONE if summed else None,
                    rounding=RoundMode.NATURAL,
                )
            )
        return made


@custom_rule("tflite.SOFTMAX")
def softmax(site: Site, options: dict[str, Any]) -> Node:
    """SOFTMAX along the last axis of bytes."""
    operation = site.operation
    assert isinstance(operation, Custom)
    (source,) = operation.input_list
    need(source.dtype is DType.INT8 and site.root.dtype is DType.INT8, "it is not of INT8")
    entries = np.array(options.get("exponentials", ()), np.int64)
    need(entries.shape == (256,), "its kernel is another than for INT8")
    depth = source.shape[-1]
    need(depth <= MOST_SUMMED, f"its rows have more than {MOST_SUMMED} elements")

    def write(emitter: Emitter, target: View) -> None:
        """Append the operations that write the result into `target`."""
        rows = source.type.elements // depth
        view = emitter.read(source)
        seen, made = view.reshaped((rows, depth)), target.reshaped((rows, depth))
        if seen is None:
            seen = emitter.copied(view, site.origin).reshaped((rows, depth))
        place = made or emitter.tensor("softmax", (rows, depth), emitter.dtype(target))
        assert seen is not None
        _composed(emitter, site.origin, entries, seen, place)
        if made is None:
            shaped = place.reshaped(target.shape)
            assert shaped is not None
            emitter.copy(shaped, target, site.origin)

    return site.node((source,), write)


def _composed(emitter: Emitter, origin: Origin, entries: Int64, view: View, target: View) -> None:
    """Add the operations for rows [N, C]."""
    words, mode = Words(emitter, origin), ElementwiseMode
    count = view.shape[0]
    greatest = _greatest(emitter, origin, view)
    powers = _exponentials(emitter, origin, entries, view, greatest)
    coarse = words(mode.SHR, powers, SUM_BITS)
    total = emitter.tensor("sum", (count, 1), INT32)
    for one, made in rows(coarse, total):
        emitter.operations.append(
            Pooling(
                origin,
                PoolingMode.REDUCE_SUM,
                emitter.map(one),
                emitter.map(made),
                Kernel(),
                ONE,
                Activation(*NARROW_RANGE),
                rounding=RoundMode.NATURAL,
            )
        )
    zeros = words(mode.CLZ, total)
    bits = words(mode.SUB, zeros, OUTPUT_SHIFT + SUM_BITS, turned=True)
    half = words(mode.SHL, total, words(mode.SUB, zeros, 1))
    inverse = words(mode.ADD, words(mode.MUL, half, NEWTON_SLOPE, shift=31), NEWTON_START)
    for _ in range(STEPS):
        rest = words(mode.SUB, words(mode.MUL, half, inverse, shift=31), ONE_29, turned=True)
        step = words(mode.MUL, words(mode.MUL, inverse, rest, shift=31), 4)
        inverse = words(mode.ADD, inverse, step)
    # The inverse has two integer bits, one of them for nothing: it is doubled on the way.
    product = words(mode.MUL, powers, inverse, shift=30)
    for ifm, ifm2, ofm in each_with(emitter, product, bits, target):
        zeroed = type(ofm)(ofm.view, ofm.dtype, LOW)
        emitter.operations.append(
            Elementwise(
                origin,
                mode.SHR,
                ifm,
                ifm2,
                zeroed,
                Activation(LOW, HIGH),
                rounding=RoundMode.NATURAL,
            )
        )


def _greatest(emitter: Emitter, origin: Origin, view: View) -> View:
    """Add what finds the greatest of each row: a window as wide as a row, of one channel."""
    rows, depth = view.shape
    made = emitter.tensor("greatest", (rows, 1), emitter.dtype(view))
    seen = View(view.tensor, view.offset, (rows, depth, 1), (*view.strides, 1))
    written = View(made.tensor, made.offset, (rows, 1, 1), (1, 1, 1))
    emitter.operations.append(
        Pooling(
            origin,
            PoolingMode.MAX,
            emitter.map(seen),
            emitter.map(written),
            Kernel(1, depth),
            ONE,
            Activation(LOW, HIGH),
        )
    )
    return made


def _exponentials(
    emitter: Emitter, origin: Origin, entries: Int64, view: View, greatest: View
) -> View:
    """Add what looks up the exponential of each element's distance from the greatest."""
    made = emitter.tensor("exponentials", view.shape, INT32)
    table = Table(entries.astype(np.int32).tobytes())
    activation = Activation(LOW, HIGH, table, "RELU", ClipRange.FORCE_INT8)
    for ifm, ifm2, ofm in each_with(emitter, view, greatest, made):
        assert not isinstance(ifm2, Scalar)
        emitter.operations.append(
            Elementwise(
                origin,
                ElementwiseMode.SUB,
                ifm,
                ifm2,
                type(ofm)(ofm.view, ofm.dtype, HIGH),
                activation,
                scale=ONE,
                scale_a=ONE,
                scale_b=ONE,
                rounding=RoundMode.NATURAL,
            )
        )
    return made
