"""RESIZE on U85, which has an operation of it: interpolation in integers, or the nearest pixel.

The machine shifts what it interpolates left by 16 bits before it scales it.

Ref: registers of Ethos-U85, RESIZE; that shift is verified by streams of Vela.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mizzen.graph import DType, ResizeMode
from mizzen.ops.image import Resize as ResizeOperation
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.finish import MOST_SHIFT, Finish, numbers
from mizzen.targets.ethos_u.generator.lower.planning import Site, input_zero, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.resizing import doublings_of
from mizzen.targets.ethos_u.generator.lower.sums_u85 import MOST_MULTIPLIER
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.operations import Resize, Scale, Steps
from mizzen.targets.ethos_u.machine.commands_values import ResizeModeU85, RoundMode

VALUE_BITS = 16
ACCUMULATOR_BITS = 48
OFFSET_LIMIT = 1 << 11
"""Offsets have 12 bits and a sign."""

ALONE = 31
"""Shifts up to this round once, in either mode."""

BITS = {DType.INT8: 8, DType.INT16: 16}


@dataclass(frozen=True, slots=True)
class Axis:
    """Where an axis is read: from pixel `start` on, by steps; sums are less by a factor."""

    start: int
    steps: Steps
    factor: int

    def finer(self) -> Axis:
        """Return the axis in steps of half the size, whose sums are twice as large."""
        steps = self.steps
        need(-OFFSET_LIMIT <= 2 * steps.offset < OFFSET_LIMIT, "its first sample lies too far")
        doubled = Steps(2 * steps.scale, 2 * steps.step, 2 * steps.offset)
        return Axis(self.start, doubled, self.factor // 2)


def axis_of(scale: Sequence[int], offset: int) -> Axis:
    """Return how the machine reads an axis; what lies before the first place is left out."""
    unit, step = scale
    start = max(offset // unit, 0)
    offset -= start * unit
    common = gcd(unit, step, offset)
    need(-OFFSET_LIMIT <= offset // common < OFFSET_LIMIT, "its first sample lies too far")
    return Axis(start, Steps(unit // common, step // common, offset // common), common)


@rule_u85(ResizeOperation)
def resized(site: Site) -> Node:
    """RESIZE, and what follows it; nearest pixels twice as many are left to what doubles."""
    operation = site.operation
    assert isinstance(operation, ResizeOperation)
    source, nearest = operation.input, operation.mode is ResizeMode.NEAREST
    need(source.dtype in BITS, "it resizes no narrow integers")
    need(not nearest or doublings_of(operation) != 1, "its pixels are doubled")
    scale, offset = numbers(operation.scale).tolist(), numbers(operation.offset).tolist()
    rows, columns = axis_of(scale[:2], offset[0]), axis_of(scale[2:], offset[1])
    finish = site.finish(scales=True)
    if not nearest:
        rows, columns = _fine(rows, columns, finish)
    area = 1 if nearest else rows.steps.scale * columns.steps.scale
    fits = area << (BITS[source.dtype] + VALUE_BITS) < 1 << ACCUMULATOR_BITS
    need(fits, "its sums have more than 48 bits")
    by = _scale(finish, 1 if nearest else rows.factor * columns.factor)
    zero = input_zero(site) if nearest else 0

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(source)
        if not pixels(view):
            view = emitter.copied(view, site.origin)
        for image, made in zip(images(view), images(target), strict=True):
            height, width = image.shape[0] - rows.start, image.shape[1] - columns.start
            seen = image.part(0, rows.start, height).part(1, columns.start, width)
            emitter.operations.append(
                Resize(
                    site.origin,
                    ResizeModeU85.NEAREST if nearest else ResizeModeU85.BILINEAR,
                    emitter.map(seen, zero),
                    emitter.map(made, finish.zero_point),
                    rows.steps,
                    columns.steps,
                    by,
                    finish.activation,
                    finish.rounding,
                )
            )

    return site.node((source,), write)


def _fine(rows: Axis, columns: Axis, finish: Finish) -> tuple[Axis, Axis]:
    """Return axes as fine as the scale's multiplier of 31 bits needs them to be."""
    while rows.factor * columns.factor * finish.scale.multiplier >> VALUE_BITS > MOST_MULTIPLIER:
        if not rows.factor & 1:
            rows = rows.finer()
        else:
            need(not columns.factor & 1, "its scale is too large")
            columns = columns.finer()
    return rows, columns


def _scale(finish: Finish, factor: int) -> Scale:
    """Return the scale of sums that are less by a factor and shifted left by the machine."""
    multiplier, shift = finish.scale.multiplier * factor, finish.scale.shift
    if finish.rounding is RoundMode.DBL and shift > ALONE:
        whole = not multiplier & ((1 << VALUE_BITS) - 1)
        need(whole, "it rounds twice, at another bit")
        multiplier >>= VALUE_BITS
    else:
        shift += VALUE_BITS
        while not multiplier & 1 and shift and multiplier:
            multiplier, shift = multiplier >> 1, shift - 1
        need(finish.rounding is RoundMode.NATURAL or shift <= ALONE, "it rounds twice")
    need(multiplier <= MOST_MULTIPLIER and shift <= MOST_SHIFT, "its scale has too many bits")
    return Scale(multiplier, shift)
