"""Operators that put elements elsewhere: joins, padding, transposition, blocks."""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import INTEGERS, Call, kept, lowers
from mizzen.frontends.tflite.tflite_tensors import BYTE_OFFSET, quantization_of, to_graph
from mizzen.graph import DType, Value, integer_range


@lowers("CONCATENATION")
def concatenation(call: Call) -> Value:
    """CONCAT of the integers as they are; TFLite wants one quantisation of all.

    What has no elements adds nothing, and TOSA has no form of it.
    Of unsigned bytes with scales of their own each goes through a TABLE first.
    """
    call.need(call.option("fused_activation_function") == 0, "it has a fused activation")
    axis = call.axis(int(call.option("axis")), len(call.output().shape))
    places = range(len(call.operator.inputs))
    indices = [place for place in places if call.input(place).elements]
    call.need_types(*INTEGERS, tensors=tuple(map(call.input, indices)))
    values = [call.value(index) for index in indices]
    if call.output().type is FileType.UINT8:
        values = [_requantized(call, index) for index in indices]
    return call.b("CONCAT", *values, axis=axis)


def _requantized(call: Call, index: int) -> Value:
    """Return unsigned bytes in the output's scale, computed in float32 as LiteRT's kernel does.

    Ref: TensorFlow Lite, kernels/internal/reference/concatenation.h, ConcatenationWithScaling.
    """
    tensor, value = call.input(index), call.value(index)
    if quantization_of(tensor) == quantization_of(call.output()):
        return value
    before, after = call.quantization(tensor), call.quantization(call.output())
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.float32(before.scale) * (np.float32(1) / np.float32(after.scale))
        bias = np.float32(-(before.zero_point + BYTE_OFFSET)) * ratio
        fine = np.arange(256, dtype=np.float32) * ratio + bias
    call.need(bool(np.isfinite(fine).all()), "its scales are too far apart")
    wide = np.clip(fine.astype(np.float64), -(1 << 20), 1 << 20)
    away = np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.int64)
    entries = np.clip(away + after.zero_point, *integer_range(DType.INT8))
    table = call.b.constant(entries, DType.INT8)
    return call.b("TABLE", value, table, quantization=after)


@lowers("PACK")
def pack(call: Call) -> Value:
    """Of each input RESHAPE; CONCAT along the new axis."""
    shape = call.output().shape
    axis = call.axis(int(call.option("axis")), len(shape))
    places = range(len(call.operator.inputs))
    indices = [place for place in places if call.input(place).elements]
    call.need_types(*INTEGERS, tensors=tuple(map(call.input, indices)))
    one = call.b.shape((*shape[:axis], 1, *shape[axis + 1 :]))
    values = [call.value(index) for index in indices]
    parts = [call.b("RESHAPE", value, one, quantization=kept(value)) for value in values]
    return call.b("CONCAT", *parts, axis=axis)


@lowers("PAD", "PADV2")
def pad(call: Call) -> Value:
    """PAD with PADV2's value, with the output's zero point for bytes, else with 0."""
    value, tensor = call.value(), call.output()
    amounts = call.integers(1)
    call.need(len(amounts) == 2 * value.type.rank, "its padding does not fit its input")
    if call.operator.kind == "PADV2" and call.has(2):
        filling = to_graph(call.input(2), call.contents(2))
        call.need(filling.size == 1, "its value is no single one")
        fill = int(filling.reshape(-1)[0])
    else:
        plain = tensor.quantization is None or value.dtype is not DType.INT8
        fill = 0 if plain else call.quantization(tensor).zero_point
    low, high = (0, 0) if value.dtype is DType.BOOL else integer_range(value.dtype)
    call.need(low <= fill <= high, f"it pads {value.dtype.value} with {fill}")
    filler = call.b.constant([fill], value.dtype)
    return call.b("PAD", value, call.b.shape(amounts), filler)


@lowers("TILE")
def tile(call: Call) -> Value:
    """TILE."""
    counts = call.integers(1)
    call.need(min(counts, default=1) > 0, "it gives no elements")
    return call.b("TILE", call.value(), call.b.shape(counts))


SYMMETRIC = 1
"""The mode of MIRROR_PAD that mirrors the outermost elements too; 0 does not. Ref: TFLite's schema,
MirrorPadMode."""


@lowers("MIRROR_PAD")
def mirror_pad(call: Call) -> Value:
    """Along each padded axis SLICE, REVERSE of what is mirrored; CONCAT with what is there."""
    b, value = call.b, call.value()
    amounts = call.integers(1)
    call.need(len(amounts) == 2 * value.type.rank, "its padding does not fit its input")
    apart = 0 if call.option("mode") == SYMMETRIC else 1
    for axis in range(value.type.rank):
        before, after = amounts[2 * axis : 2 * axis + 2]
        extent = value.shape[axis]
        call.need(max(before, after) + apart <= extent, "it mirrors more than there is")
        parts = [value]
        if before:
            parts.insert(0, _mirrored(call, value, axis, apart, before))
        if after:
            parts.append(_mirrored(call, value, axis, extent - apart - after, after))
        if len(parts) > 1:
            value = b("CONCAT", *parts, axis=axis, quantization=kept(value))
    return value


def _mirrored(call: Call, value: Value, axis: int, start: int, count: int) -> Value:
    b = call.b
    starts, sizes = [0] * value.type.rank, list(value.shape)
    starts[axis], sizes[axis] = start, count
    part = b("SLICE", value, b.shape(starts), b.shape(sizes), quantization=kept(value))
    return b("REVERSE", part, axis=axis, quantization=kept(value))


@lowers("TRANSPOSE")
def transpose(call: Call) -> Value:
    """TRANSPOSE."""
    return call.b("TRANSPOSE", call.value(), perms=call.integers(1))


@lowers("REVERSE_V2")
def reverse(call: Call) -> Value:
    """REVERSE along each axis."""
    value = call.value()
    for index in call.integers(1):
        axis = call.axis(index, value.type.rank)
        value = call.b("REVERSE", value, axis=axis, quantization=kept(value))
    return value


@lowers("DEPTH_TO_SPACE")
def depth_to_space(call: Call) -> Value:
    """[N,H,W,B*B*C] to [N,H*B,W*B,C]: RESHAPE, TRANSPOSE, RESHAPE."""
    b, value, block = call.b, *_block(call)
    n, height, width, channels = value.shape
    call.need(channels % (block * block) == 0, "its channels are no multiple of its blocks")
    shape = (n, height, width, block, block, channels // (block * block))
    split = b("RESHAPE", value, b.shape(shape), quantization=kept(value))
    moved = b("TRANSPOSE", split, perms=(0, 1, 3, 2, 4, 5), quantization=kept(value))
    return b("RESHAPE", moved, b.shape(call.output().shape))


@lowers("SPACE_TO_DEPTH")
def space_to_depth(call: Call) -> Value:
    """[N,H*B,W*B,C] to [N,H,W,B*B*C]: RESHAPE, TRANSPOSE, RESHAPE."""
    b, value, block = call.b, *_block(call)
    n, height, width, channels = value.shape
    call.need(not (height % block or width % block), "its image is no multiple of its blocks")
    shape = (n, height // block, block, width // block, block, channels)
    split = b("RESHAPE", value, b.shape(shape), quantization=kept(value))
    moved = b("TRANSPOSE", split, perms=(0, 1, 3, 2, 4, 5), quantization=kept(value))
    return b("RESHAPE", moved, b.shape(call.output().shape))


def _block(call: Call) -> tuple[Value, int]:
    value, block = call.value(), int(call.option("block_size"))
    call.need(value.type.rank == 4, "its input is no image")
    call.need(block > 0, "its blocks have a size of 0")
    return value, block
