"""Streaming keyword networks, made at random: each stage keeps the rows before in a variable.

A stage is READ_VARIABLE, CONCATENATION, a convolution over time, STRIDED_SLICE, ASSIGN_VARIABLE, as
streaming wake word models have them. CALL_ONCE fills variables with the number for zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

SCALE, ZERO = 0.05, -3


@dataclass(frozen=True)
class Streaming:
    """How large a network is.

    frames   rows that come with each inference
    stages   for each stage, the rows of its kernel and its result's channels
    """

    frames: int
    features: int
    stages: tuple[tuple[int, int], ...]
    seed: int = 0


def random_streaming(seed: int) -> Streaming:
    """Return a network of three to five stages."""
    draw = np.random.default_rng(seed)
    stages = tuple(
        (int(draw.integers(3, 12)), int(draw.choice([8, 16, 24, 40])))
        for _ in range(draw.integers(3, 6))
    )
    return Streaming(int(draw.integers(1, 4)), int(draw.choice([20, 40])), stages, seed)


class _Network:
    def __init__(self, size: Streaming) -> None:
        self.net = NetworkBuilder("streaming")
        self.draw = np.random.default_rng(size.seed)

    def map(self, name: str, rows: int, channels: int) -> int:
        return self.net.tensor(name, (1, rows, 1, channels), "int8", SCALE, ZERO)

    def kept(self, name: str, value: int, rows: int, kernel: int, channels: int) -> tuple[int, int]:
        """Put the rows before in front of `rows` new ones, and keep the last for the next time."""
        net, before = self.net, kernel - 1
        handle = net.resource(name)
        net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": name}))
        net.initial(name, np.full((1, before, 1, channels), ZERO, np.int8), SCALE, ZERO)
        held = self.map(f"{name}_held", before, channels)
        net.operator("READ_VARIABLE", [handle], [held], ("ReadVariableOptions", {}))
        joined = self.map(f"{name}_joined", before + rows, channels)
        net.operator("CONCATENATION", [held, value], [joined],
                     ("ConcatenationOptions", {"axis": 1}))  # fmt: skip
        last = self.map(f"{name}_last", before, channels)
        places = [
            net.constant(f"{name}_{what}", np.array(row, np.int32))
            for what, row in (("begin", [0, rows, 0, 0]), ("end", [0, 0, 0, 0]),
                              ("steps", [1, 1, 1, 1]))
        ]  # fmt: skip
        net.operator("STRIDED_SLICE", [joined, *places], [last],
                     ("StridedSliceOptions", {"begin_mask": 13, "end_mask": 15}))  # fmt: skip
        net.operator("ASSIGN_VARIABLE", [handle, last], [], ("AssignVariableOptions", {}))
        return joined, before + rows

    def weighted(
        self, name: str, kind: str, value: int, shape: tuple[int, ...], out: tuple[int, int],
        options: tuple[str, dict[str, int]],
    ) -> int:  # fmt: skip
        axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
        channels = shape[axis]
        weights = self.draw.integers(-127, 128, shape).astype(np.int8)
        fan_in = int(np.prod(shape)) // channels
        scales = self.draw.uniform(0.5, 1.0, channels) * 0.02 / np.sqrt(fan_in)
        kernel = self.net.constant(f"{name}_weights", weights, scales.tolist(), axis=axis)
        numbers = self.draw.integers(-2000, 2000, channels).astype(np.int32)
        bias = self.net.constant(f"{name}_bias", numbers, (SCALE * scales).tolist())
        result = self.map(name, *out)
        self.net.operator(kind, [value, kernel, bias], [result], options)
        return result


def streaming_network(size: Streaming) -> bytes:
    """Return the `.tflite` file of a streaming network."""
    made = _Network(size)
    x = made.map("features", size.frames, size.features)
    value, rows, channels = x, size.frames, size.features
    for stage, (kernel, wanted) in enumerate(size.stages):
        joined, height = made.kept(f"stage{stage}", value, rows, kernel, channels)
        rows = height - kernel + 1
        window = {"padding": 1, "stride_h": 1, "stride_w": 1}
        if stage:
            value = made.weighted(
                f"depthwise{stage}", "DEPTHWISE_CONV_2D", joined, (1, kernel, 1, channels),
                (rows, channels), ("DepthwiseConv2DOptions", {**window, "depth_multiplier": 1}),
            )  # fmt: skip
            value = made.weighted(
                f"pointwise{stage}",
                "CONV_2D",
                value,
                (wanted, 1, 1, channels),
                (rows, wanted),
                ("Conv2DOptions", {**window, "fused_activation_function": 1}),
            )
        else:
            value = made.weighted(
                "convolution",
                "CONV_2D",
                joined,
                (wanted, kernel, 1, channels),
                (rows, wanted),
                ("Conv2DOptions", {**window, "fused_activation_function": 1}),
            )
        channels = wanted
    result = made.net.tensor("probability", (1, rows, 1, channels), "int8", 1 / 256, -128)
    made.net.operator("LOGISTIC", [value], [result])
    return made.net.finish([x], [result])
