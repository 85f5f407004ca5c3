"""How the tensors of a TFLite network stand in the graph: element types, quantisation, arrays.

TOSA has no unsigned tensors. An unsigned 8-bit tensor is one of i8 here whose integers, and zero
points, are less by 128: the same real numbers. Wider unsigned ones are the signed ones of the same
bits; only operators that the CPU computes have them.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.model import Tensor
from mizzen.graph import DType, Quantization, TensorType, other_sign

Array = npt.NDArray[Any]

DTYPES: dict[FileType, DType] = {
    FileType.BOOL: DType.BOOL,
    FileType.INT8: DType.INT8,
    FileType.UINT8: DType.INT8,
    FileType.INT16: DType.INT16,
    FileType.UINT16: DType.INT16,
    FileType.INT32: DType.INT32,
    FileType.UINT32: DType.INT32,
    FileType.INT64: DType.INT64,
    FileType.UINT64: DType.INT64,
    FileType.FLOAT16: DType.FP16,
    FileType.FLOAT32: DType.FP32,
    FileType.FLOAT64: DType.FP64,
    FileType.COMPLEX64: DType.INT64,
    FileType.RESOURCE: DType.INT32,
}
"""Element types in the file to those in the graph. A resource is known by a number.

The CPU alone computes with complex numbers, which in the graph are their bits."""

BYTE_OFFSET = 128
"""By how much the integers of unsigned 8-bit tensors are less in the graph."""


def quantization_of(tensor: Tensor) -> Quantization | None:
    """Return how the integers of a tensor in the graph stand for real numbers, if that is known.

    Scales that are no positive numbers, or do not fit the shape, say nothing.
    """
    quantization = tensor.quantization
    if quantization is None or not all(0 < scale < inf for scale in quantization.scale):
        return None
    several = len(quantization.scale) > 1
    if several and dict(enumerate(tensor.shape)).get(quantization.axis) != len(quantization.scale):
        return None
    offset = BYTE_OFFSET if tensor.type is FileType.UINT8 else 0
    zero_points = tuple(zero_point - offset for zero_point in quantization.zero_point)
    return Quantization(quantization.scale, zero_points, quantization.axis if several else None)


def type_of(tensor: Tensor, origin: Origin | None) -> TensorType:
    """Return the type of a tensor in the graph; E132 for elements that are no numbers."""
    dtype = DTYPES.get(tensor.type)
    if dtype is None:
        raise fail(
            "E132",
            f'tensor {tensor.index} "{tensor.name}" must be of numbers to stand in a graph, not '
            f"{tensor.type.name}",
            origin=origin,
            help="convert the network without this operator, or leave it to the application",
        )
    return TensorType(tensor.shape, dtype, quantization_of(tensor))


def to_graph(tensor: Tensor, array: Array) -> Array:
    """Return the elements of a tensor as the graph has them; other shapes, as batches, too."""
    match tensor.type:
        case FileType.UINT8:
            return other_sign(array)
        case FileType.UINT16 | FileType.UINT32 | FileType.UINT64 | FileType.COMPLEX64:
            return array.view(DTYPES[tensor.type].numpy)
        case _:
            return array


def from_graph(tensor: Tensor, array: Array) -> Array:
    """Return the graph's array of a tensor as TFLite has it."""
    match tensor.type:
        case FileType.UINT8:
            return other_sign(array)
        case FileType.UINT16 | FileType.UINT32 | FileType.UINT64 | FileType.COMPLEX64:
            assert tensor.dtype is not None
            return array.view(tensor.dtype)
        case _:
            return array
