"""Convolutions that are one, cut in channels: so that weights fit a buffer, and for no other end.

Whoever schedules cuts them anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    ChannelScales,
    Convolution,
    Map,
)
from mizzen.targets.ethos_u.lift.footprints import view_of
from mizzen.targets.ethos_u.lift.stream import Step
from mizzen.targets.ethos_u.lift.values import Values
from mizzen.targets.ethos_u.machine.commands_values import Layout

Weights = npt.NDArray[np.int16]


class Slices:
    """Joins slices; the same slices give the same arrays, so that stripes of them stay alike."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._weights: dict[tuple[int, int], Weights] = {}
        self._scales: dict[tuple[int, int], ChannelScales] = {}
        self._kept: list[object] = []

    def merged(self, steps: list[Step]) -> list[Step]:
        """Return steps in which convolutions that follow each other and are one are one.

        Transfers of constants between them may be: what they bring is no part of a map.
        """
        found: list[Step] = []
        last = -1
        for step in steps:
            if step.constant:
                found.append(step)
            elif last >= 0 and (whole := self._joined(found[last], step)):
                found[last] = whole
            else:
                last = len(found)
                found.append(step)
        return found

    def _joined(self, first: Step, second: Step) -> Step | None:
        one, other = first.operation, second.operation
        if not isinstance(one, Convolution) or not isinstance(other, Convolution):
            return None
        if _rest(one) != _rest(other) or not _follows(one.ofm, other.ofm):
            return None
        if not (_follows(one.ifm, other.ifm) if one.depthwise else one.ifm == other.ifm):
            return None
        of = self._values.of
        source, own = of(first.reads[0] or 0), of(first.written)
        if source != of(second.reads[0] or 0) or own == source:
            return None
        operation = replace(
            one,
            ofm=_widened(one.ofm, other.ofm),
            ifm=_widened(one.ifm, other.ifm) if one.depthwise else one.ifm,
            weights=self._joined_weights(one.weights, other.weights),
            scales=self._joined_scales(one.scales, other.scales),
        )
        written = self._values.join([first.written, second.written])
        return Step(operation, first.reads, written)

    def _joined_weights(self, one: Weights, other: Weights) -> Weights:
        key = id(one), id(other)
        if key not in self._weights:
            self._kept += [one, other]
            self._weights[key] = np.concatenate([one, other])
        return self._weights[key]

    def _joined_scales(self, one: ChannelScales, other: ChannelScales) -> ChannelScales:
        key = id(one), id(other)
        if key not in self._scales:
            self._kept += [one, other]
            self._scales[key] = ChannelScales(
                np.concatenate([one.biases, other.biases]),
                np.concatenate([one.multipliers, other.multipliers]),
                np.concatenate([one.shifts, other.shifts]),
            )
        return self._scales[key]


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
    """Return whether the channels of a map come right behind those of another.

    All of them must be of one row: behind the last channel of a row the next row begins.
    """
    one, other = view_of(first), view_of(second)
    height, width, depth = one.shape
    total = depth + other.shape[2]
    down, across, brick = one.strides_bytes
    if one.layout is Layout.NHWC:
        step, fits = depth * first.dtype.itemsize, total * first.dtype.itemsize <= across
    else:
        step, fits = (
            depth // BRICK * brick,
            depth % BRICK == 0 and -(-total // BRICK) * brick <= down,
        )
    expected = replace(one, shape=other.shape, offset_bytes=one.offset_bytes + step)
    same = (first.dtype, first.zero_point) == (second.dtype, second.zero_point)
    return fits and same and other.shape[:2] == (height, width) and other == expected


def _widened(first: Map, second: Map) -> Map:
    height, width, depth = first.shape
    shape = height, width, depth + second.shape[2]
    return replace(first, view=replace(view_of(first), shape=shape))
