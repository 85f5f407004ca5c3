"""Bytes of a pixel in another order: one convolution with a single weight of one for each.

A copy has no such order: it takes an operation for each pixel, or one for each channel in which
most of the array is idle. Networks that shuffle channels between grouped convolutions do this.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph import DType
from mizzen.targets.ethos_u.generator.lower.context import Emitter
from mizzen.targets.ethos_u.generator.lower.finish import plain
from mizzen.targets.ethos_u.generator.lower.views import View, planes, rows
from mizzen.targets.ethos_u.generator.operations import ChannelScales, Convolution, Kernel

MOST_CHANNELS = 128
"""Of a pixel. The work grows with their square, that of copies does not."""
FEWER = 4
"""How many times fewer operations there must be than copies, where pixels are fewer than channels:
weights are fetched, and each copy has its own first and last block."""
ONE, ONE_SHIFT = 1 << 30, 30
"""A scale of one."""


def shuffled(emitter: Emitter, source: View, target: View, origin: Origin) -> bool:
    """Add what copies bytes in another order; whether that is less work than copies."""
    axes = _pixel(source, target)
    if axes is None or emitter.dtype(source) != np.int8 or emitter.dtype(target) != np.int8:
        return False
    order = _places(source, axes)[np.argsort(_places(target, axes))]
    pairs = list(rows(_by_pixel(source, axes), _by_pixel(target, axes)))
    channels, copies = len(order), sum(1 for _ in planes(source, target))
    fewer = FEWER if source.elements < channels**2 else 1
    if copies <= len(pairs) or copies < fewer * len(pairs):
        return False
    weights = np.zeros((channels, 1, 1, channels), np.int16)
    weights[np.arange(channels), 0, 0, order] = 1
    scales = ChannelScales(
        np.zeros(channels, np.int64),
        np.full(channels, ONE, np.int64),
        np.full(channels, ONE_SHIFT, np.int64),
    )
    finish = plain(DType.INT8)
    for one, other in pairs:
        emitter.operations.append(
            Convolution(
                origin,
                emitter.map(one),
                emitter.map(other),
                Kernel(),
                weights,
                scales,
                finish.activation,
                rounding=finish.rounding,
            )
        )
    return True


def _pixel(source: View, target: View) -> tuple[int, ...] | None:
    """Return the fewest axes whose elements lie beside each other on both sides, if reordered."""
    axes: list[int] = []
    for axis in _by_stride(source, range(len(source.shape))):
        axes.append(axis)
        if prod(source.shape[row] for row in axes) > MOST_CHANNELS:
            return None
        if all(_is_whole(view, axes) for view in (source, target)):
            ordered = _by_stride(target, axes) == _by_stride(source, axes)
            return None if ordered else tuple(sorted(axes))
    return None


def _by_stride(view: View, axes: Sequence[int]) -> list[int]:
    return sorted((axis for axis in axes if view.shape[axis] > 1), key=view.strides.__getitem__)


def _is_whole(view: View, axes: Sequence[int]) -> bool:
    """Whether the elements along axes lie beside each other in some order."""
    step = 1
    for axis in _by_stride(view, axes):
        if view.strides[axis] != step:
            return False
        step *= view.shape[axis]
    return True


def _places(view: View, axes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return where the elements of a pixel lie in it, those of the last axis first."""
    found = np.zeros(1, np.int64)
    for axis in axes:
        steps = np.arange(view.shape[axis]) * view.strides[axis]
        found = (found[:, None] + steps).reshape(-1)
    return found


def _by_pixel(view: View, axes: Sequence[int]) -> View:
    """Return a view with the elements of a pixel along its last axis, as they lie."""
    others = [axis for axis in range(len(view.shape)) if axis not in axes]
    shape = (*(view.shape[axis] for axis in others), prod(view.shape[axis] for axis in axes))
    return View(view.tensor, view.offset, shape, (*(view.strides[axis] for axis in others), 1))
