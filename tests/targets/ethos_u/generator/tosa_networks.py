"""TOSA graphs of one operation and what rescales its result, short to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Graph, ResizeMode, RoundingMode, TensorType, Value
from mizzen.ops import Builder

Shape = Sequence[int]
Pair = tuple[int, int]
I4, I8, I16, I32, I48 = DType.INT4, DType.INT8, DType.INT16, DType.INT32, DType.INT48
BOOL = DType.BOOL

SUMS = {I8: I32, I16: I48}
"""What products of a type are added up in."""

MAP = (1, 8, 8, 8)
"""A feature map that breaks no rule."""


class Net:
    """A graph that is being built."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.b = Builder(self.graph)

    def input(self, shape: Shape = MAP, dtype: DType = I8) -> Value:
        """Add an input."""
        return self.graph.add_input(TensorType(tuple(shape), dtype))

    def rescale(
        self, value: Value, dtype: DType, multiplier: int = 1 << 14, shift: int = 21
    ) -> Value:
        """Bring a sum to a type."""
        b, wide = self.b, value.dtype is not I48
        operands = (
            b.constant([multiplier], I32 if wide else I16),
            b.constant([shift], I8),
            b.constant([0], value.dtype),
            b.constant([0], dtype),
        )
        single = RoundingMode.SINGLE_ROUND
        return b("RESCALE", value, *operands, scale32=wide, rounding_mode=single, per_channel=False)

    def give(self, *values: Value) -> Graph:
        """Return the graph with its outputs."""
        self.graph.set_outputs(values)
        return self.graph


def one(
    kind: str, *shapes: Shape, dtype: DType = I8, gives: DType | None = None, **attributes: Any
) -> Graph:
    """One operation of inputs of one type."""
    net = Net()
    inputs = [net.input(shape, dtype) for shape in shapes or (MAP,)]
    return net.give(net.b(kind, *inputs, dtype=gives, **attributes))


def shaped(kind: str, shape: Shape, *values: Shape, dtype: DType = I8) -> Graph:
    """One operation that takes a tensor, and shapes (SLICE, TILE, RESHAPE)."""
    net = Net()
    return net.give(net.b(kind, net.input(shape, dtype), *map(net.b.shape, values)))


def padded(shape: Shape, padding: Shape, dtype: DType = I8) -> Graph:
    """A PAD with zeros."""
    net = Net()
    zero = net.b.constant([0], dtype)
    return net.give(net.b("PAD", net.input(shape, dtype), net.b.shape(padding), zero))


def filled(shape: Shape, value: int = 1) -> npt.NDArray[np.int8]:
    """Weights of one value."""
    return np.full(shape, value, np.int8)


def conv(
    kernel: Pair = (3, 3),
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    *,
    kind: str = "CONV2D",
    out: Pair = (4, 4),
    depth: int = 4,
    batch: int = 1,
    weights: npt.NDArray[Any] | None = None,
    bias: Sequence[int] = (0, 0, 0, 0),
    dtype: DType = I8,
    weight_dtype: DType = I8,
    gives: DType | None = I8,
    shift: int = 21,
    inputs: Sequence[str] = (),
) -> Graph:
    """A convolution and its rescale (to `gives`, unless None).

    out     extents of the result; the input has those that it needs
    inputs  which of weights and bias are inputs of the graph
    """
    net = Net()
    extents = _extents(out, kernel, stride, dilation, pad)
    if weights is None:
        shape = (*kernel, depth, 1) if kind == "DEPTHWISE_CONV2D" else (len(bias), *kernel, depth)
        weights = filled(shape)
    value = _convolved(
        net,
        kind,
        net.input((batch, *extents, depth), dtype),
        _given(net, weights, weight_dtype, "weights" in inputs),
        _given(net, np.array(bias, np.int64), SUMS[dtype], "bias" in inputs),
        weight_dtype,
        pad=pad,
        stride=stride,
        dilation=dilation,
    )
    return net.give(value if gives is None else net.rescale(value, gives, shift=shift))


def _extents(out: Pair, kernel: Pair, stride: Pair, dilation: Pair, pad: Sequence[int]) -> Pair:
    height, width = (
        (extent - 1) * step + (taps - 1) * apart + 1 - pad[2 * axis] - pad[2 * axis + 1]
        for axis, (extent, step, taps, apart) in enumerate(
            zip(out, stride, kernel, dilation, strict=True)
        )
    )
    return height, width


def _given(net: Net, values: npt.NDArray[Any], dtype: DType, dynamic: bool) -> Value:
    return net.input(values.shape, dtype) if dynamic else net.b.constant(values, dtype)


def _convolved(
    net: Net,
    kind: str,
    data: Value,
    weight: Value,
    bias: Value,
    weight_dtype: DType,
    **attributes: Any,
) -> Value:
    zeros = net.b.constant([0], data.dtype), net.b.constant([0], weight_dtype)
    return net.b(kind, data, weight, bias, *zeros, **attributes)


def transposed_conv(
    kernel: Pair = (3, 3),
    stride: Pair = (2, 2),
    *,
    out_pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    shape: Shape = (1, 4, 4, 4),
    dtype: DType = I8,
    inputs: Sequence[str] = (),
) -> Graph:
    """A TRANSPOSE_CONV2D to 4 channels and its rescale."""
    net = Net()
    value = _convolved(
        net,
        "TRANSPOSE_CONV2D",
        net.input(shape, dtype),
        _given(net, filled((4, *kernel, shape[3])), I8, "weights" in inputs),
        _given(net, np.zeros(4), SUMS[dtype], "bias" in inputs),
        I8,
        out_pad=out_pad,
        stride=stride,
    )
    return net.give(net.rescale(value, dtype))


def conv3d(
    kernel: tuple[int, int, int] = (1, 3, 3),
    stride: tuple[int, int, int] = (1, 1, 1),
    *,
    dtype: DType = I8,
    inputs: Sequence[str] = (),
) -> Graph:
    """A CONV3D of [1,4,12,12,4] and its rescale."""
    net = Net()
    depth, height, width = (3 * step + taps for step, taps in zip(stride, kernel, strict=True))
    value = _convolved(
        net,
        "CONV3D",
        net.input((1, depth, height, width, 4), dtype),
        _given(net, filled((4, *kernel, 4)), I8, "weights" in inputs),
        _given(net, np.zeros(4), SUMS[dtype], "bias" in inputs),
        I8,
        pad=(0,) * 6,
        stride=stride,
    )
    return net.give(net.rescale(value, dtype))


def pool(
    kind: str,
    kernel: Pair = (2, 2),
    stride: Pair = (2, 2),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    *,
    out: Pair = (4, 4),
    depth: int = 4,
    batch: int = 1,
    dtype: DType = I8,
) -> Graph:
    """A pooling."""
    net = Net()
    value = net.input((batch, *_extents(out, kernel, stride, (1, 1), pad), depth), dtype)
    zero = net.b.constant([0], dtype)
    operands = (value, zero, zero) if kind == "AVG_POOL2D" else (value,)
    return net.give(net.b(kind, *operands, kernel=kernel, stride=stride, pad=pad))


def matmul(
    rows: int = 4,
    inner: int = 4,
    columns: int = 4,
    *,
    batch: int = 1,
    dtype: DType = I8,
    constant: bool = False,
) -> Graph:
    """[batch, rows, inner] x [batch, inner, columns] and its rescale."""
    net = Net()
    zero = net.b.constant([0], dtype)
    right = (batch, inner, columns)
    second = net.b.constant(filled(right), dtype) if constant else net.input(right, dtype)
    value = net.b("MATMUL", net.input((batch, rows, inner), dtype), second, zero, zero)
    return net.give(net.rescale(value, dtype))


def resize(
    mode: ResizeMode,
    factor: Pair,
    *,
    extents: Pair = (4, 4),
    halves: bool = False,
    dtype: DType = I8,
    shift: int | None = None,
    alone: bool = False,
) -> Graph:
    """A RESIZE by whole factors; a bilinear one with the rescale that divides by both factors.

    halves  centres of pixels are at halves; else corners stay in place
    shift   another than the rescale needs
    """
    net = Net()
    (up_y, up_x), (height, width) = factor, extents
    if halves:
        scale = (2 * up_y, 2, 2 * up_x, 2)
        offset, border = (1 - up_y, 1 - up_x), (up_y - 1, up_x - 1)
    else:
        scale, offset, border = (up_y, 1, up_x, 1), (0, 0), (0, 0)
    b = net.b
    value = b(
        "RESIZE",
        net.input((1, height, width, 4), dtype),
        b.shape(scale),
        b.shape(offset),
        b.shape(border),
        mode=mode,
    )
    if mode is ResizeMode.NEAREST or alone:
        return net.give(value)
    whole = scale[0] * scale[2]
    exact = whole.bit_length() - 1 if shift is None else shift
    multiplier = (1 << 30) if dtype is I8 else (1 << 14)
    return net.give(net.rescale(value, dtype, multiplier, exact + (30 if dtype is I8 else 14)))


def shifted(kind: str, dtype: DType, **attributes: Any) -> Graph:
    """A shift of one tensor by another."""
    return one(kind, MAP, MAP, dtype=dtype, **attributes)


def looked_up(dtype: DType) -> Graph:
    """A TABLE."""
    net = Net()
    size = 256 if dtype is I8 else 513
    table = net.b.constant(np.arange(size) % 100, dtype)
    return net.give(net.b("TABLE", net.input(MAP, dtype), table))


def picked(shape: Shape = (2, 3, 4), indices: Shape = (2, 5), dtype: DType = I8) -> Graph:
    """A GATHER."""
    net = Net()
    return net.give(net.b("GATHER", net.input(shape, dtype), net.input(indices, I32)))


def put(shape: Shape = (2, 3, 4), indices: Shape = (2, 2), dtype: DType = I8) -> Graph:
    """A SCATTER."""
    net = Net()
    values = net.input(shape, dtype), net.input(indices, I32)
    return net.give(net.b("SCATTER", *values, net.input((*indices, shape[2]), dtype)))


def selected(dtype: DType = I8) -> Graph:
    """A SELECT by an input."""
    net = Net()
    return net.give(net.b("SELECT", net.input(MAP, BOOL), *(net.input(MAP, dtype),) * 2))


def shifted_by(places: int, *, round: bool) -> Graph:
    """An ARITHMETIC_RIGHT_SHIFT by a constant."""
    net = Net()
    shifts = net.b.constant(np.full(MAP, places), I32)
    return net.give(net.b("ARITHMETIC_RIGHT_SHIFT", net.input(MAP, I32), shifts, round=round))


def summed_twice() -> Graph:
    """A CONV2D whose 48-bit sums two RESCALEs take."""
    net = Net()
    zeros = net.b.constant([0], I16), net.b.constant([0], I8)
    weights, bias = net.b.constant(filled((4, 1, 1, 8)), I8), net.b.constant(np.zeros(4), I48)
    data, pads, single = net.input(MAP, I16), (0, 0, 0, 0), (1, 1)
    value = net.b("CONV2D", data, weights, bias, *zeros, pad=pads, stride=single, dilation=single)
    return net.give(net.rescale(value, I16), net.rescale(value, I16, shift=20))
