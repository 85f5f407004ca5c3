"""Operators that put elements elsewhere: joins, padding, transposition, blocks."""

from __future__ import annotations

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import INTEGERS, Call, kept, lowers
from mizzen.frontends.tflite.tflite_tensors import quantization_of, to_graph
from mizzen.graph import DType, Value, integer_range


@lowers("CONCATENATION")
def concatenation(call: Call) -> Value:
    """CONCAT of the integers as they are; TFLite wants one quantisation of all."""
    call.need(call.option("fused_activation_function") == 0, "it has a fused activation")
    axis = call.axis(int(call.option("axis")), len(call.output().shape))
    indices = range(len(call.operator.inputs))
    call.need_types(*INTEGERS, tensors=tuple(map(call.input, indices)))
    if call.output().type is FileType.UINT8:
        same = {quantization_of(call.input(index)) for index in indices}
        call.need(same == {quantization_of(call.output())}, "its unsigned inputs have other scales")
    values = [call.value(index) for index in indices]
    return call.b("CONCAT", *values, axis=axis)


@lowers("PACK")
def pack(call: Call) -> Value:
    """Of each input RESHAPE; CONCAT along the new axis."""
    shape = call.output().shape
    axis = call.axis(int(call.option("axis")), len(shape))
    indices = range(len(call.operator.inputs))
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


@lowers("TRANSPOSE")
def transpose(call: Call) -> Value:
    """TRANSPOSE."""
    return call.b("TRANSPOSE", call.value(), perms=call.integers(1))


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
