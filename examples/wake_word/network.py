"""A network that listens: it takes three new frames a call, and keeps older ones in variables.

It has the form of microWakeWord's streaming networks (a strided convolution, then depthwise and
pointwise convolutions over rings of frames), with weights that are drawn, not trained. Tensors are
[1, frames, 1, channels], and frames are 10 ms apart.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

FEATURES, NEW_FRAMES = 40, 3
ZERO = -128
"""What stands for zero in every map: spectra and rectified maps are not negative."""

SCALE = 0.1
"""Of every map."""

WEIGHT_RMS = 73
"""Root mean square of weights drawn from -127 to 127."""

RELU, VALID, NEWEST = 1, 1, 13
"""Of the TFLite schema: two enumerations, and a STRIDED_SLICE that begins at a frame."""


@dataclass(frozen=True, slots=True)
class Frames:
    """A map of the network: its tensor and extents."""

    tensor: int
    frames: int
    channels: int


class WakeWord:
    """Builds the network."""

    def __init__(self, seed: int) -> None:
        self.net = NetworkBuilder("wake word")
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def build(self, blocks: Sequence[tuple[int, ...]], channels: int) -> bytes:
        """Return the network's file; `blocks` are kernels in frames, those of a block beside each
        other."""
        net = self.net
        x = net.tensor("frames", (1, NEW_FRAMES, FEATURES), "int8", SCALE, ZERO)
        spread = self._map(NEW_FRAMES, FEATURES)
        shape = net.constant("shape", np.array([1, NEW_FRAMES, 1, FEATURES], np.int32))
        net.operator("RESHAPE", [x, shape], [spread.tensor], ("ReshapeOptions", {}))
        found = self._convolved(self._ring(spread, 2), channels, NEW_FRAMES)
        for kernels in blocks:
            ring = self._ring(found, max(kernels) - 1)
            parts = self._split(ring, len(kernels))
            rows = [self._filtered(part, size) for part, size in zip(parts, kernels, strict=True)]
            found = self._convolved(self._joined(rows, axis=3), channels, 1)
        return net.finish([x], [self._judged(self._ring(found, 5))])

    def _map(self, frames: int, channels: int) -> Frames:
        self.count += 1
        shape = (1, frames, 1, channels)
        tensor = self.net.tensor(f"map{self.count}", shape, "int8", SCALE, ZERO)
        return Frames(tensor, frames, channels)

    def _ring(self, new: Frames, kept: int) -> Frames:
        """Return `new` behind the `kept` frames before it, and keep the newest of all."""
        net, handle = self.net, self.net.resource(f"handle{self.count}")
        name = f"stream{self.count}"
        net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": name}))
        before = self._map(kept, new.channels)
        net.operator("READ_VARIABLE", [handle], [before.tensor], ("ReadVariableOptions", {}))
        ring = self._joined([before, new], axis=1)
        newest = self._newest(ring, kept)
        net.operator("ASSIGN_VARIABLE", [handle, newest.tensor], [], ("AssignVariableOptions", {}))
        silence = np.full((1, kept, 1, new.channels), ZERO, np.int8)
        net.initial(name, silence, SCALE, ZERO)
        return ring

    def _newest(self, ring: Frames, frames: int) -> Frames:
        begin = np.array([0, ring.frames - frames, 0, 0], np.int32)
        edges = [begin, np.zeros(4, np.int32), np.ones(4, np.int32)]
        names = [f"{word}{self.count}" for word in ("begin", "end", "strides")]
        places = [self.net.constant(*row) for row in zip(names, edges, strict=True)]
        found = self._map(frames, ring.channels)
        options = {"begin_mask": NEWEST, "end_mask": 15}
        self.net.operator(
            "STRIDED_SLICE",
            [ring.tensor, *places],
            [found.tensor],
            ("StridedSliceOptions", options),
        )
        return found

    def _joined(self, rows: Sequence[Frames], axis: int) -> Frames:
        if len(rows) == 1:
            return rows[0]
        frames = sum(row.frames for row in rows) if axis == 1 else rows[0].frames
        channels = sum(row.channels for row in rows) if axis == 3 else rows[0].channels
        found = self._map(frames, channels)
        self.net.operator("CONCATENATION", [row.tensor for row in rows], [found.tensor],
                          ("ConcatenationOptions", {"axis": axis}))  # fmt: skip
        return found

    def _split(self, ring: Frames, count: int) -> list[Frames]:
        if count == 1:
            return [ring]
        size = ring.channels // count
        sizes = self.net.constant(f"sizes{self.count}", np.full(count, size, np.int32))
        axis = self.net.constant(f"axis{self.count}", np.array(3, np.int32))
        parts = [self._map(ring.frames, size) for _ in range(count)]
        self.net.operator("SPLIT_V", [ring.tensor, sizes, axis], [row.tensor for row in parts],
                          ("SplitVOptions", {"num_splits": count}))  # fmt: skip
        return parts

    def _weights(self, shape: tuple[int, ...], axis: int, gain: float = math.sqrt(2)) -> list[int]:
        """Draw weights that keep numbers as large as they are, times `gain`, and no bias."""
        given, name = shape[axis], self.count
        scale = gain / WEIGHT_RMS / math.sqrt(math.prod(shape) / given)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        weights = self.net.constant(f"weights{name}", data, [scale] * given, 0, axis=axis)
        bias = np.zeros(given, np.int32)
        return [weights, self.net.constant(f"bias{name}", bias, [scale * SCALE] * given)]

    def _filtered(self, part: Frames, size: int) -> Frames:
        """Filter each channel over the newest `size` frames."""
        ring = part if part.frames == size else self._newest(part, size)
        operands = self._weights((1, size, 1, ring.channels), axis=3)
        found = self._map(1, ring.channels)
        options = {"padding": VALID, "stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
        self.net.operator("DEPTHWISE_CONV_2D", [ring.tensor, *operands], [found.tensor],
                          ("DepthwiseConv2DOptions", options), version=3)  # fmt: skip
        return found

    def _convolved(self, ring: Frames, channels: int, stride: int) -> Frames:
        """Convolve all frames to one, and rectify."""
        operands = self._weights((channels, ring.frames, 1, ring.channels), axis=0)
        found = self._map(1, channels)
        options = {"padding": VALID, "stride_w": 1, "stride_h": stride,
                   "fused_activation_function": RELU}  # fmt: skip
        self.net.operator("CONV_2D", [ring.tensor, *operands], [found.tensor],
                          ("Conv2DOptions", options), version=3)  # fmt: skip
        return found

    def _judged(self, ring: Frames) -> int:
        """Return how likely the word is, 0 to 255."""
        net, values = self.net, ring.frames * ring.channels
        flat = net.tensor("flat", (1, values), "int8", SCALE, ZERO)
        shape = net.constant("flat_shape", np.array([1, values], np.int32))
        net.operator("RESHAPE", [ring.tensor, shape], [flat], ("ReshapeOptions", {}))
        operands = self._weights((1, values), axis=0, gain=0.1)
        score = net.tensor("score", (1, 1), "int8", 0.05)
        likely = net.tensor("likely", (1, 1), "int8", 1 / 256, ZERO)
        result = net.tensor("probability", (1, 1), "uint8", 1 / 256)
        net.operator("FULLY_CONNECTED", [flat, *operands], [score], ("FullyConnectedOptions", {}))
        net.operator("LOGISTIC", [score], [likely])
        net.operator("QUANTIZE", [likely], [result])
        return result


def wake_word(
    blocks: Sequence[tuple[int, ...]] = ((5,), (7, 11), (9, 15), (23,)),
    channels: int = 64,
    seed: int = 0,
) -> bytes:
    """Return the network's `.tflite` file."""
    return WakeWord(seed).build(blocks, channels)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(wake_word())
