"""Networks of a single operator with random contents: what the NPU must compute like the kernels.

A case is a name and a function that builds the `.tflite` file. Scales are chosen so that outputs
spread over their whole range: an error anywhere shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

Shape = tuple[int, ...]

SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
SCALE = {"int8": 0.05, "uint8": 0.05, "int16": 0.0004, "int32": 0.0001}
ZERO = {"int8": 7, "uint8": 121, "int16": 0, "int32": 0}
SPREAD = {"int8": 74.0, "uint8": 74.0, "int16": 18900.0}
"""Standard deviation of uniformly random values of the type."""


@dataclass(frozen=True)
class Case:
    """One network."""

    name: str
    build: Callable[[], bytes]


@dataclass(frozen=True)
class Q:
    """A quantisation."""

    scale: float
    zero_point: int = 0


def quantization(dtype: str) -> Q:
    return Q(SCALE[dtype], ZERO[dtype])


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def one(
    name: str,
    kind: str,
    shapes: Sequence[Shape],
    outputs: Sequence[Shape],
    dtype: str = "int8",
    options: tuple[str, dict[str, Any]] | None = None,
    *,
    constants: Sequence[np.ndarray[Any, Any]] = (),
    constants_first: bool = False,
    in_q: Sequence[Q] | None = None,
    out_q: Q | None = None,
    out_dtype: str | None = None,
) -> Case:
    """A network of one operator: real inputs, then constants (or the other way round)."""

    def build() -> bytes:
        net = NetworkBuilder(name)
        scales = in_q or [quantization(dtype)] * len(shapes)
        inputs = [
            net.tensor(f"x{i}", shape, dtype, *_q(scales[i])) for i, shape in enumerate(shapes)
        ]
        fixed = [net.constant(f"c{i}", data) for i, data in enumerate(constants)]
        of = out_dtype or dtype
        result = out_q or (scales[0] if of == dtype else quantization(of))
        made = [
            net.tensor(f"y{i}", shape, of)
            if of == "int32"
            else net.tensor(f"y{i}", shape, of, *_q(result))
            for i, shape in enumerate(outputs)
        ]
        order = [*fixed, *inputs] if constants_first else [*inputs, *fixed]
        net.operator(kind, order, made, options)
        return net.finish(inputs, made)

    return Case(name, build)


def _q(q: Q) -> tuple[float, int]:
    return q.scale, q.zero_point


def i32(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


# Convolutions


@dataclass(frozen=True)
class Window:
    """A convolution's window: sizes y, x; padding scheme; fused activation."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: int = SAME
    activation: int = NONE

    def output(self, height: int, width: int) -> tuple[int, int]:
        sizes: list[int] = []
        for size, k, s, d in zip((height, width), self.kernel, self.stride, self.dilation,
                                 strict=True):  # fmt: skip
            span = size if self.padding == SAME else size - (k - 1) * d
            sizes.append(-(-span // s))
        return sizes[0], sizes[1]

    @property
    def label(self) -> str:
        k, s, d = self.kernel, self.stride, self.dilation
        padding = "same" if self.padding == SAME else "valid"
        return (
            f"k{k[0]}x{k[1]}_s{s[0]}x{s[1]}_d{d[0]}x{d[1]}_{padding}"
            + (f"_act{self.activation}" if self.activation else "")
        )  # fmt: skip


def _weighted(
    net: NetworkBuilder,
    name: str,
    shape: Shape,
    channels: int,
    axis: int,
    dtype: str,
    fan_in: int,
    *,
    per_channel: bool = True,
) -> tuple[int, int, Q]:
    """Weights, bias and the output's quantisation of a convolution or dense layer."""
    rng = rng_of(name)
    low = -127 if dtype != "uint8" else 0
    weight_type = np.uint8 if dtype == "uint8" else np.int8
    data = rng.integers(low, low + 255, shape).astype(weight_type)
    scales = rng.uniform(0.004, 0.02, channels if per_channel else 1)
    zero_point = 131 if dtype == "uint8" else 0
    weights = net.constant("w", data, scales.tolist(), zero_point, axis=axis)
    in_scale = SCALE[dtype]
    wide = dtype == "int16"
    accumulator = SPREAD[dtype] * 74.0 * np.sqrt(fan_in)
    bias_data = rng.integers(-int(accumulator), int(accumulator) + 1, channels)
    bias_scales = (in_scale * np.broadcast_to(scales, channels if per_channel else 1)).tolist()
    bias = net.constant("b", bias_data.astype(np.int64 if wide else np.int32), bias_scales)
    target = 10000.0 if wide else 40.0
    out = Q(float(in_scale * 0.012 * accumulator / target), 0 if wide else ZERO[dtype] - 10)
    return weights, bias, out


def conv(shape: Shape, channels: int, w: Window, dtype: str = "int8", **more: Any) -> Case:
    label = f"conv_{'x'.join(map(str, shape))}_o{channels}_{w.label}_{dtype}"

    def build() -> bytes:
        net = NetworkBuilder(label)
        x = net.tensor("x", shape, dtype, SCALE[dtype], ZERO[dtype])
        depth = shape[3]
        fan_in = w.kernel[0] * w.kernel[1] * depth
        weights, bias, out_q = _weighted(
            net, label, (channels, *w.kernel, depth), channels, 0, dtype, fan_in, **more
        )
        height, width = w.output(shape[1], shape[2])
        y = net.tensor("y", (shape[0], height, width, channels), dtype, *_q(out_q))
        options = {
            "padding": w.padding,
            "stride_h": w.stride[0],
            "stride_w": w.stride[1],
            "dilation_h_factor": w.dilation[0],
            "dilation_w_factor": w.dilation[1],
            "fused_activation_function": w.activation,
        }
        net.operator("CONV_2D", [x, weights, bias], [y], ("Conv2DOptions", options), version=3)
        return net.finish([x], [y])

    return Case(label, build)


def depthwise(shape: Shape, multiplier: int, w: Window, dtype: str = "int8", **more: Any) -> Case:
    label = f"dw_{'x'.join(map(str, shape))}_m{multiplier}_{w.label}_{dtype}"

    def build() -> bytes:
        net = NetworkBuilder(label)
        x = net.tensor("x", shape, dtype, SCALE[dtype], ZERO[dtype])
        channels = shape[3] * multiplier
        fan_in = w.kernel[0] * w.kernel[1]
        weights, bias, out_q = _weighted(
            net, label, (1, *w.kernel, channels), channels, 3, dtype, fan_in, **more
        )
        height, width = w.output(shape[1], shape[2])
        y = net.tensor("y", (shape[0], height, width, channels), dtype, *_q(out_q))
        options = {
            "padding": w.padding,
            "stride_h": w.stride[0],
            "stride_w": w.stride[1],
            "dilation_h_factor": w.dilation[0],
            "dilation_w_factor": w.dilation[1],
            "depth_multiplier": multiplier,
            "fused_activation_function": w.activation,
        }
        net.operator(
            "DEPTHWISE_CONV_2D", [x, weights, bias], [y], ("DepthwiseConv2DOptions", options),
            version=3,
        )  # fmt: skip
        return net.finish([x], [y])

    return Case(label, build)


def dense(batch: int, inputs: int, outputs: int, dtype: str = "int8", activation: int = 0) -> Case:
    label = f"fc_{batch}x{inputs}_o{outputs}_act{activation}_{dtype}"

    def build() -> bytes:
        net = NetworkBuilder(label)
        x = net.tensor("x", (batch, inputs), dtype, SCALE[dtype], ZERO[dtype])
        weights, bias, out_q = _weighted(
            net, label, (outputs, inputs), outputs, 0, dtype, inputs, per_channel=False
        )
        y = net.tensor("y", (batch, outputs), dtype, *_q(out_q))
        options = {"fused_activation_function": activation}
        net.operator("FULLY_CONNECTED", [x, weights, bias], [y],
                     ("FullyConnectedOptions", options), version=4)  # fmt: skip
        return net.finish([x], [y])

    return Case(label, build)


def transpose_conv(
    shape: Shape, channels: int, kernel: tuple[int, int], stride: tuple[int, int],
    padding: int = SAME, dtype: str = "int8",
) -> Case:  # fmt: skip
    scheme = "same" if padding == SAME else "valid"
    label = (
        f"tconv_{'x'.join(map(str, shape))}_o{channels}_k{kernel[0]}x{kernel[1]}"
        f"_s{stride[0]}x{stride[1]}_{scheme}_{dtype}"
    )

    def build() -> bytes:
        net = NetworkBuilder(label)
        x = net.tensor("x", shape, dtype, SCALE[dtype], ZERO[dtype])
        weights, bias, out_q = _weighted(
            net, label, (channels, *kernel, shape[3]), channels, 0, dtype,
            kernel[0] * kernel[1] * shape[3] // (stride[0] * stride[1]),
        )  # fmt: skip
        extra = [max(k - s, 0) if padding == VALID else 0 for k, s in zip(kernel, stride,
                                                                         strict=True)]  # fmt: skip
        out_shape = (shape[0], shape[1] * stride[0] + extra[0], shape[2] * stride[1] + extra[1],
                     channels)  # fmt: skip
        size = net.constant("size", i32(*out_shape))
        y = net.tensor("y", out_shape, dtype, *_q(out_q))
        options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        net.operator("TRANSPOSE_CONV", [size, weights, x, bias], [y],
                     ("TransposeConvOptions", options), version=3)  # fmt: skip
        return net.finish([x], [y])

    return Case(label, build)


# Pooling and reductions


def pool(kind: str, shape: Shape, w: Window, dtype: str = "int8") -> Case:
    height, width = w.output(shape[1], shape[2])
    options = {
        "padding": w.padding,
        "stride_h": w.stride[0],
        "stride_w": w.stride[1],
        "filter_height": w.kernel[0],
        "filter_width": w.kernel[1],
        "fused_activation_function": w.activation,
    }
    name = f"{kind.lower()}_{'x'.join(map(str, shape))}_{w.label}_{dtype}"
    out = (shape[0], height, width, shape[3])
    return one(name, kind, [shape], [out], dtype, ("Pool2DOptions", options))


def reduce(kind: str, shape: Shape, axes: tuple[int, ...], dtype: str = "int8",
           out_q: Q | None = None, *, keep: bool = True) -> Case:  # fmt: skip
    out = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if not keep:
        out = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    name = f"{kind.lower()}_{'x'.join(map(str, shape))}_axes{''.join(map(str, axes))}_{dtype}"
    name += "" if keep else "_dropped"
    name += "" if out_q is None else "_rescaled"
    options = ("ReducerOptions", {"keep_dims": keep})
    return one(name, kind, [shape], [out], dtype, options, constants=[i32(*axes)], out_q=out_q)


# Elementwise operations of two operands


BINARY_OPTIONS = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
}


def binary(kind: str, a: Shape, b: Shape, dtype: str = "int8", activation: int = NONE) -> Case:
    out = tuple(np.broadcast_shapes(a, b))
    shapes = f"{'x'.join(map(str, a))}_{'x'.join(map(str, b))}"
    name = f"{kind.lower()}_{shapes}_{dtype}" + (f"_act{activation}" if activation else "")
    # The compiler multiplies int16 scales in single precision: powers of two are exact in it.
    s, z = (2.0**-11 if (kind, dtype) == ("MUL", "int16") else SCALE[dtype]), ZERO[dtype]
    same = kind in ("MAXIMUM", "MINIMUM")
    in_q = [Q(s, z), Q(s, z) if same else Q(s * 0.375, -z // 3 if dtype == "int8" else z)]
    factors = {"ADD": 1.3, "SUB": 1.3, "MUL": s * (30 if dtype != "int16" else 8192),
               "SQUARED_DIFFERENCE": s * (80 if dtype != "int16" else 20000)}  # fmt: skip
    out_q = Q(s * factors.get(kind, 1.0), z)
    options: dict[str, Any] = {"fused_activation_function": activation} if activation else {}
    if kind in ("ADD", "SUB") and dtype == "int16":
        options["pot_scale_int16"] = False
    return one(name, kind, [a, b], [out], dtype, (BINARY_OPTIONS[kind], options),
               in_q=in_q, out_q=out_q)  # fmt: skip


# Functions of one operand


def unary(kind: str, dtype: str = "int8", options: tuple[str, dict[str, Any]] | None = None,
          in_q: Q | None = None, out_q: Q | None = None, shape: Shape = (1, 5, 7, 9),
          label: str = "") -> Case:  # fmt: skip
    name = f"{kind.lower()}{label}_{'x'.join(map(str, shape))}_{dtype}"
    return one(name, kind, [shape], [shape], dtype, options,
               in_q=[in_q or quantization(dtype)], out_q=out_q)  # fmt: skip


def prelu() -> Case:
    def build() -> bytes:
        net = NetworkBuilder("prelu")
        x = net.tensor("x", (1, 5, 6, 7), "int8", 0.05, 7)
        alpha = rng_of("prelu").integers(-128, 128, (1, 1, 7)).astype(np.int8)
        slope = net.constant("alpha", alpha, 0.004, -20)
        y = net.tensor("y", (1, 5, 6, 7), "int8", 0.045, -30)
        net.operator("PRELU", [x, slope], [y])
        return net.finish([x], [y])

    return Case("prelu_int8", build)


# Moving data


def pad_v2() -> Case:
    def build() -> bytes:
        net = NetworkBuilder("pad_v2")
        x = net.tensor("x", (1, 5, 4, 6), "int8", 0.05, 7)
        sides = net.constant("sides", np.array([[0, 0], [1, 2], [3, 2], [0, 0]], np.int32))
        value = net.constant("value", np.array([-77], np.int8), 0.05, 7)
        y = net.tensor("y", (1, 8, 9, 6), "int8", 0.05, 7)
        net.operator("PADV2", [x, sides, value], [y], ("PadV2Options", {}))
        return net.finish([x], [y])

    return Case("pad_v2", build)


# Recurrent and dynamic


def lstm(dtype: str, *, time_major: bool = False) -> Case:
    steps, inputs, cells = 4, 6, 8
    name = f"lstm_{dtype}" + ("_time_major" if time_major else "")

    def build() -> bytes:
        net = NetworkBuilder(name)
        rng = rng_of(name)
        wide = dtype == "int16"
        hidden_q = Q(1 / 32768 if wide else 1 / 128, 0)
        x = net.tensor("x", (steps, 1, inputs) if time_major else (1, steps, inputs), dtype,
                       SCALE[dtype] / 2, ZERO[dtype])  # fmt: skip

        def weights(label: str, columns: int) -> int:
            data = rng.integers(-127, 128, (cells, columns)).astype(np.int8)
            return net.constant(label, data, 0.01)

        from_input = [weights(f"wi{gate}", inputs) for gate in range(4)]
        from_hidden = [weights(f"wr{gate}", cells) for gate in range(4)]
        scale = 0.01 * SCALE[dtype] / 2
        biases = [
            net.constant(f"b{gate}", rng.integers(-2000, 2000, cells).astype(
                np.int64 if wide else np.int32), scale)
            for gate in range(4)
        ]  # fmt: skip
        hidden = net.tensor("hidden", (1, cells), dtype, *_q(hidden_q), variable=True)
        cell = net.tensor("cell", (1, cells), "int16", 2.0**-11, 0, variable=True)
        y = net.tensor("y", (steps, 1, cells) if time_major else (1, steps, cells), dtype,
                       *_q(hidden_q))  # fmt: skip
        absent = -1
        order = [x, *from_input, *from_hidden, absent, absent, absent, *biases, absent, absent,
                 hidden, cell, absent, absent, absent, absent]  # fmt: skip
        between = [net.tensor(f"i{gate}", (0,), "int16", 2.0**-12) for gate in range(4)]
        between.append(net.tensor("i4", (0,), "int8", *_q(hidden_q)))
        options = {"fused_activation_function": 4, "cell_clip": 8.0, "time_major": time_major}
        net.operator(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            order,
            [y],
            ("UnidirectionalSequenceLSTMOptions", options),
            intermediates=between,
        )
        return net.finish([x], [y])

    return Case(name, build)
