"""Types of values in the tensor graph, and enumerations that its operations have as attributes.

Ref: TOSA 1.0, 1.10 (number formats); INT48, SHAPE as there. INT64, UINT8, FP64 are no TOSA types:
they exist for values that only PyTorch touches. An enumeration's value is how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt


class DType(Enum):
    """Type of a tensor's elements; the value is how it is printed."""

    BOOL = "bool"
    INT4 = "i4"
    INT8 = "i8"
    INT16 = "i16"
    INT32 = "i32"
    INT48 = "i48"
    FP16 = "f16"
    BF16 = "bf16"
    FP32 = "f32"
    SHAPE = "shape"
    UINT8 = "u8"
    UINT16 = "u16"
    INT64 = "i64"
    FP64 = "f64"

    @property
    def is_integer(self) -> bool:
        """Whether values are signed integers that TOSA computes with."""
        return self in INTEGER_BITS

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return self in (DType.FP16, DType.BF16, DType.FP32, DType.FP64)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type that holds values; wider than the type where NumPy has none of its width.

        INT4 is held in int8, INT48 and SHAPE in int64, BF16 in float32.
        """
        return NUMPY_TYPES[self]


INTEGER_BITS = {
    DType.INT4: 4,
    DType.INT8: 8,
    DType.INT16: 16,
    DType.INT32: 32,
    DType.INT48: 48,
}

NUMPY_TYPES: dict[DType, np.dtype[np.generic]] = {
    DType.BOOL: np.dtype(np.bool_),
    DType.INT4: np.dtype(np.int8),
    DType.INT8: np.dtype(np.int8),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
    DType.INT48: np.dtype(np.int64),
    DType.FP16: np.dtype(np.float16),
    DType.BF16: np.dtype(np.float32),
    DType.FP32: np.dtype(np.float32),
    DType.SHAPE: np.dtype(np.int64),
    DType.UINT8: np.dtype(np.uint8),
    DType.UINT16: np.dtype(np.uint16),
    DType.INT64: np.dtype(np.int64),
    DType.FP64: np.dtype(np.float64),
}


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and greatest value of a signed integer type."""
    bits = INTEGER_BITS[dtype]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def other_sign(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return int8 as the uint8 that have its places in their range, and the other way round."""
    other = np.uint8 if array.dtype == np.int8 else np.int8
    return (array.view(np.uint8) ^ np.uint8(0x80)).view(other)


@dataclass(frozen=True, slots=True)
class Quantization:
    """How integers stand for real numbers: ``real = scale * (integer - zero_point)``.

    One scale and zero point for the whole tensor, or one of each for every index along `axis`.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def scale(self) -> float:
        """The scale of a tensor that has only one."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The zero point of a tensor that has only one."""
        (zero_point,) = self.zero_points
        return zero_point

    def __str__(self) -> str:
        """Return it as in the text of a graph: ``scale 0.05 zp -128``."""
        if self.axis is None and len(self.scales) == len(self.zero_points) == 1:
            return f"scale {float(self.scales[0])!r} zp {int(self.zero_points[0])}"
        axis = "none" if self.axis is None else self.axis
        scales, zero_points = list(map(float, self.scales)), list(map(int, self.zero_points))
        return f"axis {axis} scales {scales} zps {zero_points}"


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape, element type and quantisation of a value. A SHAPE value of rank n has shape (n,)."""

    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None = None

    def __str__(self) -> str:
        """Return it as in the text of a graph: ``tensor<1x8x8x16xi8, scale 0.05 zp -128>``."""
        plain = f"{''.join(f'{size}x' for size in self.shape)}{self.dtype.value}"
        return f"tensor<{plain}{'' if self.quantization is None else f', {self.quantization}'}>"

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """Return the same type with another shape."""
        return replace(self, shape=shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        """Return the type of other elements, without quantisation."""
        return TensorType(self.shape, dtype)

    def quantized(self, quantization: Quantization | None) -> TensorType:
        """Return the same type with another quantisation."""
        return replace(self, quantization=quantization)


class RoundingMode(Enum):
    """How RESCALE rounds. Ref: TOSA 1.0, 2.13.2."""

    SINGLE_ROUND = "single"
    INEXACT_ROUND = "inexact"
    DOUBLE_ROUND = "double"


class ResizeMode(Enum):
    """How RESIZE finds values between samples. Ref: TOSA 1.0, 2.12.1."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


class NanMode(Enum):
    """What an operation makes of a NaN. Ref: TOSA 1.0, 1.10.4."""

    PROPAGATE = "propagate"
    IGNORE = "ignore"
