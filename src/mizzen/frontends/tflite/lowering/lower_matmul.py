"""Products of two computed matrices, and dense layers of computed weights.

Ref: TFLite Micro, kernels/batch_matmul.cc and internal/reference/batch_matmul.h.
"""

from __future__ import annotations

from math import prod

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers, zero
from mizzen.frontends.tflite.lowering.requantization import (
    activated,
    reach,
    rescale,
    scale_of,
    short_scale_of,
)
from mizzen.graph import DType, Value

LONG_SUM_LIMIT = 1 << 47
"""Sums of 16-bit products have 48 bits."""
SCALED_LIMIT = 1 << 30
"""Of sums of 16-bit products once they are scaled: kernels wrap them around at 32 bits."""


@lowers("BATCH_MATMUL")
def batch_matmul(call: Call) -> Value:
    """Of each matrix [TRANSPOSE if it is adjoint,] [TILE along batches of one,] RESHAPE to
    [N, H, W]; MATMUL, RESCALE, RESHAPE."""
    call.need_types(
        FileType.INT8, FileType.INT16, tensors=(call.input(0), call.input(1), call.output())
    )
    b, output = call.b, call.quantization(call.output())
    x, y = (call.quantization(call.input(index)) for index in (0, 1))
    batches = call.output().shape[:-2]
    left = _matrices(call, 0, batches, adjoint=bool(call.option("adj_x", False)))
    right = _matrices(call, 1, batches, adjoint=bool(call.option("adj_y", False)))
    call.need(left.shape[2] == right.shape[1], "its matrices do not fit each other")
    dtype, ratio = left.dtype, x.scale * y.scale / output.scale
    zeros = x.zero_point, y.zero_point
    bound = left.shape[2] * reach(dtype, zeros[0]) * reach(dtype, zeros[1]) + 1
    narrow = dtype is DType.INT8
    call.need(
        narrow or not (any(zeros) or output.zero_point), "its 16-bit tensors have zero points"
    )
    call.need(bound < (1 << 31 if narrow else LONG_SUM_LIMIT), "its sums can overflow")
    call.need(narrow or bound * ratio < SCALED_LIMIT, "its scaled sums can overflow")
    sums = b("MATMUL", left, right, zero(b, dtype, zeros[0]), zero(b, dtype, zeros[1]))
    value = rescale(
        b,
        sums,
        scale_of(ratio) if narrow else short_scale_of(ratio),
        dtype,
        bound=bound,
        zero_points=(0, output.zero_point),
        quantization=output,
    )
    return b("RESHAPE", value, b.shape(call.output().shape), quantization=output)


def dense_of_computed(call: Call) -> Value:
    """[..., IC], computed weights [OC,IC]: RESHAPE, TRANSPOSE, MATMUL [, ADD], RESCALE [, CLAMP],
    RESHAPE."""
    call.need_types(FileType.INT8, tensors=(call.input(0), call.input(1), call.output()))
    call.need(call.option("weights_format") == 0, "its weights are shuffled")
    b, output = call.b, call.quantization(call.output())
    x, y = (call.quantization(call.input(index)) for index in (0, 1))
    value, weights = call.value(0), call.value(1)
    call.need(weights.type.rank == 2, "its weights are no matrix")
    outputs, inputs = weights.shape
    rows = value.type.elements // inputs
    left = b("RESHAPE", value, b.shape((1, rows, inputs)), quantization=kept(value))
    right = b("RESHAPE", weights, b.shape((1, outputs, inputs)), quantization=kept(weights))
    right = b("TRANSPOSE", right, perms=(0, 2, 1), quantization=kept(weights))
    zeros = (zero(b, DType.INT8, x.zero_point), zero(b, DType.INT8, y.zero_point))
    bound = inputs * reach(DType.INT8, x.zero_point) * reach(DType.INT8, y.zero_point) + 1
    sums = b("MATMUL", left, right, *zeros)
    if call.has(2):
        call.need(call.input(2).type is FileType.INT32, "its bias is not INT32")
        bias = call.contents(2).reshape(1, 1, outputs)
        bound += int(np.abs(bias).max())
        sums = b("ADD", sums, b.constant(bias, DType.INT32))
    call.need(bound < 1 << 31, "its sums can overflow")
    value = rescale(
        b,
        sums,
        scale_of(x.scale * y.scale / output.scale),
        DType.INT8,
        bound=bound,
        zero_points=(0, output.zero_point),
        quantization=output,
    )
    value = activated(call, value, output)
    return b("RESHAPE", value, b.shape(call.output().shape), quantization=output)


def _matrices(call: Call, index: int, batches: tuple[int, ...], *, adjoint: bool) -> Value:
    """Return an input as [N, H, W], once for each of the result's batches."""
    b, value = call.b, call.value(index)
    rank = value.type.rank
    call.need(2 <= rank <= len(batches) + 2, "its matrices have other ranks than its result")
    if adjoint:
        perms = (*range(rank - 2), rank - 1, rank - 2)
        value = b("TRANSPOSE", value, perms=perms, quantization=kept(value))
    height, width = value.shape[-2:]
    own = (*(1,) * (len(batches) + 2 - rank), *value.shape[:-2])
    counts = tuple(
        wanted if extent == 1 else 1 for wanted, extent in zip(batches, own, strict=True)
    )
    if any(count > 1 for count in counts):
        flat = b("RESHAPE", value, b.shape((*own, height, width)), quantization=kept(value))
        value = b("TILE", flat, b.shape((*counts, 1, 1)), quantization=kept(value))
    shape = (prod(batches), height, width)
    call.need(value.type.elements == prod(shape), "its batches do not fit its result")
    return b("RESHAPE", value, b.shape(shape), quantization=kept(value))
