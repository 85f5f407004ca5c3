"""The bounds that a pass of the compute engines clamps its results to.

Ref: Ethos-N driver stack 23.02, the Support Library's `McePlePass`; float32 where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.emit.scaling import ple_scale
from mizzen.targets.ethos_n.lower.graph import Node
from mizzen.targets.ethos_n.lower.work import Clamp, Requantise
from mizzen.targets.ethos_n.operations import TANH_SCALE
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo

SIGMOID_ONE = 256
"""One in the 8.8 fixed point numbers that the sigmoid kernel raises 2 to."""
SIGMOID_LARGEST_BITS = 15
"""The kernel's fixed point numbers must be less than 2 to this, in magnitude."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the largest result, in quantised numbers."""

    least: int
    largest: int


def activation_bounds(mce: Node, behind: Iterable[Node]) -> Bounds:
    """Return the bounds of the type, narrowed by clamps, in the quantisation that is written.

    behind  the nodes behind the compute engines, in order
    """
    bounds = Bounds(mce.data_type.lowest, mce.data_type.highest)
    quantization = mce.quantization
    for node in behind:
        match node.work:
            case Clamp(lower, upper):
                bounds = Bounds(max(bounds.least, lower), min(bounds.largest, upper))
                quantization = node.quantization
            case Requantise():
                bounds = Bounds(
                    _requantised(bounds.least, quantization, node.quantization, node.data_type),
                    _requantised(bounds.largest, quantization, node.quantization, node.data_type),
                )
                quantization = node.quantization
            case _:
                pass
    return bounds


def _requantised(
    number: int, before: QuantizationInfo, after: QuantizationInfo, data_type: DataType
) -> int:
    """Return a quantised number in another quantisation; halves are rounded away from zero."""
    real = np.float32(number - before.zero_point) * np.float32(before.scale)
    steps = float(real / np.float32(after.scale))
    rounded = math.copysign(math.floor(abs(steps) + 0.5), steps) + after.zero_point
    return int(min(max(rounded, data_type.lowest), data_type.highest))


def sigmoid_scale(
    quantization: QuantizationInfo, output: QuantizationInfo
) -> tuple[tuple[int, int], int]:
    """Return multiplier and shift of a sigmoid's input, and how far it may be from the zero point.

    A tanh is a sigmoid of twice the input; the output's scale tells it.
    """
    twice = 2.0 if output.scale == TANH_SCALE else 1.0
    factor = quantization.scale * (math.log2(math.e) * SIGMOID_ONE) * twice
    multiplier, shift = ple_scale(factor)
    farthest = math.ceil(math.ldexp(1.0, SIGMOID_LARGEST_BITS + shift) / max(multiplier, 1)) - 1
    if farthest == 0:
        return ((1 << SIGMOID_LARGEST_BITS) - 1, 0), 1
    return (multiplier, shift), farthest


def narrowed(bounds: Bounds, centre: int, farthest: int) -> Bounds:
    """Return bounds within a distance of a number; at least one number remains."""
    least = max(bounds.least, centre - farthest)
    return Bounds(least, max(least, min(bounds.largest, centre + farthest)))
