"""SOFTMAX of bytes as TFLite Micro's kernel computes it, made of 26 operations; of 16 bits in
`softmax_lines`.

Exponentials are a table of 32 bits by the distance from a row's greatest, which the front-end
gives: -255 to 0. They are divided by their sum by three steps of Newton's method, in the numbers of
gemmlowp: 31 bits behind the point, or 29.

Ref: TFLite Micro, kernels/internal/reference/softmax.h; gemmlowp, fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Value
from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.generator.lower.carrying import INT32, ONE, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.customs import custom_rule
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.softmax_lines import MOST_SUMMED as MOST_LINES
from mizzen.targets.ethos_u.generator.lower.softmax_lines import LinesOf
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.lower.words import Words, greatest_of_rows, sums_of_rows
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Scalar,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    Arch,
    ClipRange,
    ElementwiseMode,
    RoundMode,
)

Int64 = npt.NDArray[np.int64]
Composed = Callable[[Emitter, Origin, View, View], None]
"""Adds the operations that compute rows [N, C] of others."""

SUM_BITS = 12
"""Integer bits of the sum of exponentials."""

MOST_SUMMED = (1 << SUM_BITS) - 1
"""Exponentials of up to 1 that 12 integer bits can hold the sum of."""

FEWEST_LOOKED_UP = 4096
"""Elements from which U85 looks up their share of the sum, too: to shift words takes it longer, to
load a table half a thousand cycles."""

LOW, HIGH = -128, 127
NEWTON_START, NEWTON_SLOPE, ONE_29 = 1515870810, -1010580540, 1 << 29
"""48/17, -32/17, and 1, of two integer bits."""

STEPS = 3
OUTPUT_SHIFT = 31 - 8
"""Bits behind the point that a byte of the result does not have."""


@custom_rule("tflite.SOFTMAX")
def softmax(site: Site, options: dict[str, Any]) -> Node:
    """SOFTMAX along the last axis of bytes."""
    operation = site.operation
    assert isinstance(operation, Custom)
    (source,) = operation.input_list
    if source.dtype is DType.INT16:
        lines = LinesOf.read(options)
        need(source.shape[-1] <= MOST_LINES, f"its rows have more than {MOST_LINES} elements")
        return _of_rows(site, source, lines.write)
    need(source.dtype is DType.INT8 and site.root.dtype is DType.INT8, "it is not of INT8")
    entries = np.array(options.get("exponentials", ()), np.int64)
    need(entries.shape == (256,), "its kernel is another than for INT8")
    depth = source.shape[-1]
    need(depth <= MOST_SUMMED, f"its rows have more than {MOST_SUMMED} elements")

    return _of_rows(site, source, partial(_composed, entries))


def _of_rows(site: Site, source: Value, compose: Composed) -> Node:
    """Return the node of something that is computed of each row along the last axis."""
    depth = source.shape[-1]

    def write(emitter: Emitter, target: View) -> None:
        rows = source.type.elements // depth
        view = emitter.read(source)
        seen, made = view.reshaped((rows, depth)), target.reshaped((rows, depth))
        if seen is None:
            seen = emitter.copied(view, site.origin).reshaped((rows, depth))
        place = made or emitter.tensor("softmax", (rows, depth), emitter.dtype(target))
        assert seen is not None
        compose(emitter, site.origin, seen, place)
        if made is None:
            shaped = place.reshaped(target.shape)
            assert shaped is not None
            emitter.copy(shaped, target, site.origin)

    return site.node((source,), write)


def _composed(entries: Int64, emitter: Emitter, origin: Origin, view: View, target: View) -> None:
    """Add the operations for rows [N, C]."""
    words, mode = Words(emitter, origin), ElementwiseMode
    greatest = greatest_of_rows(emitter, origin, view)
    powers = _exponentials(emitter, origin, entries, view, greatest)
    if emitter.arch is Arch.U85 and view.elements >= FEWEST_LOOKED_UP:
        coarse = _exponentials(emitter, origin, _coarse(entries), view, greatest)
    else:
        coarse = words(mode.SHR, powers, SUM_BITS)
    total = sums_of_rows(emitter, origin, coarse)
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


def _coarse(entries: Int64) -> Int64:
    """Return exponentials with as many bits as their sum has behind the point."""
    return (entries + (1 << SUM_BITS >> 1)) >> SUM_BITS


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
