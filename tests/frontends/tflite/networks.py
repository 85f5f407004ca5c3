"""Random networks of one operator: shapes, scales, zero points and options from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

Shape = tuple[int, ...]


@dataclass
class Draw:
    """Draws from a seed, and builds a network of what it drew; data are of type `dtype`.

    long_bias  whether the bias of 16-bit data must have 64 bits
    """

    seed: int
    dtype: str = "int8"
    long_bias: bool = False

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.net = NetworkBuilder("random")

    def number(self, low: int, high: int) -> int:
        """Draw a number from low to high."""
        return int(self.rng.integers(low, high, endpoint=True))

    def shape(self, rank: int, most: int = 9) -> Shape:
        """Draw extents."""
        return tuple(self.number(1, most) for _ in range(rank))

    def scale(self, low: float = 0.002, high: float = 0.5) -> float:
        """Draw a scale."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def zero_point(self) -> int:
        """Draw a zero point; 16-bit data have none."""
        info = np.iinfo(self.dtype)
        return 0 if info.bits == 16 else self.number(info.min, info.max)

    def tensor(self, shape: Shape, scale: float | None = None, zero: int | None = None) -> int:
        """Add a tensor."""
        zero_point = self.zero_point() if zero is None else zero
        return self.net.tensor("t", shape, self.dtype, scale or self.scale(), zero_point)

    def values(self, shape: Shape, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """Draw integers of a type."""
        info = np.iinfo(dtype or self.dtype)
        return self.rng.integers(info.min, info.max, shape, endpoint=True).astype(info.dtype)

    def window(self) -> dict[str, Any]:
        """Draw stride, padding scheme and fused activation."""
        return {
            "stride_h": self.number(1, 3),
            "stride_w": self.number(1, 3),
            "padding": self.number(0, 1),
            "fused_activation_function": self.number(0, 3),
        }

    def one(self, kind: str, inputs: list[int], y: int, options: tuple[str, Any] | None) -> bytes:
        """Return the network of one operator, whose first input is its input too."""
        self.net.operator(kind, inputs, [y], options)
        return self.net.finish([inputs[0]], [y])


def places(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """Return how many windows there are along an axis."""
    span = (kernel - 1) * dilation + 1
    return -(-(size if padding == 0 else size - span + 1) // stride)


def convolution(seed: int, dtype: str, *, depthwise: bool) -> bytes:
    """CONV_2D or DEPTHWISE_CONV_2D, per channel or not, with a bias or without."""
    d = Draw(seed, dtype)
    d.long_bias = depthwise
    options, kernel = d.window(), d.shape(2, 4)
    dilation = d.number(1, 2), d.number(1, 2)
    n, h, w, c = d.number(1, 2), d.number(8, 14), d.number(8, 14), d.number(1, 9)
    outputs = c * d.number(1, 3) if depthwise else d.number(1, 12)
    out = [
        places(size, kernel[axis], options["stride_" + "hw"[axis]], options["padding"],
               dilation[axis])
        for axis, size in enumerate((h, w))
    ]  # fmt: skip
    options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
    shape = (1, *kernel, outputs) if depthwise else (outputs, *kernel, c)
    kind, table = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions")
    if depthwise:
        options["depth_multiplier"] = outputs // c
    else:
        kind, table = ("CONV_2D", "Conv2DOptions")
    scale = d.scale()
    x = d.tensor((n, h, w, c), scale)
    inputs = [x, *_weighted(d, shape, 3 if depthwise else 0, outputs, scale)]
    y = d.tensor((n, *out, outputs), d.scale(0.02, 4.0))
    return d.one(kind, inputs, y, (table, options))


def _weighted(d: Draw, shape: Shape, axis: int, outputs: int, x: float) -> list[int]:
    """Weights and, mostly, a bias; `x` is the scale of the input."""
    unsigned = d.dtype == "uint8"
    several = not unsigned and bool(d.number(0, 1))
    scales = [d.scale(0.001, 0.05) for _ in range(outputs if several else 1)]
    data = d.values(shape, "uint8" if unsigned else "int8")
    zero = d.number(0, 255) if unsigned else 0
    weights = d.net.constant("w", data, scales, zero, axis=axis)
    if not d.number(0, 3) and not unsigned:
        return [weights]
    wide = d.dtype == "int16" and (d.long_bias or d.number(0, 1))
    bias = d.rng.integers(-5000, 5000, outputs).astype(np.int64 if wide else np.int32)
    return [weights, d.net.constant("b", bias, [x * scale for scale in scales])]


def transposed(seed: int, dtype: str) -> bytes:
    """TRANSPOSE_CONV."""
    d = Draw(seed, dtype)
    options, kernel = d.window(), d.shape(2, 4)
    n, h, w, c = d.number(1, 2), *d.shape(2, 6), d.number(1, 6)
    outputs = d.number(1, 7)
    strides = options["stride_h"], options["stride_w"]
    valid = options["padding"] == 1
    out = [
        size * stride + (max(reach - stride, 0) if valid else 0)
        for size, stride, reach in zip((h, w), strides, kernel, strict=True)
    ]
    size = d.net.constant("size", np.array([n, *out, outputs], np.int32))
    scale = d.scale()
    x = d.tensor((n, h, w, c), scale)
    d.long_bias = True
    weights, *bias = _weighted(d, (outputs, *kernel, c), 0, outputs, scale)
    y = d.tensor((n, *out, outputs), d.scale(0.02, 4.0))
    d.net.operator("TRANSPOSE_CONV", [size, weights, x, *bias], [y],
                   ("TransposeConvOptions", options), version=3)  # fmt: skip
    return d.net.finish([x], [y])


def dense(seed: int, dtype: str) -> bytes:
    """FULLY_CONNECTED of a tensor of any rank."""
    d = Draw(seed, dtype)
    inputs, outputs, lead = d.number(1, 60), d.number(1, 20), d.shape(d.number(1, 3), 3)
    keep = len(lead) > 1
    scale = d.scale()
    x = d.tensor((*lead, inputs), scale)
    weights = _weighted(d, (outputs, inputs), 0, outputs, scale)
    y = d.tensor((*lead, outputs), d.scale(0.02, 4.0))
    options = {"keep_num_dims": keep, "fused_activation_function": d.number(0, 3)}
    return d.one("FULLY_CONNECTED", [x, *weights], y, ("FullyConnectedOptions", options))


def pool(seed: int, dtype: str) -> bytes:
    """AVERAGE_POOL_2D or MAX_POOL_2D."""
    d = Draw(seed, dtype)
    options, kernel = d.window(), d.shape(2, 6)
    n, h, w, c = d.number(1, 2), d.number(6, 13), d.number(6, 13), d.number(1, 9)
    strides = options["stride_h"], options["stride_w"]
    out = [
        places(size, reach, stride, options["padding"])
        for size, reach, stride in zip((h, w), kernel, strides, strict=True)
    ]
    options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
    scale, zero = d.scale(), d.zero_point()
    x, y = d.tensor((n, h, w, c), scale, zero), d.tensor((n, *out, c), scale, zero)
    kind = ("AVERAGE_POOL_2D", "MAX_POOL_2D")[d.number(0, 1)]
    return d.one(kind, [x], y, ("Pool2DOptions", options))


def sum_or_product(seed: int, dtype: str) -> bytes:
    """ADD, SUB or MUL of two inputs, or of an input and a constant, that broadcast."""
    d = Draw(seed, dtype)
    kind, table = (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"))[
        d.number(0, 2)
    ]
    shape = d.shape(d.number(1, 4), 6)
    other = tuple(1 if d.number(0, 2) == 0 else extent for extent in shape)
    other = other[d.number(0, len(other) - 1) :]
    scales = d.scale(), d.scale()
    x = d.tensor(shape, scales[0])
    fixed = bool(d.number(0, 1))
    if fixed:
        second = d.net.constant("c", d.values(other), scales[1], d.zero_point())
    else:
        second = d.tensor(other, scales[1])
    wide = scales[0] * scales[1] * (2000 if dtype == "int16" else 20)
    y = d.tensor(shape, wide if kind == "MUL" else max(scales) * d.scale(0.5, 2.0))
    options: dict[str, Any] = {"fused_activation_function": d.number(0, 3)}
    if dtype == "int16" and kind != "MUL":
        options["pot_scale_int16"] = False
    order = [x, second] if d.number(0, 1) else [second, x]
    d.net.operator(kind, order, [y], (table, options))
    return d.net.finish([x] if fixed else [x, second], [y])


def reduction(seed: int, dtype: str) -> bytes:
    """MEAN or SUM along any axes, which stay or go."""
    d = Draw(seed, dtype)
    shape, keep = d.shape(4, 8), bool(d.number(0, 1))
    axes = sorted(d.rng.choice(4, d.number(1, 3), replace=False).tolist())
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    out = kept if keep else [extent for axis, extent in enumerate(shape) if axis not in axes]
    given = [axis - 4 if d.number(0, 1) else axis for axis in axes]
    x = d.tensor(shape)
    axis = d.net.constant("axes", np.array(given, np.int32))
    y = d.tensor(tuple(out))
    kind = ("MEAN", "SUM")[d.number(0, 1)]
    return d.one(kind, [x, axis], y, ("ReducerOptions", {"keep_dims": keep}))


def strided_slice(seed: int, dtype: str) -> bytes:
    """STRIDED_SLICE with steps of both signs, masks, and bounds counted from the end."""
    d = Draw(seed, dtype)
    rank = d.number(1, 4)
    shape = d.shape(rank, 9)
    begin, end, steps, masks, out = [], [], [], [0, 0, 0], list[int]()
    for axis, extent in enumerate(shape):
        step = d.number(1, 3) * (1 if d.number(0, 2) else -1)
        first, last = sorted((d.number(0, extent - 1), d.number(0, extent - 1)))
        last += 1
        if step < 0:
            first, last = last - 1, first - 1 - extent if first == 0 else first - 1
        single = not d.number(0, 4)
        open_start, open_end = not d.number(0, 3), not d.number(0, 3)
        for bit, mask in enumerate((open_start, open_end, single)):
            masks[bit] |= int(mask) << axis
        begin.append(first - extent if d.number(0, 1) else first)
        end.append(last)
        steps.append(1 if single else step)
        if not single:
            bounds = slice(None if open_start else first, None if open_end else last, step)
            out.append(len(range(*bounds.indices(extent))))
    scale, zero = d.scale(), d.zero_point()
    x = d.tensor(shape, scale, zero)
    fixed = [d.net.constant("c", np.array(values, np.int32)) for values in (begin, end, steps)]
    y = d.tensor(tuple(out), scale, zero)
    options = {"begin_mask": masks[0], "end_mask": masks[1], "shrink_axis_mask": masks[2]}
    return d.one("STRIDED_SLICE", [x, *fixed], y, ("StridedSliceOptions", options))


def resized(seed: int, *, bilinear: bool) -> bytes:
    """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR to any size."""
    d = Draw(seed)
    n, h, w, c = d.number(1, 2), *d.shape(2, 9), d.number(1, 5)
    size = d.number(max(1, h // 3), 20), d.number(max(1, w // 3), 20)
    style = d.number(0, 2)
    options = {"align_corners": style == 1, "half_pixel_centers": style == 2}
    scale, zero = d.scale(), d.zero_point()
    x = d.tensor((n, h, w, c), scale, zero)
    to = d.net.constant("size", np.array(size, np.int32))
    y = d.tensor((n, *size, c), scale, zero)
    kind = "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR"
    table = "ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions"
    return d.one(kind, [x, to], y, (table, options))


def function(kind: str, seed: int, dtype: str) -> bytes:
    """Of all 256 integers of one byte: a function with its own output scale, or a drawn one."""
    d = Draw(seed, dtype)
    low = int(np.iinfo(dtype).min)
    own = {"LOGISTIC": (1 / 256, low), "TANH": (1 / 128, low + 128)}.get(kind)
    scale = d.scale(0.0005, 0.9)
    x = d.tensor((256,), scale)
    y = d.tensor((256,), *own) if own else d.tensor((256,), scale * d.scale(0.25, 4.0))
    options = None
    if kind == "LEAKY_RELU":
        options = ("LeakyReluOptions", {"alpha": float(np.float32(d.rng.uniform(-1, 2)))})
    return d.one(kind, [x], y, options)


def far_function(kind: str, seed: int, dtype: str) -> bytes:
    """Of all 256 integers of one byte: a function between scales that are far from one another."""
    d = Draw(seed, dtype)
    x, y = (d.tensor((256,), 10 ** d.rng.uniform(-7, 2)) for _ in range(2))
    return d.one(kind, [x], y, None)


def blocks(kind: str, seed: int) -> bytes:
    """DEPTH_TO_SPACE or SPACE_TO_DEPTH."""
    d = Draw(seed)
    n, h, w, c = d.shape(4, 4)
    block = d.number(2, 3)
    deep, flat = (n, h, w, c * block * block), (n, h * block, w * block, c)
    before, after = (deep, flat) if kind == "DEPTH_TO_SPACE" else (flat, deep)
    scale, zero = d.scale(), d.zero_point()
    x, y = d.tensor(before, scale, zero), d.tensor(after, scale, zero)
    table = "DepthToSpaceOptions" if kind == "DEPTH_TO_SPACE" else "SpaceToDepthOptions"
    return d.one(kind, [x], y, (table, {"block_size": block}))


# Where integers are nearest to a tie between two results, the last bit of a scale decides.

TIES = 200
"""Outputs of a network of ties."""


def f32(number: float) -> float:
    """Round to a float32, as scales in a file are."""
    return float(np.float32(number))


def sums_at_ties(kind: str, dtype: str, seed: int) -> bytes:
    """CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV or FULLY_CONNECTED that gives its biases: sums
    between the ties of a scale whose product is rounded to float32 and of one whose is not."""
    d = Draw(seed, dtype)
    zero, filler = {"int8": (3, 0), "uint8": (120, 7), "int16": (0, 0)}[dtype]
    x_scale, w_scale = f32(d.scale(0.01, 0.5)), f32(d.scale(0.001, 0.05))
    y_scale = f32(x_scale * w_scale * 2**30 / 100)
    halves = d.rng.integers(-90, 90, TIES) + 0.5
    exact = x_scale * w_scale
    between = 1 - d.rng.uniform(0, 1, TIES) * (f32(exact) / exact - 1)
    biases = np.round(halves * y_scale / exact * between).astype(np.int32)
    deep = kind == "DEPTHWISE_CONV_2D"
    shape, out = (1, 1, 1, TIES if deep else 1), (1, 1, 1, TIES)
    x, y = d.tensor(shape, x_scale, zero), d.tensor(out, y_scale, zero + 2 if filler else 0)
    form = (1, 1, 1, TIES) if deep else (TIES, 1, 1, 1)
    if kind == "FULLY_CONNECTED":
        form = (TIES, 1)
    data = np.full(form, filler + 1, np.uint8 if dtype == "uint8" else np.int8)
    weights = d.net.constant("w", data, w_scale, filler)
    bias = d.net.constant("b", biases, exact)
    inputs = [x, weights, bias]
    if kind == "TRANSPOSE_CONV":
        inputs = [d.net.constant("size", np.array(out, np.int32)), weights, x, bias]
    table, options = LAYERS[kind]
    d.net.operator(kind, inputs, [y], (table, options), version=3)
    return d.net.finish([x], [y])


STEP: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": 1}
LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "CONV_2D": ("Conv2DOptions", STEP),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", {**STEP, "depth_multiplier": 1}),
    "TRANSPOSE_CONV": ("TransposeConvOptions", STEP),
    "FULLY_CONNECTED": ("FullyConnectedOptions", {}),
}


def function_at_tie(kind: str, dtype: str, seed: int) -> bytes:
    """Of all integers of a byte, RELU, LEAKY_RELU or QUANTIZE; one of them is about at a tie."""
    d = Draw(seed, dtype)
    low = int(np.iinfo(dtype).min)
    sign = 255 if kind == "LEAKY_RELU" else 0
    x_scale, alpha = f32(d.scale(0.002, 0.4)), f32(d.rng.uniform(0.05, 0.9))
    factor = alpha if kind == "LEAKY_RELU" else 1.0
    y_scale = f32(x_scale * factor * d.number(100, 250) / (d.number(20, 120) + 0.5))
    x, y = d.tensor((256,), x_scale, low + sign), d.tensor((256,), y_scale, low + sign)
    options = ("LeakyReluOptions", {"alpha": alpha}) if kind == "LEAKY_RELU" else None
    return d.one(kind, [x], y, options)


def binary_at_tie(kind: str, dtype: str, seed: int) -> bytes:
    """ADD, SUB or MUL of all bytes with all bytes; one result is about at a tie."""
    d = Draw(seed, dtype)
    low = int(np.iinfo(dtype).min)
    a, b = f32(d.scale(0.01, 0.1)), f32(d.scale(0.01, 0.1))
    v, w, half = d.number(150, 250), d.number(1, 15), d.number(20, 200) + 0.5
    real = {"ADD": a * v + b * w, "SUB": a * v - b * w, "MUL": a * v * b * w}[kind]
    x = d.tensor((256, 1), a, low)
    z = d.tensor((1, 256), b, low)
    y = d.tensor((256, 256), f32(abs(real) / half), low)
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[kind]
    d.net.operator(kind, [x, z], [y], (table, {}))
    return d.net.finish([x, z], [y])


def bound_at_tie(kind: str, dtype: str, seed: int) -> bytes:
    """RELU6, or MAX_POOL_2D with it, whose bound is about at a tie."""
    d = Draw(seed, dtype)
    low = int(np.iinfo(dtype).min)
    scale = np.float32(6 / (d.number(20, 250) + 0.5))
    for _ in range(d.number(0, 2)):
        scale = np.nextafter(scale, np.float32(d.number(0, 1)))
    x, y = (d.tensor((1, 1, 1, 256), float(scale), low) for _ in "xy")
    if kind == "RELU6":
        return d.one(kind, [x], y, None)
    window = {**STEP, "filter_height": 1, "filter_width": 1, "fused_activation_function": 3}
    return d.one(kind, [x], y, ("Pool2DOptions", window))


def line(size: int, new_size: int, style: int) -> bytes:
    """RESIZE_NEAREST_NEIGHBOR of a line: plain, of aligned corners, of half pixels."""
    d = Draw(0)
    x = d.tensor((1, size, 1, 1), 0.1, 0)
    to = d.net.constant("size", np.array([new_size, 1], np.int32))
    y = d.tensor((1, new_size, 1, 1), 0.1, 0)
    options = {"align_corners": style == 1, "half_pixel_centers": style == 2}
    return d.one("RESIZE_NEAREST_NEIGHBOR", [x, to], y, ("ResizeNearestNeighborOptions", options))
