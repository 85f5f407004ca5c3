"""The kinds of work in the work graph, each with what only it needs to say.

Ref: Ethos-N driver stack 23.02, how the Support Library divides operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import MceOperation, PleOperation, Upsample
from mizzen.targets.ethos_n.tensors import Shape, Stride, TensorInfo


@dataclass(frozen=True, slots=True)
class Ratio:
    """A fraction that extents are multiplied with; results are rounded down."""

    numerator: int = 1
    denominator: int = 1

    def times(self, extent: int) -> int:
        """Return `extent` times the ratio."""
        return extent * self.numerator // self.denominator

    def under(self, extent: int) -> int:
        """Return `extent` divided by the ratio."""
        return extent * self.denominator // self.numerator

    def __mul__(self, other: Ratio) -> Ratio:
        return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)


@dataclass(frozen=True, slots=True)
class ShapeRatio:
    """How the extents of a stage's output relate to those of its input."""

    height: Ratio = Ratio()
    width: Ratio = Ratio()
    channels: Ratio = Ratio()

    def __mul__(self, other: ShapeRatio) -> ShapeRatio:
        return ShapeRatio(
            self.height * other.height, self.width * other.width, self.channels * other.channels
        )


SAME_SHAPE = ShapeRatio()
ONE_BY_ONE = Stride()


@dataclass(frozen=True, slots=True)
class Source:
    """What an inference takes."""


@dataclass(frozen=True, slots=True)
class Sink:
    """What an inference gives; `output_index` counts the outputs of the operation behind it."""

    output_index: int


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A feature map that is a constant."""

    data: npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Mce:
    """A convolution, a depthwise convolution or a matrix product of the compute engines.

    uninterleaved_input_shape  of the input, before an interleaving by the stride if there is one
    weights, weight_data       weights' info, HWIO or HWIM, and their numbers in that shape
    bias                       int32, one for each output channel
    upscale                    by which factor `upsample` enlarges the input's planes
    """

    operation: MceOperation
    uninterleaved_input_shape: Shape
    weights: TensorInfo
    weight_data: npt.NDArray[Any]
    bias: npt.NDArray[np.int32]
    stride: Stride = ONE_BY_ONE
    pad_top: int = 0
    pad_left: int = 0
    upsample: Upsample = Upsample.OFF
    upscale: int = 1

    @property
    def ratio(self) -> ShapeRatio:
        """How the output's planes relate to the input's, kernel and padding left aside."""
        return ShapeRatio(Ratio(self.upscale), Ratio(self.upscale))


@dataclass(frozen=True, slots=True)
class Clamp:
    """Bounds, in the quantised numbers of the map, applied behind the accumulators."""

    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class FusedPle:
    """A kernel of the programmable layer engine that takes what the compute engines made.

    alpha  of a leaky ReLU
    """

    kernel: PleOperation
    ratio: ShapeRatio = SAME_SHAPE
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class LonePle:
    """A kernel of the programmable layer engine that takes its inputs from SRAM."""

    kernel: PleOperation


@dataclass(frozen=True, slots=True)
class Relayout:
    """The same map in another layout."""


@dataclass(frozen=True, slots=True)
class Relabel:
    """The same bytes read as another map."""


@dataclass(frozen=True, slots=True)
class Join:
    """Maps behind one another along an axis, each written to its place by the pass before."""

    axis: int


@dataclass(frozen=True, slots=True)
class Extract:
    """A part of a map, read from its place by the pass behind."""

    offset: Shape


@dataclass(frozen=True, slots=True)
class Copy:
    """The same map in a buffer of its own."""


@dataclass(frozen=True, slots=True)
class Requantise:
    """The same reals in another quantisation or type, by the scaling behind the accumulators."""


Work = (
    Source | Sink | Stored | Mce | Clamp | FusedPle | LonePle | Relayout | Relabel | Join | Extract
    | Copy | Requantise
)  # fmt: skip
