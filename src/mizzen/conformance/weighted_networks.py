"""Networks of one operator that has a window or weights: convolutions, pools, an LSTM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.conformance.networks import (
    NONE,
    SAME,
    SCALE,
    SPREAD,
    VALID,
    ZERO,
    Case,
    Q,
    Shape,
    i32,
    one,
    rng_of,
)
from mizzen.package.tflite.builder import NetworkBuilder


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
