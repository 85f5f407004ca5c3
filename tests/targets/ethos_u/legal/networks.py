"""Networks of one operator, short to write: shapes and options at a limit and beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.tflite.builder import NetworkBuilder

Options = tuple[str, Record]
Shape = Sequence[int]
SAME, VALID = 0, 1
MAP = (1, 8, 8, 8)
"""A feature map that breaks no rule."""


@dataclass(frozen=True)
class Map:
    """A feature map; `scale` None for one that is not quantised."""

    shape: Shape
    dtype: str = "int8"
    scale: float | Sequence[float] | None = 0.05
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    variable: bool = False


@dataclass(frozen=True, eq=False)
class Constant:
    data: npt.NDArray[Any]
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] = 0
    axis: int = 0


Tensor = Map | Constant | None


def network(
    kind: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Map],
    options: Options | None = None,
    intermediates: Sequence[Map] = (),
) -> bytes:
    """Build a network of one operator; its maps are the network's inputs, in order."""
    net = NetworkBuilder()
    indices: list[int] = []
    real: list[int] = []
    for place, tensor in enumerate(inputs):
        match tensor:
            case None:
                indices.append(-1)
            case Constant():
                name = f"constant{place}"
                indices.append(
                    net.constant(
                        name, tensor.data, tensor.scale, tensor.zero_point, axis=tensor.axis
                    )
                )
            case Map():
                indices.append(add(net, f"input{place}", tensor))
                real += [] if tensor.variable else [indices[-1]]
    given = [add(net, f"output{place}", tensor) for place, tensor in enumerate(outputs)]
    between = [add(net, f"between{place}", tensor) for place, tensor in enumerate(intermediates)]
    net.operator(kind, indices, given, options, intermediates=between or None)
    return net.finish(real, given)


def add(net: NetworkBuilder, name: str, tensor: Map) -> int:
    return net.tensor(
        name,
        tensor.shape,
        tensor.dtype,
        tensor.scale,
        tensor.zero_point,
        axis=tensor.axis,
        variable=tensor.variable,
    )


def weights(*shape: int, dtype: str = "int8", scale: Any = 0.02, axis: int = 0) -> Constant:
    rng = np.random.default_rng(0)
    low = 0 if dtype.startswith("u") else -100
    return Constant(rng.integers(low, 100, shape).astype(dtype), scale, 0, axis)


def full(shape: Shape, value: int, dtype: str = "int8", zero_point: int = 0) -> Constant:
    return Constant(np.full(shape, value, dtype), 0.02, zero_point)


def bias(count: int, dtype: str = "int32", first: int = 0) -> Constant:
    values = np.zeros(count, dtype)
    values[0] = first
    return Constant(values, 0.001)


def numbers(*values: int, dtype: str = "int32") -> Constant:
    return Constant(np.array(values, dtype))


def pairs(*values: int, dtype: str = "int32") -> Constant:
    return Constant(np.array(values, dtype).reshape(-1, 2))


def computed(count: int) -> Map:
    """A parameter that is no constant."""
    return Map([count], "int32", None)


def with_signature(data: bytes, tensor: int, signature: Shape) -> bytes:
    record = read(data, SCHEMA, "network")
    row = record["subgraphs"][0]["tensors"][tensor]
    row["shape_signature"] = np.array(signature, np.int32)
    return write(record, SCHEMA)


def extent(size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    """Return the output's extent."""
    if padding == SAME:
        return -(-size // stride)
    return (size - ((kernel - 1) * dilation + 1)) // stride + 1


def conv(
    height: int = 8,
    width: int = 8,
    channels: int = 4,
    outputs: int = 4,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    dilation: int = 1,
    padding: int = SAME,
    dtype: str = "int8",
    filters: Tensor = None,
    biases: Tensor = None,
    zero_point: int = 0,
    batch: int = 1,
) -> bytes:
    high = extent(height, kernel[0], stride[0], dilation, padding)
    wide = extent(width, kernel[1], stride[1], dilation, padding)
    filters = filters or weights(outputs, *kernel, channels)
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
    }
    return network(
        "CONV_2D",
        [
            Map((batch, height, width, channels), dtype, 0.05, zero_point),
            filters,
            biases or bias(outputs),
        ],
        [Map((batch, high, wide, outputs), dtype)],
        ("Conv2DOptions", options),
    )


def depthwise(
    height: int = 8,
    width: int = 8,
    channels: int = 4,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    dilation: int = 1,
    padding: int = SAME,
    dtype: str = "int8",
    multiplier: int = 1,
    filters: Tensor = None,
) -> bytes:
    high = extent(height, kernel[0], stride[0], dilation, padding)
    wide = extent(width, kernel[1], stride[1], dilation, padding)
    outputs = channels * multiplier
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "depth_multiplier": multiplier,
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
    }
    return network(
        "DEPTHWISE_CONV_2D",
        [
            Map((1, height, width, channels), dtype),
            filters or weights(1, *kernel, outputs, axis=3),
            bias(outputs),
        ],
        [Map((1, high, wide, outputs), dtype)],
        ("DepthwiseConv2DOptions", options),
    )


def pool(
    kind: str,
    height: int,
    width: int,
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: int = SAME,
    dtype: str = "int8",
    channels: int = 1,
    batch: int = 1,
) -> bytes:
    high = extent(height, kernel[0], stride[0], 1, padding)
    wide = extent(width, kernel[1], stride[1], 1, padding)
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "filter_height": kernel[0],
        "filter_width": kernel[1],
    }
    return network(
        f"{kind}_POOL_2D",
        [Map((batch, height, width, channels), dtype)],
        [Map((batch, high, wide, channels), dtype)],
        ("Pool2DOptions", options),
    )


def dense(
    inputs: int = 16,
    outputs: int = 8,
    dtype: str = "int8",
    filters: Tensor = None,
    biases: Tensor = None,
    shape: Shape | None = None,
) -> bytes:
    return network(
        "FULLY_CONNECTED",
        [Map(shape or [1, inputs], dtype), filters or weights(outputs, inputs)]
        + ([biases] if biases else []),
        [Map([1, outputs], dtype)],
        ("FullyConnectedOptions", {}),
    )


def transposed_conv(
    height: int = 4,
    width: int = 4,
    kernel: tuple[int, int] = (2, 2),
    stride: tuple[int, int] = (2, 2),
    padding: int = SAME,
    dtype: str = "int8",
    output: tuple[int, int] | None = None,
    filters: Tensor = None,
    channels: int = 4,
    outputs: int = 4,
) -> bytes:
    more = (0, 0) if padding == SAME else tuple(max(0, kernel[i] - stride[i]) for i in (0, 1))
    high, wide = output or (height * stride[0] + more[0], width * stride[1] + more[1])
    return network(
        "TRANSPOSE_CONV",
        [
            numbers(1, high, wide, outputs),
            filters or weights(outputs, *kernel, channels),
            Map((1, height, width, channels), dtype),
        ],
        [Map((1, high, wide, outputs), dtype)],
        (
            "TransposeConvOptions",
            {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]},
        ),
    )


def unary(
    kind: str,
    dtype: str = "int8",
    output: str | None = None,
    shape: Shape = MAP,
    options: Options | None = None,
) -> bytes:
    return network(kind, [Map(shape, dtype)], [Map(shape, output or dtype)], options)


def softmax(shape: Shape, dtype: str = "int8") -> bytes:
    scale, zero = (1 / 32768, 0) if dtype == "int16" else (1 / 256, -128)
    result = Map(shape, dtype, scale, zero)
    return network("SOFTMAX", [Map(shape, dtype)], [result], ("SoftmaxOptions", {"beta": 1.0}))


def binary(
    kind: str,
    first: Map | None = None,
    second: Tensor = None,
    output: Map | None = None,
    dtype: str = "int8",
    options: Options | None = None,
) -> bytes:
    like = Map(MAP, dtype)
    return network(kind, [first or like, second or like], [output or like], options)


def reduction(
    kind: str,
    shape: Shape,
    axes: Sequence[int],
    dtype: str = "int8",
    keep: bool = True,
    constant: bool = True,
) -> bytes:
    reduced = {axis % len(shape) for axis in axes}
    result = [1 if axis in reduced else size for axis, size in enumerate(shape)]
    if not keep:
        result = [size for axis, size in enumerate(shape) if axis not in reduced]
    parameter = numbers(*axes) if constant else computed(len(axes))
    options = ("ReducerOptions", {"keep_dims": keep})
    return network(kind, [Map(shape, dtype), parameter], [Map(result, dtype)], options)


def arg_max(
    shape: Shape, axis: int = -1, dtype: str = "int8", output: str = "int32", constant: bool = True
) -> bytes:
    result = [size for place, size in enumerate(shape) if place != axis % len(shape)]
    number = {"int32": 2, "int64": 4}[output]
    parameter = numbers(axis) if constant else computed(1)
    options = ("ArgMaxOptions", {"output_type": number})
    return network("ARG_MAX", [Map(shape, dtype), parameter], [Map(result, output, None)], options)


def resize(
    kind: str,
    before: tuple[int, int],
    after: tuple[int, int],
    aligned: bool = False,
    centred: bool = False,
    dtype: str = "int8",
) -> bytes:
    names = {
        "RESIZE_BILINEAR": "ResizeBilinearOptions",
        "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    }
    options = {"align_corners": aligned, "half_pixel_centers": centred}
    return network(
        kind,
        [Map((1, *before, 2), dtype), numbers(*after)],
        [Map((1, *after, 2), dtype)],
        (names[kind], options),
    )


def transpose(
    shape: Shape, permutation: Sequence[int], dtype: str = "int8", constant: bool = True
) -> bytes:
    result = [shape[axis] for axis in permutation]
    parameter = numbers(*permutation) if constant else computed(len(permutation))
    return network(
        "TRANSPOSE", [Map(shape, dtype), parameter], [Map(result, dtype)], ("TransposeOptions", {})
    )


def strided_slice(
    shape: Shape,
    end: Sequence[int],
    strides: Sequence[int],
    result: Shape,
    begin: Sequence[int] | None = None,
    **masks: int,
) -> bytes:
    first = begin or [0] * len(end)
    return network(
        "STRIDED_SLICE",
        [Map(shape), numbers(*first), numbers(*end), numbers(*strides)],
        [Map(result)],
        ("StridedSliceOptions", dict(masks)),
    )


def lstm(
    *, peephole: bool = False, projection: bool = False, norm: bool = False, coupled: bool = False
) -> bytes:
    """An LSTM of 4 units over 2 steps of 3 values, int8 with an int16 cell."""
    units, values, steps = 4, 3, 2
    gates = [not coupled, True, True, True]
    inputs: list[Tensor] = [Map([1, steps, values])]
    inputs += [weights(units, values) if gate else None for gate in gates]
    inputs += [weights(units, units) if gate else None for gate in gates]
    inputs += [weights(units, dtype="int16") if peephole else None for _ in range(3)]
    inputs += [bias(units) if gate else None for gate in gates]
    inputs += [weights(units, units) if projection else None, None]
    inputs += [Map([1, units], variable=True), Map([1, units], "int16", 2.0**-11, variable=True)]
    inputs += [weights(units, dtype="int16") if norm else None for _ in range(4)]
    between = [Map([1], "int16", 0.001)] * 4 + [Map([1])]
    options = {"fused_activation_function": 4, "cell_clip": 10.0}
    return network(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [Map([1, steps, units])],
        ("UnidirectionalSequenceLSTMOptions", options),
        between,
    )
