"""Weights that are the same wherever they are made, in every layout and of every kind.

`arm_digests.txt` says of each case what Arm's Support Library 23.02 encodes it to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import VARIANTS, Capabilities, capabilities_of
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Layouts = Callable[[Capabilities], WeightLayout]

EVERYTHING = 1 << 20
"""An iteration size beyond all channels."""
LOWEST, HIGHEST = -128, 127


@dataclass(frozen=True)
class Case:
    """Arguments of the encoder."""

    name: str
    capabilities: Capabilities
    layout: WeightLayout
    weights: Array
    zero_point: int
    bias: Array
    scale: OutputScale


def _randoms(seed: int, count: int) -> Array:
    """Return numbers of 64 bits (SplitMix64)."""
    gold, first, second = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(gold)
    state += np.uint64(seed * first % (1 << 64))
    state = (state ^ state >> np.uint64(30)) * np.uint64(first)
    state = (state ^ state >> np.uint64(27)) * np.uint64(second)
    return state ^ state >> np.uint64(31)


def _uniform(seed: int, count: int, low: int, high: int) -> Array:
    return (_randoms(seed, count) % np.uint64(high - low + 1)).astype(np.int64) + low


def _bell(seed: int, count: int, width: int) -> Array:
    parts = [_uniform(8 * seed + part, count, -width, width) for part in range(4)]
    return sum(parts[1:], parts[0]) // 4


def _sparse(seed: int, count: int, zeros_of_16: int) -> Array:
    return np.where(_uniform(seed, count, 0, 15) < zeros_of_16, 0, _bell(seed + 1, count, 90))


def _by_ofm(seed: int, count: int) -> Array:
    """Half of the OFMs, which are last in memory, have nothing but zeros."""
    return np.where(np.arange(count) % 4 < 2, 0, _bell(seed, count, 30))


VALUES: dict[str, tuple[int, Callable[[int, int], Array]]] = {
    # Zero point, and the weights before it is added.
    "uniform": (0, lambda seed, count: _uniform(seed, count, LOWEST, HIGHEST)),
    "bell": (3, lambda seed, count: _bell(seed, count, 100)),
    "narrow": (-5, lambda seed, count: _bell(seed, count, 6)),
    "sparse": (0, lambda seed, count: _sparse(seed, count, 10)),
    "very sparse": (17, lambda seed, count: _sparse(seed, count, 15)),
    "zeros": (9, lambda _, count: np.zeros(count, np.int64)),
    "ones": (0, lambda _, count: np.ones(count, np.int64)),
    "some zero OFMs": (0, _by_ofm),
    "five values": (0, lambda seed, count: _uniform(seed, count, 0, 4) ** 3 - 40),
    "two of one sign": (0, lambda seed, count: 90 + 7 * _uniform(seed, count, 0, 1)),
    "extremes": (HIGHEST, lambda seed, count: 255 * _uniform(seed, count, -1, 0)),
    "far from zero": (LOWEST, lambda seed, count: 200 + _bell(seed, count, 50)),
}


def _conv(*shape: int, iteration: int = EVERYTHING, **rest: Any) -> Layouts:
    height, width, inputs, outputs = shape
    return lambda hardware: WeightLayout(
        (height, width, inputs, outputs), 2 * hardware.ogs, iteration, **rest
    )


def _depthwise(kernel: int, inputs: int, stride: int, pad: int) -> Layouts:
    return lambda hardware: WeightLayout(
        (kernel, kernel, inputs, 1), hardware.srams, EVERYTHING, MceOperation.DEPTHWISE_CONVOLUTION,
        stride_y=stride, stride_x=stride, pad_top=pad, pad_left=pad,
    )  # fmt: skip


def _in_parts(kernel: int, slices: int, stride: int) -> Layouts:
    return lambda hardware: WeightLayout(
        (kernel, kernel, 3 * hardware.igs - 3, 35), hardware.ogs,
        slices * hardware.igs * stride * stride, stride_y=stride, stride_x=stride,
    )  # fmt: skip


def _fully_connected(inputs: int, iteration: int) -> Layouts:
    return lambda hardware: WeightLayout(
        (1, 1, inputs, 11), hardware.ogs, iteration, MceOperation.FULLY_CONNECTED
    )


LAYOUTS: dict[str, Layouts] = {
    "1x1": _conv(1, 1, 50, 37),
    "3x3": _conv(3, 3, 20, 70),
    "1x1 stride 2": _conv(1, 1, 19, 20, stride_y=2, stride_x=2, pad_top=1),
    "3x3 stride 2": _conv(3, 3, 21, 33, stride_y=2, stride_x=2, pad_left=1),
    "7x2 stride 2": _conv(7, 2, 9, 17, stride_y=2, stride_x=2, pad_top=1, pad_left=1),
    "9x9": _conv(9, 9, 11, 6),
    "9x1": _conv(9, 1, 30, 18),
    "Winograd 3x3": _conv(3, 3, 18, 40, algorithm=Algorithm.WINOGRAD),
    "Winograd 5x1": _conv(5, 1, 18, 9, algorithm=Algorithm.WINOGRAD),
    "depthwise 3x3": _depthwise(3, 45, 1, 1),
    "depthwise 5x5 stride 2": _depthwise(5, 45, 2, 1),
    "in two parts": _in_parts(1, 2, 1),
    "in three parts, stride 2": _in_parts(3, 1, 2),
    "fully connected": _fully_connected(1024, 1024),
    "fully connected in parts": _fully_connected(3072, 2048),
}


def cases() -> Iterator[Case]:
    """Return every layout with every kind of values, the variants taking turns."""
    variants = list(VARIANTS)
    for row, (layout_name, layouts) in enumerate(LAYOUTS.items()):
        for column, (values_name, (zero_point, values)) in enumerate(VALUES.items()):
            variant = variants[(3 * row + column) % len(variants)]
            capabilities = capabilities_of(VARIANTS[variant])
            layout = layouts(capabilities)
            seed = 100 * row + 10 * column + 1
            count = int(np.prod(layout.shape))
            weights = np.clip(values(seed, count) + zero_point, LOWEST, HIGHEST)
            scales = layout.ofms if column % 3 == 0 else 1
            yield Case(
                f"{variant}, {layout_name}, {values_name}",
                capabilities,
                layout,
                weights.reshape(layout.shape).astype(np.int8),
                zero_point,
                _uniform(seed + 1, layout.ofms, -(1 << 31), (1 << 31) - 1),
                OutputScale(*_scale(seed, scales), (7 * row) % 256 - 128),
            )


def _scale(seed: int, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return multipliers of 16 bits and shifts that a scale of 2 ** -15 to 1 has."""
    multipliers = _uniform(seed + 2, count, 1 << 15, (1 << 16) - 1)
    shifts = _uniform(seed + 3, count, 16, 30)
    return tuple(multipliers.tolist()), tuple(shifts.tolist())
