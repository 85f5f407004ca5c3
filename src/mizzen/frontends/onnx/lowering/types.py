"""Types of ONNX tensors as the graph has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.diagnostics import Origin, fail
from mizzen.frontends.onnx.model import Array, TensorType
from mizzen.graph import DType
from mizzen.graph import TensorType as GraphType

DTYPES = {
    "bool": DType.BOOL,
    "int8": DType.INT8,
    "int16": DType.INT16,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "uint8": DType.UINT8,
    "uint16": DType.UINT16,
    "float16": DType.FP16,
    "float32": DType.FP32,
    "float64": DType.FP64,
}
"""NumPy's name of a type to the graph's."""

OFFSETS = {"uint8": 128, "uint16": 32768}
"""By how much integers without a sign are above those with one that stand for them."""

SIGNED = {DType.UINT8: DType.INT8, DType.UINT16: DType.INT16}

NUMBERS = (DType.INT8, DType.INT16)
"""Types of quantised numbers that NPUs take."""


def graph_type(type: TensorType, name: str, origin: Origin | None) -> GraphType:
    """Return a type as the graph has it. E194 for elements that it has no type for."""
    dtype = DTYPES.get(type.dtype.name)
    if dtype is None:
        raise fail(
            "E194",
            f'tensor "{name}" must be of a type that NPUs or their host take, and is of '
            f"{type.dtype.name}",
            origin=origin,
            help="cast it to float32 or int32 where it is made",
        )
    return GraphType(type.shape, dtype)


def offset_of(dtype: np.dtype[Any]) -> int:
    """Return how far integers of a type are above the graph's; 0 for those with a sign."""
    return OFFSETS.get(dtype.name, 0)


def signed(array: Array) -> Array:
    """Return constant integers as the graph has them: with a sign."""
    offset = offset_of(array.dtype)
    if offset:
        bits = np.int8 if array.dtype == np.uint8 else np.int16
        return (array.astype(np.int64) - offset).astype(bits)
    return array
