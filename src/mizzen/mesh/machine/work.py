"""What work costs on an element, in cycles of its clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from mizzen.mesh.machine.machine import ElementKind


class WorkKind(Enum):
    """Which unit of an element works, and how its time grows."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    POOLING = "pooling"
    POINTWISE = "pointwise"
    MOVEMENT = "movement"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a tile for one image.

    pixels      output positions, channels apart
    channels    output channels
    taps        products an output element is the sum of: input channels x kernel, or the window
    operands    of an elementwise chain, those after the first; tensors added to a convolution
    partials    partial sums that others computed and this tile adds, an output element
    """

    kind: WorkKind
    pixels: int
    channels: int
    taps: int = 1
    operands: int = 0
    partials: int = 0

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        if self.kind in (WorkKind.CONVOLUTION, WorkKind.DEPTHWISE):
            return self.pixels * self.channels * self.taps
        return 0


def cycles(kind: ElementKind, work: Work) -> int:
    """Return the cycles that an element needs for a tile of one image, rounded up.

    The array takes ``ceil(channels / columns) * ceil(pixels / rows) * taps`` cycles; what is added
    to its sums and all other work is the core's.
    """
    outputs = work.pixels * work.channels
    core = kind.core
    added = outputs * (core.pointwise * work.operands + core.partial_sum * work.partials)
    return math.ceil(core.task + added + _own_cycles(kind, work, outputs))


def _own_cycles(kind: ElementKind, work: Work, outputs: int) -> float:
    core = kind.core
    match work.kind:
        case WorkKind.CONVOLUTION | WorkKind.DEPTHWISE:
            return _array_cycles(kind, work)
        case WorkKind.POOLING:
            return outputs * work.taps * core.pooling
        case WorkKind.POINTWISE:
            return outputs * core.pointwise
        case WorkKind.MOVEMENT:
            return outputs * core.movement
        case WorkKind.GENERAL:
            return outputs * work.taps * core.general


def _array_cycles(kind: ElementKind, work: Work) -> float:
    array = kind.array
    if array is None:
        return work.macs * kind.core.multiply
    depthwise = work.kind is WorkKind.DEPTHWISE
    columns = array.depthwise_columns if depthwise else array.columns
    return math.ceil(work.channels / columns) * math.ceil(work.pixels / array.rows) * work.taps
