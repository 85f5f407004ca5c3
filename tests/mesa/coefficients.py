"""Weights and records of biases as Mesa lays them down.

The bits of a stream of weights are Arm's own encoder's, and so is the order of U65. That of U85 is
written out below as the nest of loops that it is.

Ref: Mesa, src/gallium/drivers/ethosu/ethosu_coefs.c, ethosu_encode.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from .stream import rounded

Weights = npt.NDArray[np.int16]
"""`[O, H, W, I]`, of a depthwise convolution `[C, H, W, 1]`."""

RECORD_BYTES = 10


def quantized(scale: float) -> tuple[int, int]:
    """Return the number of 31 bits and the right shift that are nearest to a scale."""
    fraction, exponent = math.frexp(scale)
    number = math.floor(fraction * (1 << 31) + 0.5)
    if number == 1 << 31:
        number, exponent = number // 2, exponent + 1
    return number, 31 - exponent


def records(biases: Sequence[int], scales: Sequence[float], *, u85: bool) -> bytes:
    """Return a record for each channel: bias, number, shift."""
    made = b""
    for bias, scale in zip(biases, scales, strict=True):
        number, shift = quantized(scale)
        width = 4 if u85 else 5
        made += int(bias).to_bytes(width, "little", signed=True)
        made += number.to_bytes(4, "little") + bytes([shift]) + bytes(5 - width)
    channels = rounded(len(biases), 16) if u85 else len(biases)
    return made.ljust(rounded(RECORD_BYTES * channels, 16 if not u85 else 1), b"\0")


def part_kernel(weights: Weights) -> bool:
    """Tell whether elements of the kernel are taken before channels."""
    _, height, width, depth = weights.shape
    taps = height * width
    first = depth / rounded(depth, 32)
    part = depth / rounded(depth, 8) * taps / rounded(taps, 4)
    return part >= first or depth <= 8


def is_sparse(weights: Weights) -> bool:
    """Tell whether of every four weights along the channels two are zero."""
    padded = np.pad(weights, ((0, 0), (0, 0), (0, 0), (0, -weights.shape[3] % 4)))
    fours = padded.reshape(*padded.shape[:3], -1, 4)
    return bool(((fours == 0).sum(axis=-1) >= 2).all() and np.abs(weights).max() <= 127)


def encoded(weights: Weights, block: int, unit: int, *, u85: bool, depthwise: bool, part: bool,
            sparse: bool, stride: tuple[int, int]) -> bytes:  # fmt: skip
    """Return the stream of weights for blocks and microblocks of so many output channels."""
    from ethosu import mlw_codec

    if u85:
        nest = _depthwise(weights, block, stride) if depthwise else _dense(
            weights, block, unit, part=part, sparse=sparse, stride=stride
        )  # fmt: skip
        return bytes(mlw_codec.encode([int(value) for value in nest]))
    data, _ = mlw_codec.reorder_encode(8, 8, weights, block, depthwise, part, 8, 8, 8)
    return bytes(data)


def _at(weights: Weights, o: int, tap: tuple[int, int] | None, i: int, end: int) -> int:
    if tap is None or o >= min(end, weights.shape[0]) or i >= weights.shape[3]:
        return 0
    return int(weights[o, tap[0], tap[1], i])


def _taps(
    weights: Weights, step: tuple[int, int], unit: int
) -> Iterator[list[tuple[int, int] | None]]:
    """Return the elements of each part of the kernel, phase by phase, back and forth."""
    _, height, width, _ = weights.shape
    for left in range(0, width, 8):
        for top in range(0, height, 8):
            lines, columns = range(top, min(top + 8, height)), range(left, min(left + 8, width))
            made: list[tuple[int, int] | None] = []
            for y in range(min(step[0], len(lines))):
                for x in range(min(step[1], len(columns))):
                    for turn, line in enumerate(lines[y :: step[0]]):
                        row = [(line, column) for column in columns[x :: step[1]]]
                        made += row[::-1] if turn % 2 else row
            yield made + [None] * (-len(made) % unit)


def _dense(weights: Weights, block: int, unit: int, *, part: bool, sparse: bool,
           stride: tuple[int, int]) -> Iterator[int]:  # fmt: skip
    """Walk the weights of a convolution of 8 bits on U85-256."""
    outputs, *_, depth = weights.shape
    slab = 16 if part else 128 if sparse else 32 if unit == 16 else 64
    step = 16 if sparse else 8
    round_ = (10 if sparse else 5) if part else 1
    slabs = list(range(0, depth, slab))
    for turn, start in enumerate(range(0, outputs, block)):
        end = min(start + block, outputs)
        for first in slabs[::-1] if turn % 2 else slabs:
            for taps in _taps(weights, stride if part else (1, 1), round_):
                yield from _slab(weights, (start, end, unit), (first, slab, step), taps, part=part)


def _slab(weights: Weights, outputs: tuple[int, int, int], inputs: tuple[int, int, int],
          taps: Sequence[tuple[int, int] | None], *, part: bool) -> Iterator[int]:  # fmt: skip
    (start, end, unit), (first, slab, step) = outputs, inputs
    wide = 16 if part else slab
    last = first + rounded(min(slab, weights.shape[3] - first), wide)
    for i in range(first, last, wide):
        for o in range(start, start + rounded(end - start, unit), unit):
            for tap in taps:
                for channel in range(i, i + wide, step):
                    for group in range(o, o + unit, 4):
                        for output in range(group, group + 4):
                            for each in range(channel, channel + step):
                                yield _at(weights, output, tap, each, end)


def _depthwise(weights: Weights, block: int, stride: tuple[int, int]) -> Iterator[int]:
    """Walk the weights of a depthwise convolution of 8 bits on U85-256."""
    channels = weights.shape[0]
    for start in range(0, channels, block):
        for taps in _taps(weights, stride, 10):
            for o in range(start, rounded(min(start + block, channels), 16), 16):
                for tap in taps:
                    for output in range(o, o + 16):
                        yield _at(weights, output, tap, 0, start + block)
