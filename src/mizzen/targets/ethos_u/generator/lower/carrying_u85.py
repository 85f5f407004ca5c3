"""What carries a finish on U85: what every Ethos-U has, and forms that only U85 needs or has.

These are conversions of truths, tables of 16 bits that give 32, bytes taken as unsigned, and 32
bits whose channels have scales of their own.

Ref: TOSA 1.0, 2.5.17 TABLE and 2.13.2 RESCALE; registers of Ethos-U85, ACTIVATION.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mizzen.graph import DType, Operation
from mizzen.ops.elementwise import Table as TableOperation
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.targets.ethos_u.generator.lower.carrying import ONE, by_channels, carried
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.convolutions import scaled_by_channels
from mizzen.targets.ethos_u.generator.lower.finish import (
    LINES,
    NARROW_RANGE,
    WIDE,
    plain,
    rounding_of,
)
from mizzen.targets.ethos_u.generator.lower.lines import is_wide_table
from mizzen.targets.ethos_u.generator.lower.narrowing import narrows
from mizzen.targets.ethos_u.generator.lower.orders import each_stored
from mizzen.targets.ethos_u.generator.lower.planning import Site, input_zero
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.scaling import number, numbers
from mizzen.targets.ethos_u.generator.lower.truths_u85 import converted
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Kernel,
    Map,
    Pooling,
    Scale,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRangeU85,
    PoolingModeU85,
    RoundMode,
)

UINT8 = np.dtype(np.uint8)


def carried_on_u85(site: Site) -> Node:
    """Return the node that reads the root from memory and does the steps."""
    first = site.steps[0]
    if isinstance(first, Cast) and DType.BOOL in (first.input.dtype, first.result.dtype):
        return converted(site)
    if len(site.steps) == 1 and is_wide_table(first):
        return _looked_up(site, first)
    if len(site.steps) == 1 and narrows(first):
        return _narrowed(site, first)
    if isinstance(first, Rescale) and (first.input_unsigned or first.output_unsigned):
        return _unsigned(site, first)
    if isinstance(first, Rescale) and len(numbers(first.multiplier)) > 1:
        return _by_channels(site, first)
    return carried(site)


def _looked_up(site: Site, step: Operation) -> Node:
    """TABLE of 16 bits that gives 32: the machine's lines before their fraction is taken off."""
    assert isinstance(step, TableOperation)
    entries = numbers(step.table)
    slopes = np.diff(entries)
    need(int(np.abs(slopes).max()) < 1 << 15, "a line of its table is too steep")
    assert len(slopes) == LINES
    lines = np.stack([entries[:-1], slopes], axis=1).astype(np.int16)
    return _passed(site, Activation(*NARROW_RANGE, Table(lines.tobytes())))


def _narrowed(site: Site, step: Operation) -> Node:
    """CAST to a narrower type: what no range keeps loses its high bits."""
    kept = plain(step.result.dtype)
    return _passed(site, Activation(kept.low, kept.high, clip_range=ClipRangeU85.NONE))


def _passed(site: Site, activation: Activation) -> Node:
    """Return sums of single elements, which are not scaled, and what follows them."""

    def write(emitter: Emitter, target: View) -> None:
        for (ifm, ofm), order in each_stored(emitter, site.origin, emitter.read(site.root), target):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    PoolingModeU85.SUM,
                    ifm,
                    ofm,
                    Kernel(),
                    ONE,
                    activation,
                    rounding=RoundMode.NATURAL,
                    order=order,
                )
            )

    return site.node((site.root,), write, site.steps, stores=site.stores)


def _unsigned(site: Site, step: Rescale) -> Node:
    """RESCALE of bytes that are taken as unsigned, or given as such."""
    need(len(site.steps) == 1, "its unsigned bytes are a function of more")
    need(len(numbers(step.multiplier)) == 1, "its channels have scales of their own")
    for value, unsigned in (
        (step.input, step.input_unsigned),
        (step.result, step.output_unsigned),
    ):
        need(value.dtype is DType.INT8 or not unsigned, "it takes more than bytes as unsigned")
    need(step.input.dtype not in WIDE and step.result.dtype not in WIDE, "its sums are unsigned")
    scale = Scale(number(step.multiplier), number(step.shift))
    zeros = [
        number(zero) & 0xFF if unsigned else number(zero)
        for zero, unsigned in (
            (step.input_zp, step.input_unsigned),
            (step.output_zp, step.output_unsigned),
        )
    ]
    kept = plain(step.result.dtype)
    bounds = (0, 255) if step.output_unsigned else (kept.low, kept.high)

    def seen(map_: Map, zero: int, *, unsigned: bool) -> Map:
        return replace(map_, dtype=UINT8 if unsigned else map_.dtype, zero_point=zero)

    def write(emitter: Emitter, target: View) -> None:
        for (ifm, ofm), order in each_stored(emitter, site.origin, emitter.read(site.root), target):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    PoolingModeU85.SUM,
                    seen(ifm, zeros[0], unsigned=step.input_unsigned),
                    seen(ofm, zeros[1], unsigned=step.output_unsigned),
                    Kernel(),
                    scale,
                    Activation(*bounds),
                    rounding=rounding_of(step),
                    order=order,
                )
            )

    return site.node((site.root,), write, site.steps, stores=site.stores)


def _by_channels(site: Site, step: Rescale) -> Node:
    """RESCALE whose channels have scales of their own, of 32 bits or to them."""
    finish, zero = site.finish(scales=True), input_zero(site)
    if site.root.dtype not in WIDE and finish.dtype not in WIDE:
        return carried(site)
    need(site.root.shape[-1] == len(finish.multipliers), "its channels change their places")
    need(site.root.dtype is not DType.INT48, "sums of 48 bits lie nowhere")
    need(finish.entries is None, "its table gives wide integers")

    def write(emitter: Emitter, target: View) -> None:
        source = emitter.read(site.root)
        if site.root.dtype is DType.INT32:
            scaled_by_channels(emitter, site, source, target, finish)
        else:
            by_channels(emitter, source, target, finish, zero, site.origin)

    return site.node((site.root,), write, site.steps, stores=pixels)
