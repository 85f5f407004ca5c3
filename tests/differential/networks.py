"""Networks of a single operator with random contents: what the NPU must compute like the kernels.

A case is a name and a function that builds the `.tflite` file. Scales are chosen so that outputs
spread over their whole range: an error anywhere shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
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


def convolutions() -> Iterator[Case]:
    yield conv((1, 7, 9, 5), 11, Window())
    yield conv((1, 8, 8, 3), 8, Window((5, 3), (2, 2)))
    yield conv((1, 9, 9, 16), 16, Window((1, 1)))
    yield conv((1, 6, 5, 40), 33, Window((1, 1), activation=RELU))
    yield conv((1, 11, 7, 20), 24, Window((3, 3), (1, 2), padding=VALID, activation=RELU6))
    yield conv((1, 12, 12, 4), 6, Window((3, 3), dilation=(2, 2)))
    yield conv((1, 12, 10, 17), 5, Window((2, 3), dilation=(1, 2), padding=VALID))
    yield conv((1, 20, 20, 2), 3, Window((11, 9), (3, 3)))
    yield conv((1, 1, 30, 7), 9, Window((1, 5), (1, 3)))
    yield conv((1, 24, 1, 6), 10, Window((7, 1)))
    yield conv((2, 5, 5, 8), 8, Window())
    yield conv((1, 13, 13, 100), 20, Window((3, 3)))
    yield conv((1, 5, 5, 8), 8, Window(), per_channel=False)
    yield conv((1, 7, 7, 6), 9, Window((3, 3)), "int16")
    yield conv((1, 7, 9, 20), 17, Window((3, 2), (2, 1), padding=VALID, activation=RELU), "int16")
    yield conv((1, 4, 4, 33), 8, Window((1, 1)), "int16")
    yield conv((1, 7, 7, 6), 9, Window((3, 3)), "uint8", per_channel=False)
    for shape, multiplier, window in (
        ((1, 9, 7, 11), 1, Window()),
        ((1, 9, 9, 16), 1, Window((3, 3), (2, 2))),
        ((1, 10, 8, 24), 1, Window((5, 3), padding=VALID, activation=RELU6)),
        ((1, 11, 11, 3), 1, Window((3, 3), dilation=(2, 2))),
        ((1, 8, 8, 1), 7, Window((3, 3), (2, 1))),
        ((1, 16, 16, 5), 1, Window((9, 10), (1, 3))),
        ((1, 6, 6, 40), 1, Window((1, 1))),
    ):
        yield depthwise(shape, multiplier, window)
    yield depthwise((1, 7, 8, 9), 1, Window((3, 3)), "int16")
    yield depthwise((1, 8, 8, 18), 1, Window((2, 3), (2, 2), activation=RELU), "int16")
    yield depthwise((1, 8, 8, 18), 1, Window((3, 3)), "uint8", per_channel=False)
    for batch, inputs, outputs in ((1, 17, 9), (1, 100, 40), (3, 12, 20), (16, 33, 8), (1, 1, 1)):
        yield dense(batch, inputs, outputs)
    yield dense(1, 64, 10, activation=RELU)
    yield dense(1, 40, 12, "int16")
    yield dense(4, 20, 12, "int16")
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (2, 2))
    yield transpose_conv((1, 4, 5, 3), 8, (4, 4), (2, 2), VALID)
    yield transpose_conv((1, 6, 6, 5), 4, (3, 3), (1, 1))
    yield transpose_conv((1, 5, 5, 4), 6, (2, 2), (2, 2))
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (2, 2), dtype="int16")


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


def poolings() -> Iterator[Case]:
    for dtype in ("int8", "int16"):
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield pool(kind, (1, 9, 8, 13), Window((3, 3), (2, 2)), dtype)
            yield pool(kind, (1, 8, 8, 16), Window((2, 2), (2, 2), padding=VALID), dtype)
            yield pool(kind, (1, 7, 5, 6), Window((7, 5), padding=VALID), dtype)
            yield pool(kind, (1, 10, 9, 3), Window((2, 4), (1, 3), activation=RELU6), dtype)
            yield pool(kind, (1, 5, 6, 20), Window((3, 2)), dtype)
        yield reduce("MEAN", (1, 7, 6, 11), (1, 2), dtype)
        yield reduce("MEAN", (1, 5, 9, 8), (1,), dtype, Q(SCALE[dtype] / 2, ZERO[dtype] // 2))
        yield reduce("MEAN", (1, 4, 1, 30), (3,), dtype)
        yield reduce("MEAN", (1, 6, 6, 5), (1, 2), dtype, keep=False)
    yield pool("AVERAGE_POOL_2D", (1, 6, 6, 5), Window((3, 3)), "uint8")
    yield pool("MAX_POOL_2D", (1, 6, 6, 5), Window((3, 3)), "uint8")
    yield pool("AVERAGE_POOL_2D", (1, 20, 20, 2), Window((8, 8), (3, 3)))
    yield pool("AVERAGE_POOL_2D", (1, 30, 3, 2), Window((30, 1), padding=VALID))
    yield reduce("MEAN", (1, 6, 6, 5), (1, 2), "uint8")
    yield reduce("REDUCE_MAX", (1, 6, 5, 7), (1,))
    yield reduce("REDUCE_MAX", (1, 6, 5, 7), (3,))
    yield reduce("REDUCE_MIN", (1, 6, 5, 7), (2,))
    # Equal scales: kernels round a rescaled sum away from zero, the compiler to nearest.
    yield reduce("SUM", (1, 6, 5, 2), (3,))
    yield reduce("SUM", (1, 2, 5, 7), (1,))
    yield reduce("SUM", (1, 6, 2, 7), (2,), "int16")
    for shape in ((1, 4, 5, 9), (1, 1, 1, 100)):
        name = f"argmax_{'x'.join(map(str, shape))}"
        yield one(name, "ARG_MAX", [shape], [shape[:3]], constants=[i32(3)[0]],
                  options=("ArgMaxOptions", {"output_type": 2}), out_dtype="int32")  # fmt: skip


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


def binaries() -> Iterator[Case]:
    full, row, channel, single = (1, 5, 6, 7), (1, 1, 6, 7), (1, 1, 1, 7), (1, 1, 1, 1)
    for dtype in ("int8", "int16"):
        for kind in ("ADD", "SUB", "MUL"):
            yield binary(kind, full, full, dtype)
            yield binary(kind, full, channel, dtype)
            yield binary(kind, row, full, dtype)
            yield binary(kind, full, single, dtype)
            yield binary(kind, (1, 5, 1, 7), full, dtype, RELU)
    for kind in ("MAXIMUM", "MINIMUM"):
        yield binary(kind, full, full)
        yield binary(kind, full, channel)
        yield binary(kind, full, full, "int16")
    for kind in ("ADD", "MUL", "SUB"):
        yield binary(kind, full, full, "uint8")
        yield binary(kind, (1, 33), (1, 33))
        yield binary(kind, full, full, activation=RELU6)
    yield binary("SQUARED_DIFFERENCE", full, full)
    yield binary("SQUARED_DIFFERENCE", full, channel)


# Functions of one operand


def unary(kind: str, dtype: str = "int8", options: tuple[str, dict[str, Any]] | None = None,
          in_q: Q | None = None, out_q: Q | None = None, shape: Shape = (1, 5, 7, 9),
          label: str = "") -> Case:  # fmt: skip
    name = f"{kind.lower()}{label}_{'x'.join(map(str, shape))}_{dtype}"
    return one(name, kind, [shape], [shape], dtype, options,
               in_q=[in_q or quantization(dtype)], out_q=out_q)  # fmt: skip


def unaries() -> Iterator[Case]:
    for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS"):
        yield unary(kind)
    yield unary("RELU", out_q=Q(0.07, -20), label="_rescaled")
    yield unary("RELU", "int16")
    yield unary("ABS", "int16")
    yield unary("LOGISTIC", out_q=Q(1 / 256, -128))
    yield unary("TANH", out_q=Q(1 / 128, 0))
    yield unary("LOGISTIC", "int16", out_q=Q(1 / 32768))
    yield unary("TANH", "int16", out_q=Q(1 / 32768))
    yield unary("LOGISTIC", "int16", in_q=Q(0.0017), out_q=Q(1 / 32768), label="_wide")
    yield unary("TANH", "int16", in_q=Q(0.0017), out_q=Q(1 / 32768), label="_wide")
    yield unary("LOGISTIC", "uint8", out_q=Q(1 / 256, 0))
    yield unary("HARD_SWISH", in_q=Q(0.05, 7), out_q=Q(0.03, -100))
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 0.1}))
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 0.1}),
                in_q=Q(0.0487, 3), out_q=Q(0.031, -40), label="_rescaled")  # fmt: skip
    yield unary("LEAKY_RELU", "int16", options=("LeakyReluOptions", {"alpha": 0.1}))
    yield unary("ELU", out_q=Q(0.03, -90))
    yield unary("EXP", in_q=Q(0.02, 20), out_q=Q(0.03, -120))
    yield unary("LOG", in_q=Q(0.05, -128), out_q=Q(0.03, -10))
    yield unary("RSQRT", in_q=Q(0.05, -128), out_q=Q(0.01, -128))
    for shape in ((1, 12), (1, 6, 5, 10), (4, 33), (1, 2), (1, 3, 130)):
        yield unary("SOFTMAX", options=("SoftmaxOptions", {"beta": 1.0}), in_q=Q(0.1, 5),
                    out_q=Q(1 / 256, -128), shape=shape)  # fmt: skip
    # int16 SOFTMAX is among the exceptions: kernel and compiler make different tables.
    yield unary("SOFTMAX", "uint8", ("SoftmaxOptions", {"beta": 1.0}), Q(0.1, 130), Q(1 / 256),
                (1, 20))  # fmt: skip
    yield unary("QUANTIZE", out_q=Q(0.08, -3), label="_rescaled")
    yield unary("QUANTIZE", "int16", out_q=Q(0.0007), label="_rescaled")
    for source, target in (("int8", "int16"), ("int16", "int8"), ("uint8", "int8")):
        yield one(f"quantize_{source}_{target}", "QUANTIZE", [(1, 6, 7, 5)], [(1, 6, 7, 5)],
                  source, out_dtype=target)  # fmt: skip
    yield prelu()


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


def movements() -> Iterator[Case]:
    for dtype in ("int8", "int16"):
        yield one(
            f"reshape_{dtype}",
            "RESHAPE",
            [(1, 4, 6, 5)],
            [(1, 8, 15)],
            dtype,
            ("ReshapeOptions", {"new_shape": i32(1, 8, 15)}),
            constants=[i32(1, 8, 15)],
        )
        yield one(
            f"concatenation_c_{dtype}",
            "CONCATENATION",
            [(1, 5, 4, 3), (1, 5, 4, 17)],
            [(1, 5, 4, 20)],
            dtype,
            ("ConcatenationOptions", {"axis": 3}),
        )
        yield one(
            f"concatenation_h_{dtype}",
            "CONCATENATION",
            [(1, 2, 4, 9), (1, 5, 4, 9)],
            [(1, 7, 4, 9)],
            dtype,
            ("ConcatenationOptions", {"axis": 1}),
        )
        yield one(
            f"split_{dtype}",
            "SPLIT",
            [(1, 4, 6, 9)],
            [(1, 4, 6, 3)] * 3,
            dtype,
            ("SplitOptions", {"num_splits": 3}),
            constants=[i32(3)[0]],
            constants_first=True,
        )
        yield one(
            f"slice_{dtype}",
            "SLICE",
            [(1, 6, 7, 20)],
            [(1, 3, 5, 4)],
            dtype,
            constants=[i32(0, 2, 1, 3), i32(1, 3, 5, 4)],
        )
        yield one(
            f"pad_{dtype}",
            "PAD",
            [(1, 5, 4, 6)],
            [(1, 8, 9, 6)],
            dtype,
            constants=[np.array([[0, 0], [1, 2], [3, 2], [0, 0]], np.int32)],
        )
        yield one(
            f"pad_c_{dtype}",
            "PAD",
            [(1, 5, 4, 6)],
            [(1, 5, 4, 11)],
            dtype,
            constants=[np.array([[0, 0], [0, 0], [0, 0], [2, 3]], np.int32)],
        )
        for perm in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 3, 2), (0, 3, 2, 1)):
            shape = (1, 4, 5, 6)
            out = tuple(shape[axis] for axis in perm)
            yield one(
                f"transpose_{''.join(map(str, perm))}_{dtype}",
                "TRANSPOSE",
                [shape],
                [out],
                dtype,
                constants=[i32(*perm)],
            )
    yield one(
        "concatenation_rescaled",
        "CONCATENATION",
        [(1, 5, 4, 3), (1, 5, 4, 8)],
        [(1, 5, 4, 11)],
        options=("ConcatenationOptions", {"axis": 3}),
        in_q=[Q(0.05, 7), Q(0.05, 7)],
        out_q=Q(0.05, 7),
    )
    yield one(
        "split_v",
        "SPLIT_V",
        [(1, 4, 9, 5)],
        [(1, 4, 2, 5), (1, 4, 7, 5)],
        options=("SplitVOptions", {"num_splits": 2}),
        constants=[i32(2, 7), i32(2)[0]],
    )
    yield one(
        "strided_slice",
        "STRIDED_SLICE",
        [(1, 9, 8, 5)],
        [(1, 4, 3, 5)],
        options=("StridedSliceOptions", {}),
        constants=[i32(0, 1, 2, 0), i32(1, 9, 8, 5), i32(1, 2, 2, 1)],
    )
    yield one(
        "pack",
        "PACK",
        [(5, 6), (5, 6)],
        [(2, 5, 6)],
        options=("PackOptions", {"values_count": 2, "axis": 0}),
    )
    yield one(
        "unpack",
        "UNPACK",
        [(3, 5, 6)],
        [(5, 6)] * 3,
        options=("UnpackOptions", {"num": 3, "axis": 0}),
    )
    yield one(
        "squeeze",
        "SQUEEZE",
        [(1, 5, 1, 6)],
        [(5, 6)],
        options=("SqueezeOptions", {"squeeze_dims": i32(0, 2)}),
    )
    yield one("expand_dims", "EXPAND_DIMS", [(5, 6)], [(1, 5, 6)], constants=[i32(0)[0]])
    yield one("tile", "TILE", [(1, 3, 4, 5)], [(1, 6, 4, 10)], constants=[i32(1, 2, 1, 2)])
    yield one(
        "mirror_pad",
        "MIRROR_PAD",
        [(1, 5, 6, 4)],
        [(1, 7, 9, 4)],
        options=("MirrorPadOptions", {"mode": 0}),
        constants=[np.array([[0, 0], [1, 1], [2, 1], [0, 0]], np.int32)],
    )
    yield pad_v2()
    yield from resizes()


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


def resizes() -> Iterator[Case]:
    for kind, table in (("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
                        ("RESIZE_BILINEAR", "ResizeBilinearOptions")):  # fmt: skip
        for factor in (2, 4):
            for align, half in ((False, False), (True, False), (False, True)):
                if half and (factor > 2 or kind == "RESIZE_NEAREST_NEIGHBOR"):
                    continue
                size = [(n - 1) * factor + 1 if align else n * factor for n in (4, 5)]
                label = "align" if align else "half" if half else "plain"
                yield one(f"{kind.lower()}_{factor}_{label}", kind, [(1, 4, 5, 7)],
                          [(1, *size, 7)], options=(table, {"align_corners": align,
                                                            "half_pixel_centers": half}),
                          constants=[i32(*size)])  # fmt: skip


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


def recurrent() -> Iterator[Case]:
    yield lstm("int8")
    yield lstm("int16")
    yield lstm("int8", time_major=True)
    yield one("batch_matmul", "BATCH_MATMUL", [(1, 5, 6), (1, 6, 7)], [(1, 5, 7)],
              options=("BatchMatMulOptions", {}), out_q=Q(0.1, -4))  # fmt: skip


def cases() -> list[Case]:
    """Every network of the suite."""
    return [
        *convolutions(),
        *poolings(),
        *binaries(),
        *unaries(),
        *movements(),
        *recurrent(),
    ]
