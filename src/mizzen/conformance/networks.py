"""Networks of a single operator: what the NPU must compute like the kernels.

Scales are chosen so that outputs spread over their whole range: an error anywhere shows.

Networks with a window or weights (convolutions, pools, an LSTM) draw their weights by their name.
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
SCALE = {"int8": 0.05, "uint8": 0.05, "int16": 0.0004, "int32": 1.0, "bool": 1.0}
ZERO = {"int8": 7, "uint8": 121, "int16": 0, "int32": 0, "bool": 0}
SPREAD = {"int8": 74.0, "uint8": 74.0, "int16": 18900.0}
"""Standard deviation of uniformly random values of the type."""


@dataclass(frozen=True)
class Case:
    """One network.

    operator  its one operator's type, as in TFLite's schema
    dtype     the type of its data, as NumPy names it
    build     gives the `.tflite` file, the same one every time
    limit     the largest magnitude of its INT16 and INT32 inputs, None for their whole range
    """

    name: str
    operator: str
    dtype: str
    build: Callable[[], bytes]
    limit: int | None = None


@dataclass(frozen=True)
class Q:
    """A quantisation: real value = scale x (integer - zero_point)."""

    scale: float
    zero_point: int = 0


def quantization(dtype: str) -> Q:
    """Return the quantisation that inputs of a type have where a case asks for no other."""
    return Q(SCALE[dtype], ZERO[dtype])


def rng_of(name: str) -> np.random.Generator:
    """Return the source of a case's constants."""
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
    constants_first: int = 0,
    in_dtypes: Sequence[str] = (),
    in_q: Sequence[Q] | None = None,
    out_q: Q | None = None,
    out_dtype: str | None = None,
    limit: int | None = None,
) -> Case:
    """Describe a network of one operator.

    Its operands are so many constants, the inputs, the rest of the constants. `in_dtypes` are the
    inputs' types where they are not all `dtype`.
    """
    types = in_dtypes or [dtype] * len(shapes)

    def build() -> bytes:
        """Build the network of the operator."""
        net = NetworkBuilder(name)
        scales = in_q or [quantization(type_) for type_ in types]
        inputs = [
            net.tensor(f"x{i}", shape, type_, *_q(q))
            for i, (shape, type_, q) in enumerate(zip(shapes, types, scales, strict=True))
        ]
        fixed = [net.constant(f"c{i}", data) for i, data in enumerate(constants)]
        of = out_dtype or dtype
        result = out_q or (scales[0] if of == types[0] else quantization(of))
        plain = of == "int32" != dtype and out_q is None
        made = [
            net.tensor(f"y{i}", shape, of) if plain else net.tensor(f"y{i}", shape, of, *_q(result))
            for i, shape in enumerate(outputs)
        ]
        order = [*fixed[:constants_first], *inputs, *fixed[constants_first:]]
        net.operator(kind, order, made, options)
        return net.finish(inputs, made)

    return Case(name, kind, dtype, build, limit)


def _q(q: Q) -> tuple[float, int]:
    return q.scale, q.zero_point


def i32(*values: Any) -> np.ndarray[Any, Any]:
    """Return an array of INT32."""
    return np.array(values, np.int32)


LIMITS = {
    "ADD": 1 << 17,
    "SUB": 1 << 17,
    "MUL": 1 << 10,
    "SQUARED_DIFFERENCE": 360,
    "SUM": 1 << 20,
}
"""Magnitudes of INT32 operands within which results fit, and NPU operands that are scaled up."""


def _limit(kind: str, dtype: str) -> int | None:
    return LIMITS.get(kind) if dtype == "int32" else None


def reduce(kind: str, shape: Shape, axes: tuple[int, ...], dtype: str = "int8",
           out_q: Q | None = None, *, keep: bool = True) -> Case:  # fmt: skip
    """Describe a reduction over axes, which are kept with an extent of 1, or dropped."""
    out = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if not keep:
        out = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    name = f"{kind.lower()}_{'x'.join(map(str, shape))}_axes{''.join(map(str, axes))}_{dtype}"
    name += "" if keep else "_dropped"
    name += "" if out_q is None else "_rescaled"
    options = ("ReducerOptions", {"keep_dims": keep})
    return one(name, kind, [shape], [out], dtype, options, constants=[i32(*axes)], out_q=out_q,
               limit=_limit(kind, dtype))  # fmt: skip


BINARY_OPTIONS = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
    "DIV": "DivOptions",
}


def binary(kind: str, a: Shape, b: Shape, dtype: str = "int8", activation: int = NONE) -> Case:
    """Describe an elementwise operator of two inputs, which broadcast."""
    out = tuple(np.broadcast_shapes(a, b))
    shapes = f"{'x'.join(map(str, a))}_{'x'.join(map(str, b))}"
    name = f"{kind.lower()}_{shapes}_{dtype}" + (f"_act{activation}" if activation else "")
    # The compiler multiplies int16 scales in single precision: powers of two are exact in it.
    s, z = (2.0**-11 if (kind, dtype) == ("MUL", "int16") else SCALE[dtype]), ZERO[dtype]
    same = kind in ("MAXIMUM", "MINIMUM") or dtype == "int32"
    in_q = [Q(s, z), Q(s, z) if same else Q(s * 0.375, -z // 3 if dtype == "int8" else z)]
    factors = {"ADD": 1.3, "SUB": 1.3, "MUL": s * (30 if dtype != "int16" else 8192),
               "SQUARED_DIFFERENCE": s * (80 if dtype != "int16" else 20000)}  # fmt: skip
    out_q = Q(s if dtype == "int32" else s * factors.get(kind, 1.0), z)
    options: dict[str, Any] = {"fused_activation_function": activation} if activation else {}
    if kind in ("ADD", "SUB") and dtype == "int16":
        options["pot_scale_int16"] = False
    return one(name, kind, [a, b], [out], dtype, (BINARY_OPTIONS[kind], options),
               in_q=in_q, out_q=out_q,
               limit=_limit(kind, dtype))  # fmt: skip


def unary(kind: str, dtype: str = "int8", options: tuple[str, dict[str, Any]] | None = None,
          in_q: Q | None = None, out_q: Q | None = None, shape: Shape = (1, 5, 7, 9),
          label: str = "") -> Case:  # fmt: skip
    """Describe a function of one input; `label` tells apart cases of the same shape and type."""
    name = f"{kind.lower()}{label}_{'x'.join(map(str, shape))}_{dtype}"
    return one(name, kind, [shape], [shape], dtype, options,
               in_q=[in_q or quantization(dtype)], out_q=out_q)  # fmt: skip


def prelu() -> Case:
    """Describe a PRELU with a slope for each channel."""

    def build() -> bytes:
        net = NetworkBuilder("prelu")
        x = net.tensor("x", (1, 5, 6, 7), "int8", 0.05, 7)
        alpha = rng_of("prelu").integers(-128, 128, (1, 1, 7)).astype(np.int8)
        slope = net.constant("alpha", alpha, 0.004, -20)
        y = net.tensor("y", (1, 5, 6, 7), "int8", 0.045, -30)
        net.operator("PRELU", [x, slope], [y])
        return net.finish([x], [y])

    return Case("prelu_int8", "PRELU", "int8", build)


def pad_v2() -> Case:
    """Describe a PADV2 whose value is not the zero point."""

    def build() -> bytes:
        net = NetworkBuilder("pad_v2")
        x = net.tensor("x", (1, 5, 4, 6), "int8", 0.05, 7)
        sides = net.constant("sides", np.array([[0, 0], [1, 2], [3, 2], [0, 0]], np.int32))
        value = net.constant("value", np.array([-77], np.int8), 0.05, 7)
        y = net.tensor("y", (1, 8, 9, 6), "int8", 0.05, 7)
        net.operator("PADV2", [x, sides, value], [y], ("PadV2Options", {}))
        return net.finish([x], [y])

    return Case("pad_v2", "PADV2", "int8", build)


@dataclass(frozen=True)
class Window:
    """A convolution's window: sizes y, x; padding scheme; fused activation."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: int = SAME
    activation: int = NONE

    def output(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width of what comes out."""
        sizes: list[int] = []
        for size, k, s, d in zip((height, width), self.kernel, self.stride, self.dilation,
                                 strict=True):  # fmt: skip
            span = size if self.padding == SAME else size - (k - 1) * d
            sizes.append(-(-span // s))
        return sizes[0], sizes[1]

    @property
    def label(self) -> str:
        """Everything about it, for names."""
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
    bias: str | None = None,
) -> tuple[int, int, Q]:
    """Weights, bias and the output's quantisation of a convolution or dense layer.

    `bias` is its type where that is not the usual one for the data.
    """
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
    bias_type = np.dtype(bias or ("int64" if wide else "int32"))
    biases = net.constant("b", bias_data.astype(bias_type), bias_scales)
    target = 10000.0 if wide else 40.0
    out = Q(float(in_scale * 0.012 * accumulator / target), 0 if wide else ZERO[dtype] - 10)
    return weights, biases, out


def _label(*, per_channel: bool | None = None, bias: str | None = None) -> str:
    """Name what is unusual about weights and biases."""
    weights = {None: "", True: "_per_channel", False: "_per_tensor"}[per_channel]
    return weights + (f"_bias_{bias}" if bias else "")


def conv(shape: Shape, channels: int, w: Window, dtype: str = "int8", **more: Any) -> Case:
    """Describe a CONV_2D of an NHWC `shape`."""
    label = f"conv_{'x'.join(map(str, shape))}_o{channels}_{w.label}_{dtype}{_label(**more)}"
    weights = (channels, *w.kernel, shape[3])
    return _convolution(label, ("CONV_2D", "Conv2DOptions", {}), shape, weights, 0, w, dtype, more)


def depthwise(shape: Shape, multiplier: int, w: Window, dtype: str = "int8", **more: Any) -> Case:
    """Describe a DEPTHWISE_CONV_2D of an NHWC `shape`."""
    label = f"dw_{'x'.join(map(str, shape))}_m{multiplier}_{w.label}_{dtype}{_label(**more)}"
    kind = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", {"depth_multiplier": multiplier})
    weights = (1, *w.kernel, shape[3] * multiplier)
    return _convolution(label, kind, shape, weights, 3, w, dtype, more)


def _convolution(
    label: str,
    kind: tuple[str, str, dict[str, Any]],
    shape: Shape,
    weights_shape: Shape,
    axis: int,
    w: Window,
    dtype: str,
    more: dict[str, Any],
) -> Case:
    """Describe a convolution: its operator, options table and options beside the window's.

    `axis` is the weights' axis of output channels, `more` the keywords of `_weighted`.
    """
    operator, table, own = kind
    channels = weights_shape[axis]
    fan_in = int(np.prod(weights_shape)) // channels

    def build() -> bytes:
        """Build the network of the convolution."""
        net = NetworkBuilder(label)
        x = net.tensor("x", shape, dtype, SCALE[dtype], ZERO[dtype])
        weights, bias, out_q = _weighted(
            net, label, weights_shape, channels, axis, dtype, fan_in, **more
        )
        result = (shape[0], *w.output(shape[1], shape[2]), channels)
        y = net.tensor("y", result, dtype, out_q.scale, out_q.zero_point)
        options = {
            "padding": w.padding,
            "stride_h": w.stride[0],
            "stride_w": w.stride[1],
            "dilation_h_factor": w.dilation[0],
            "dilation_w_factor": w.dilation[1],
            "fused_activation_function": w.activation,
            **own,
        }
        net.operator(operator, [x, weights, bias], [y], (table, options), version=3)
        return net.finish([x], [y])

    return Case(label, operator, dtype, build)


def dense(
    batch: int,
    inputs: int,
    outputs: int,
    dtype: str = "int8",
    activation: int = NONE,
    *,
    per_channel: bool = False,
) -> Case:
    """Describe a FULLY_CONNECTED."""
    suffix = _label(per_channel=per_channel or None)
    label = f"fc_{batch}x{inputs}_o{outputs}_act{activation}_{dtype}{suffix}"

    def build() -> bytes:
        net = NetworkBuilder(label)
        x = net.tensor("x", (batch, inputs), dtype, SCALE[dtype], ZERO[dtype])
        weights, bias, out_q = _weighted(
            net, label, (outputs, inputs), outputs, 0, dtype, inputs, per_channel=per_channel
        )
        y = net.tensor("y", (batch, outputs), dtype, out_q.scale, out_q.zero_point)
        options = {"fused_activation_function": activation}
        net.operator("FULLY_CONNECTED", [x, weights, bias], [y],
                     ("FullyConnectedOptions", options), version=4)  # fmt: skip
        return net.finish([x], [y])

    return Case(label, "FULLY_CONNECTED", dtype, build)


def transpose_conv(
    shape: Shape, channels: int, kernel: tuple[int, int], stride: tuple[int, int],
    padding: int = SAME, dtype: str = "int8",
) -> Case:  # fmt: skip
    """Describe a TRANSPOSE_CONV; `kernel` and `stride` are y, x."""
    scheme = "same" if padding == SAME else "valid"
    label = (
        f"tconv_{'x'.join(map(str, shape))}_o{channels}_k{kernel[0]}x{kernel[1]}"
        f"_s{stride[0]}x{stride[1]}_{scheme}_{dtype}"
    )

    def build() -> bytes:
        """Build the network of the transposed convolution."""
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
        y = net.tensor("y", out_shape, dtype, out_q.scale, out_q.zero_point)
        options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        net.operator("TRANSPOSE_CONV", [size, weights, x, bias], [y],
                     ("TransposeConvOptions", options), version=3)  # fmt: skip
        return net.finish([x], [y])

    return Case(label, "TRANSPOSE_CONV", dtype, build)


def pool(kind: str, shape: Shape, w: Window, dtype: str = "int8") -> Case:
    """Describe a pool of an NHWC `shape`."""
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


def lstm(dtype: str, *, time_major: bool = False) -> Case:
    """Describe a UNIDIRECTIONAL_SEQUENCE_LSTM of four steps, six inputs and eight cells."""
    steps, inputs, cells = 4, 6, 8
    name = f"lstm_{dtype}" + ("_time_major" if time_major else "")

    def build() -> bytes:
        """Build the network: an LSTM whose weights are drawn by its name."""
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
        hidden = net.tensor(
            "hidden", (1, cells), dtype, hidden_q.scale, hidden_q.zero_point, variable=True
        )
        cell = net.tensor("cell", (1, cells), "int16", 2.0**-11, 0, variable=True)
        y = net.tensor("y", (steps, 1, cells) if time_major else (1, steps, cells), dtype,
                       hidden_q.scale, hidden_q.zero_point)  # fmt: skip
        absent = -1
        order = [x, *from_input, *from_hidden, absent, absent, absent, *biases, absent, absent,
                 hidden, cell, absent, absent, absent, absent]  # fmt: skip
        between = [net.tensor(f"i{gate}", (0,), "int16", 2.0**-12) for gate in range(4)]
        between.append(net.tensor("i4", (0,), "int8", hidden_q.scale, hidden_q.zero_point))
        options = {"fused_activation_function": 4, "cell_clip": 8.0, "time_major": time_major}
        net.operator(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            order,
            [y],
            ("UnidirectionalSequenceLSTMOptions", options),
            intermediates=between,
        )
        return net.finish([x], [y])

    return Case(name, "UNIDIRECTIONAL_SEQUENCE_LSTM", dtype, build)
