"""What goes over images in windows, as numbers of the kernels `convolve` and `pool`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.package.c.lowering.context import Given, ref
from mizzen.package.device import Argument, DeviceTensor

Strides = tuple[int, int, int, int]
"""Of batches, rows, columns and channels, in elements."""


@dataclass(frozen=True, slots=True)
class Span:
    """One axis of a window: tap t of output o is at (o stride + t dilation - pad) / up."""

    output: int
    taps: int
    input: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    up: int = 1

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the kernels read."""
        return (
            self.output, self.taps, self.input, self.stride, self.dilation, self.pad, self.up,
        )  # fmt: skip


POINT = Span(1, 1, 1)
"""An axis of one element."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where the outputs are, and what of the input each is made of."""

    batches: int
    channels: int
    input_channels: int
    rows: Span
    columns: Span
    input: Strides
    output: Strides

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the kernels read."""
        first = (self.batches, self.channels, self.input_channels)
        return (*first, *self.rows.numbers, *self.columns.numbers, *self.input, *self.output)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a convolution.

    depth    channels of the input that an output is made of
    sharing  output channels that are made of the same ones
    strides  of batches, output channels, rows, columns and input channels
    """

    index: int
    depth: int
    sharing: int
    strides: tuple[int, int, int, int, int]
    first: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the kernel reads."""
        return (self.depth, self.sharing, self.first, *self.strides)


@dataclass(frozen=True, slots=True)
class Integers:
    """How sums of quantised numbers become the output.

    factors  multiplier and shift of each channel
    is_wide  whether sums have 64 bits
    """

    factors: tuple[tuple[int, int], ...]
    points: tuple[int, int, int]
    limits: tuple[int, int]
    is_wide: bool


@dataclass(frozen=True, slots=True)
class Reals:
    """How sums of reals become the output: in float32 throughout, or in double."""

    limits: tuple[float, float]
    is_wide: bool


def image_strides(shape: tuple[int, ...]) -> Strides:
    """Return the strides of an image whose channels are last."""
    _, height, width, channels = shape
    return (height * width * channels, width * channels, channels, 1)


def planar_strides(shape: tuple[int, ...]) -> Strides:
    """Return the strides of an image whose channels are second."""
    _, channels, height, width = shape
    return (channels * height * width, width, 1, height * width)


def convolve(
    given: Given,
    source: int,
    weights: Weights,
    bias: int | None,
    window: Window,
    how: Integers | Reals,
    output: int | None = None,
) -> None:
    """Add a call of the kernel `convolve`, to the call's own output unless another is named."""
    constant = given.lowering.constant
    target = given.output() if output is None else output
    head = (ref(source), ref(weights.index), None if bias is None else ref(bias))
    factors: tuple[Argument, ...]
    tail: tuple[Argument, ...]
    match how:
        case Integers():
            multipliers, shifts = np.array(how.factors, np.int64).T
            factors = (ref(constant(multipliers, np.int32)), ref(constant(shifts, np.int32)))
            tail = ((*how.points, *how.limits, int(how.is_wide)),)
        case Reals():
            factors = (None, None)
            tail = (*how.limits, int(how.is_wide))
    numbers = (window.numbers, weights.numbers)
    given.emit("convolve", (*head, *factors, *numbers, *tail), (target,))


def point_of(tensor: DeviceTensor) -> int:
    """Return the one zero point of a tensor, or of one along an axis, where all are 0."""
    return tensor.zero_points[0] if len(tensor.zero_points) == 1 else 0
