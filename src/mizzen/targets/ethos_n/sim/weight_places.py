"""Where in the stream of an output feature map (OFM) the weight of each tap is.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.weights.format import BRICK, PATCH, WIDE_TAPS, WeightLayout

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one OFM's weights; those of every OFM are the same.

    iteration, place  [H, W, I] (depthwise: [H, W]): in which stream, and where in it
    counts            weights of each iteration, with zeros that fill up
    """

    iteration: Numbers
    place: Numbers
    counts: tuple[int, ...]


def places_of(layout: WeightLayout, capabilities: Capabilities) -> Places:
    """Find the places; E945 if the iterations do not begin with whole slices of channels."""
    if layout.is_depthwise:
        return _depthwise(layout)
    if layout.operation is MceOperation.FULLY_CONNECTED:
        return _fully_connected(layout, capabilities)
    if layout.algorithm is Algorithm.WINOGRAD:
        return _winograd(layout)
    return _direct(layout, capabilities)


@dataclass(frozen=True, slots=True)
class _Submaps:
    """Which submap of a strided convolution each tap belongs to.

    submap, tap  [H, W, 1]: the submap, and the number of the tap in it
    taps         of each submap
    """

    submap: Numbers
    tap: Numbers
    taps: Numbers

    @classmethod
    def of(cls, layout: WeightLayout) -> _Submaps:
        height, width = layout.shape[:2]
        y, x = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
        sy, sx = layout.stride_y, layout.stride_x
        # A submap's columns are those whose distance from the padded edge has its remainder.
        submap = (y - layout.pad_top) % sy * sx + (x - layout.pad_left) % sx
        columns = -(-(width - x % sx) // sx)
        tap = y // sy * columns + x // sx
        return cls(submap, tap, np.bincount(submap.ravel(), minlength=sy * sx))


def _depthwise(layout: WeightLayout) -> Places:
    submaps = _Submaps.of(layout)
    before = np.cumsum(submaps.taps) - submaps.taps
    place = (before[submaps.submap] + submaps.tap)[:, :, 0]
    return Places(np.zeros_like(place), place, (place.size,))


def _tile(layout: WeightLayout) -> tuple[Numbers, Numbers, int, int]:
    """Return each tap's tile and number in it, [H, W, 1], the number of tiles and of their taps."""
    height, width = layout.shape[:2]
    rows = WIDE_TAPS if height > 1 else 1
    columns = WIDE_TAPS if width > 1 else 1
    across = -(-width // columns)
    y, x = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
    tile = y // rows * across + x // columns
    return tile, y % rows * columns + x % columns, across * -(-height // rows), rows * columns


def _winograd(layout: WeightLayout) -> Places:
    channels = layout.shape[2]
    tile, tap, tiles, taps = _tile(layout)
    place = (tile * channels + np.arange(channels)) * taps + tap
    return Places(np.zeros_like(place), place, (tiles * channels * taps,))


def _direct(layout: WeightLayout, capabilities: Capabilities) -> Places:
    channels, lanes = layout.shape[2], capabilities.igs
    taken = layout.iteration_size // layout.submaps if layout.iterations > 1 else channels
    if layout.iterations > 1 and taken % lanes:
        raise fail(
            "E945",
            f"an iteration must take whole slices of {lanes} input channels, not {taken} channels",
        )
    channel = np.arange(channels)
    iteration, inner = channel // taken, channel % taken
    # Each submap takes at least the place of one tap; the last alone has no absent channels.
    submaps = _Submaps.of(layout)
    submap, tap, taps = submaps.submap, submaps.tap, np.maximum(submaps.taps, 1)
    tile, tiles = np.zeros_like(tap), 1
    if layout.is_wide:
        tile, tap, tiles, size = _tile(layout)
        taps = np.array([size])
    before = np.cumsum(taps) - taps
    in_iteration = np.minimum(taken, channels - iteration * taken)
    present = np.minimum(lanes, channels - channel // lanes * lanes)
    tile_size = _slices_size(taps, in_iteration, lanes)
    place = (
        tile * tile_size
        + inner // lanes * lanes * taps.sum()
        + before[submap] * lanes
        + tap * np.where(submap == len(taps) - 1, present, lanes)
        + inner % lanes
    )
    firsts = range(0, channels, taken)
    counts = (_slices_size(taps, np.array(min(taken, channels - f)), lanes) for f in firsts)
    shape = place.shape
    return Places(np.broadcast_to(iteration, shape), place, tuple(tiles * int(n) for n in counts))


def _slices_size(taps: Numbers, channels: Numbers, lanes: int) -> Numbers:
    """Count the weights of slices of so many channels together."""
    whole = -(-channels // lanes) * lanes
    return taps[:-1].sum() * whole + taps[-1] * channels


def _fully_connected(layout: WeightLayout, capabilities: Capabilities) -> Places:
    """Each bank in turn gives one element of its patch; half-filled groups come in two rounds."""
    banks = capabilities.srams
    rounds = PATCH // banks
    per_round = BRICK // PATCH // banks // rounds
    element = np.arange(layout.shape[2])
    brick, patch = element // BRICK, element % BRICK // PATCH
    group, bank = np.divmod(patch, banks)
    step = group % rounds * per_round + group // rounds
    place = brick * BRICK + (step * PATCH + element % PATCH) * banks + bank
    iteration, place = np.divmod(place, layout.iteration_size)
    counts = (layout.iteration_size,) * layout.iterations
    return Places(iteration[None, None], place[None, None], counts)
