"""Convolutions that are one, cut in channels: so that weights fit a buffer, and for no other end.

Whoever schedules cuts them anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.commands_values import Layout
from mizzen.targets.ethos_u.lift.footprints import view_of
from mizzen.targets.ethos_u.lift.stream import Step
from mizzen.targets.ethos_u.lift.values import Values
from mizzen.targets.ethos_u.operations import (
    BRICK,
    ChannelScales,
    Convolution,
    Map,
)


def merged(steps: list[Step], values: Values) -> list[Step]:
    """Return steps in which convolutions that follow each other and are one are one.

    Transfers of constants between them may be: what they bring is no part of a map.
    """
    found: list[Step] = []
    last = -1
    for step in steps:
        if step.constant:
            found.append(step)
        elif last >= 0 and (whole := _joined(found[last], step, values)):
            found[last] = whole
        else:
            last = len(found)
            found.append(step)
    return found


def _joined(first: Step, second: Step, values: Values) -> Step | None:
    one, other = first.operation, second.operation
    if not isinstance(one, Convolution) or not isinstance(other, Convolution):
        return None
    if _rest(one) != _rest(other) or not _follows(one.ofm, other.ofm):
        return None
    if one.depthwise:
        if not _follows(one.ifm, other.ifm):
            return None
    elif one.ifm != other.ifm:
        return None
    source, own = values.of(first.reads[0] or 0), values.of(first.written)
    if source != values.of(second.reads[0] or 0) or own == source:
        return None
    operation = replace(
        one,
        ofm=_widened(one.ofm, other.ofm),
        ifm=_widened(one.ifm, other.ifm) if one.depthwise else one.ifm,
        weights=np.concatenate([one.weights, other.weights]),
        scales=ChannelScales(
            np.concatenate([one.scales.biases, other.scales.biases]),
            np.concatenate([one.scales.multipliers, other.scales.multipliers]),
            np.concatenate([one.scales.shifts, other.scales.shifts]),
        ),
    )
    written = values.join([first.written, second.written])
    return Step(operation, first.reads, written)


def _rest(operation: Convolution) -> tuple[object, ...]:
    """Return all that pieces of one operation share, whatever their channels."""
    activation = operation.activation
    return (
        operation.kernel,
        (activation.minimum, activation.maximum, activation.function, activation.clip_range),
        id(activation.table),
        operation.depthwise,
        operation.upscale,
        operation.rounding,
        operation.accumulators,
        operation.part_kernel,
        operation.ifm.zero_point,
        operation.ifm.dtype,
    )


def _follows(first: Map, second: Map) -> bool:
    """Return whether the channels of a map come right behind those of another."""
    one, other = view_of(first), view_of(second)
    height, width, depth = one.shape
    itemsize = first.dtype.itemsize
    if one.layout is Layout.NHWC:
        step = depth * itemsize
    elif depth % BRICK == 0:
        step = depth // BRICK * one.strides_bytes[2]
    else:
        return False
    expected = replace(one, shape=other.shape, offset_bytes=one.offset_bytes + step)
    same = (first.dtype, first.zero_point) == (second.dtype, second.zero_point)
    return same and other.shape[:2] == (height, width) and other == expected and not one.tiles


def _widened(first: Map, second: Map) -> Map:
    height, width, depth = first.shape
    shape = height, width, depth + second.shape[2]
    return replace(first, view=replace(view_of(first), shape=shape))
