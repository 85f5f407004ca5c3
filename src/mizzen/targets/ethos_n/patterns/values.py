"""Values of the tensor graph as the Support Library sees them; constants and RESCALEs read."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mizzen.graph import Array, DType, Operation, Quantization, Value
from mizzen.targets.ethos_n.patterns.findings import unfit
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, Shape, TensorInfo

DATA_TYPES = {DType.INT8: DataType.S8, DType.UINT8: DataType.U8}
"""Types of feature maps and weights."""

KEEPS = frozenset(
    {"CLAMP", "CONCAT", "IDENTITY", "MAX_POOL2D", "RESHAPE", "REVERSE", "SLICE", "TRANSPOSE"}
)
"""Operations that keep numbers as they are: what they take and give is quantised alike."""

LEAST_SCALE = float(np.finfo(np.float32).tiny)
"""The least number of float32 with all its bits, which scales are held in."""

CLOSE = 2.0**-12
"""Relative difference of scales that changes an 8-bit number by less than a tenth of a step."""


def filled(shape: tuple[int, ...]) -> Shape:
    """Return a shape of four extents, those that lack at the end being 1; of more, one row."""
    if len(shape) > 4:
        return 1, 1, 1, prod(shape)
    first, second, third, fourth = (*shape, 1, 1, 1, 1)[:4]
    return first, second, third, fourth


def channels_last(shape: tuple[int, ...]) -> Shape:
    """Return a shape of four extents, the last one staying the channels: [N,C] is [N,1,1,C]."""
    if len(shape) < 2:
        return 1, 1, 1, prod(shape)
    first, *middle, last = shape
    ones = (1,) * (2 - len(middle))
    second, third = (*ones, *middle)
    return first, second, third, last


def quantization_of(value: Value) -> Quantization | None:
    """Return how a value is quantised: what it says, else what it was or becomes unchanged."""
    seen = set[Value]()
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        if found.quantization is not None:
            return found.quantization
        waiting += [user.results[0] for user in found.uses if user.kind in KEEPS]
        producer = found.producer
        if producer is not None and producer.kind in KEEPS:
            waiting.append(producer.operands[0])
    return None


def quantization_info(value: Value) -> QuantizationInfo:
    """Return a feature map's quantisation; UnfitError where it is unknown or per channel."""
    found = quantization_of(value)
    if found is None or len(found.scales) != 1 or len(found.zero_points) != 1:
        what = "unknown" if found is None else "per channel"
        raise unfit(
            "quantization",
            f"quantization={what}, feature maps must have one scale and one zero point",
            limit="one scale and one zero point",
            actual=what,
            help="quantise the network, each tensor as a whole",
        )
    if not LEAST_SCALE <= found.scale < float("inf"):
        raise unfit(
            "scale",
            f"scale={found.scale:g}, a scale must be positive and finite",
            limit="a positive scale",
            actual=f"{found.scale:g}",
            help="quantise the network again",
        )
    return QuantizationInfo(found.zero_point, (found.scale,))


def info_of(value: Value, shape: Shape | None = None) -> TensorInfo:
    """Return the info of a feature map, perhaps in another shape; UnfitError if it is none."""
    data_type = DATA_TYPES.get(value.dtype)
    if data_type is None:
        raise unfit(
            "type",
            f"dtype='{value.dtype.numpy.name}', dtype must be either uint8, int8 or int32",
            limit="uint8 or int8",
            actual=value.dtype.value,
            help="quantise it to 8 bits",
        )
    return TensorInfo(
        shape or filled(value.shape), data_type, quantization=quantization_info(value)
    )


def contents(value: Value) -> Array:
    """Return a constant's elements; UnfitError if it is none."""
    found = value.constant
    if found is None:
        raise unfit(
            "constant",
            "expected constant data",
            limit="a constant",
            actual="a computed tensor",
            help="make it a constant of the network",
        )
    return found


def number(value: Value) -> int:
    """Return the one element of a constant."""
    return int(contents(value).reshape(-1)[0])


@dataclass(frozen=True, slots=True)
class Rescaling:
    """What a RESCALE does: (x - before) * ratio + after.

    ratios  one, or one for each channel; float64
    """

    ratios: Array
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """The ratio, or that of the first channel."""
        return float(self.ratios[0])


def rescaling_of(operation: Operation) -> Rescaling:
    """Read a RESCALE. UnfitError unless its parameters are constants, and signed."""
    _, multiplier, shift, before, after = operation.operands
    if operation["input_unsigned"] or operation["output_unsigned"]:
        raise unfit("unsigned", "RESCALE must be of signed numbers, and is of unsigned ones")
    ratios = np.ldexp(
        contents(multiplier).reshape(-1).astype(np.float64),
        -contents(shift).reshape(-1).astype(np.int64),
    )
    return Rescaling(ratios, number(before), number(after))


def one_rescaling_of(operation: Operation) -> Rescaling:
    """Read a RESCALE that multiplies all channels by one number; UnfitError if it does not."""
    found = rescaling_of(operation)
    if found.ratios.size != 1:
        raise unfit(
            "per-channel",
            "multipliers=one for each channel, multipliers must be one for all",
            help="quantise its tensors as a whole",
        )
    return found


def close(found: float | Array, wanted: float | Array) -> bool:
    """Whether scales are the same but for rounding."""
    return bool(np.allclose(found, wanted, rtol=CLOSE, atol=0.0))
