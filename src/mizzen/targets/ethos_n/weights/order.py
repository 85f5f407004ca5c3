"""In which order the weights of an OFM stand in its stream.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp` and `SubmapFilter.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.weights.format import BRICK, PATCH, WIDE_TAPS, WeightLayout

Indices = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class WeightOrder:
    """The order of one OFM's weights; that of every OFM is the same.

    taps    index into the OFM's weights, [H, W, I] flattened (depthwise: [H, W]); the index after
            the last stands for a zero that fills up
    counts  of `taps` to each iteration
    """

    taps: Indices
    counts: tuple[int, ...]


def weight_order(layout: WeightLayout, capabilities: Capabilities) -> WeightOrder:
    """Return the order of the weights; E943 if the iterations do not begin with whole slices."""
    if layout.is_depthwise:
        parts = [_depthwise(layout)]
    elif layout.operation is MceOperation.FULLY_CONNECTED:
        parts = _fully_connected(layout, capabilities)
    elif layout.algorithm is Algorithm.WINOGRAD:
        parts = [_winograd(layout)]
    else:
        parts = _direct(layout, capabilities)
    return WeightOrder(np.concatenate(parts), tuple(len(part) for part in parts))


def _taps(layout: WeightLayout, channels: int, padded: int) -> Indices:
    """Number the taps, [H, W, padded]; channels beyond `channels` are zeros that fill up."""
    height, width = layout.shape[:2]
    grid = np.full((height, width, padded), height * width * channels, np.int64)
    grid[:, :, :channels] = np.arange(height * width * channels).reshape(height, width, channels)
    return grid


def _submaps(layout: WeightLayout) -> list[tuple[slice, slice]]:
    """Return rows and columns of the kernel that meet each submap of the input, in its order."""
    y, x = layout.stride_y, layout.stride_x
    return [
        (slice((row + layout.pad_top) % y, None, y), slice((column + layout.pad_left) % x, None, x))
        for row in range(y)
        for column in range(x)
    ]


def _depthwise(layout: WeightLayout) -> Indices:
    grid = _taps(layout, 1, 1)
    return np.concatenate([grid[part].ravel() for part in _submaps(layout)])


def _tiles(grid: Indices, filler: int) -> list[Indices]:
    """Cut a kernel into tiles of 3 rows and columns, of 1 where it has 1; zeros fill up."""
    height, width, channels = grid.shape
    rows = WIDE_TAPS if height > 1 else 1
    columns = WIDE_TAPS if width > 1 else 1
    shape = (-(-height // rows) * rows, -(-width // columns) * columns, channels)
    whole = np.full(shape, filler, np.int64)
    whole[:height, :width] = grid
    return [
        whole[y : y + rows, x : x + columns]
        for y in range(0, shape[0], rows)
        for x in range(0, shape[1], columns)
    ]


def _winograd(layout: WeightLayout) -> Indices:
    grid = _taps(layout, layout.shape[2], layout.shape[2])
    tiles = _tiles(grid, grid.size) if layout.is_wide else [grid]
    return np.concatenate([tile.transpose(2, 0, 1).ravel() for tile in tiles])


def _direct(layout: WeightLayout, capabilities: Capabilities) -> list[Indices]:
    channels = layout.shape[2]
    slice_size = capabilities.igs
    per_iteration = layout.iteration_size // layout.submaps
    if layout.iterations > 1 and per_iteration % slice_size:
        raise fail(
            "E943",
            f"iterations must begin with whole slices of {slice_size} input channels, and take "
            f"{per_iteration}",
            help=f"use an iteration size that is a multiple of {slice_size * layout.submaps}",
        )
    padded = -(-channels // slice_size) * slice_size
    grid = _taps(layout, channels, padded)
    filler = layout.shape[0] * layout.shape[1] * channels
    tiles = _tiles(grid, filler) if layout.is_wide else [grid]
    step = padded if layout.iterations == 1 else per_iteration
    return [
        np.concatenate(
            [
                _slice(tile[:, :, start : start + slice_size], layout, filler, channels - start)
                for tile in tiles
                for start in range(first, min(first + step, padded), slice_size)
            ]
        )
        for first in range(0, padded, step)
    ]


def _slice(grid: Indices, layout: WeightLayout, filler: int, channels: int) -> Indices:
    """Return one slice's weights, row by row, the channels of a tap together.

    The last submap alone has no weights for channels that do not exist.
    """
    *filled, last = (grid[part].reshape(-1, grid.shape[2]) for part in _submaps(layout))
    nothing = np.full((1, grid.shape[2]), filler, np.int64)
    parts = [taps if len(taps) else nothing for taps in (*filled, last)]
    parts[-1] = parts[-1][:, :channels]
    return np.concatenate([part.ravel() for part in parts])


def _fully_connected(layout: WeightLayout, capabilities: Capabilities) -> list[Indices]:
    """Order each brick of 1024 by the SRAM banks that its patches of 16 are in.

    Every bank gives one element a step. Where there are half as many banks as elements in a patch,
    the first banks' worth of every second group of patches comes first.
    """
    inputs, banks = layout.shape[2], capabilities.srams
    groups = BRICK // (PATCH * banks)
    halves = PATCH // banks
    brick = np.arange(BRICK).reshape(groups // halves, halves, banks, PATCH)
    order = brick.transpose(1, 0, 3, 2).ravel()
    bricks = np.arange(0, layout.iterations * layout.iteration_size, BRICK)
    taps = np.minimum(bricks[:, None] + order, inputs).reshape(layout.iterations, -1)
    return list(taps)
