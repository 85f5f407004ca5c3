"""What the Support Library says of a tensor: extents, type, layout, quantisation.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`TensorInfo`, `QuantizationInfo`, `Padding`,
`Stride`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from mizzen.diagnostics import fail

Shape = tuple[int, int, int, int]
"""Four extents: N, H, W, C; of weights H, W, I, O or H, W, I, M."""


class DataType(Enum):
    """The type of an element; biases are S32, everything else U8 or S8."""

    U8 = "UINT8_QUANTIZED"
    S8 = "INT8_QUANTIZED"
    S32 = "INT32_QUANTIZED"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The same type in NumPy."""
        return np.dtype({"U8": np.uint8, "S8": np.int8, "S32": np.int32}[self.name])

    @property
    def lowest(self) -> int:
        """The smallest number of the type."""
        return int(np.iinfo(self.dtype).min)

    @property
    def highest(self) -> int:
        """The largest number of the type."""
        return int(np.iinfo(self.dtype).max)


class DataFormat(Enum):
    """The meaning of the four extents, and how the elements lie in memory."""

    NHWC = "NHWC"
    NCHW = "NCHW"
    HWIO = "HWIO"
    NHWCB = "NHWCB"
    HWIM = "HWIM"


@dataclass(frozen=True, slots=True)
class QuantizationInfo:
    """real = scale * (number - zero_point); scales are float32.

    axis  the dimension that the scales are along; None for one scale of the whole tensor

    E914 without any scale.
    """

    zero_point: int = 0
    scales: tuple[float, ...] = (1.0,)
    axis: int | None = None

    def __post_init__(self) -> None:
        if not self.scales:
            raise fail(
                "E914",
                "a quantisation must have a scale, and has none",
                help="give one scale, or one for each channel",
            )
        rounded = tuple(np.asarray(self.scales, np.float32).tolist())
        object.__setattr__(self, "scales", rounded)

    @property
    def scale(self) -> float:
        """The scale of the whole tensor, or that of the first channel."""
        return self.scales[0]

    @property
    def is_per_channel(self) -> bool:
        """Whether channels may have scales of their own."""
        return self.axis is not None or len(self.scales) != 1


PER_TENSOR = QuantizationInfo()
"""Zero point 0, scale 1."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor's extents, type, layout and quantisation."""

    shape: Shape
    data_type: DataType = DataType.U8
    format: DataFormat = DataFormat.NHWC
    quantization: QuantizationInfo = field(default=PER_TENSOR)

    @property
    def height(self) -> int:
        """The extent along H of a feature map."""
        return self.shape[1]

    @property
    def width(self) -> int:
        """The extent along W of a feature map."""
        return self.shape[2]

    @property
    def channels(self) -> int:
        """The extent along C of a feature map."""
        return self.shape[3]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Padding:
    """Elements added at each side of a feature map's planes."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class Stride:
    """Elements between two positions of a window, along W (`x`) and along H (`y`)."""

    x: int = 1
    y: int = 1
