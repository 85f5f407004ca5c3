"""Blobs: scale records and weight streams of some channels of a convolution, core after core."""

from __future__ import annotations

import weakref
from importlib import import_module

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.config import Accelerator
from mizzen.targets.ethos_u.operations import Blob, ChannelScales, Convolution, WeightPart
from mizzen.targets.ethos_u.weights.order import IFM_MICROBLOCK, WINDOW, StreamOrder, orders_of
from mizzen.targets.ethos_u.weights.records import encode_scales

LARGEST_WEIGHT = 255
"""Magnitude that a stream can hold: eight bits and a sign."""

_Key = tuple[int, int, int, StreamOrder]
_streams: dict[int, dict[_Key, bytes]] = {}
"""Encoded streams by the array of weights (while it lives), channels, core and order."""


def encode(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    accelerator: Accelerator,
) -> Blob:
    """Return the constants of output channels `channels[0] .. channels[1] - 1` of a convolution.

    The order, and so the size by a few per cent, depends on the block depth: it pads each block to
    whole microblocks, and each core's channels on U65-512. Streams are kept as long as the array of
    weights lives, which must not be written meanwhile. Raises E280 for weights beyond -255..255,
    E281 for scales that a record cannot hold, E282 for channels that the operation does not have,
    E284 for a block depth that the machine cannot have here.
    """
    _check(operation, channels)
    orders = _orders(operation, channels, block_depth, part_kernel, accelerator)
    data = bytearray()
    parts: list[WeightPart] = []
    for core, order in enumerate(orders):
        records = _records(operation.scales, channels, core, len(orders), operation.origin)
        stream = _stream(operation.weights, channels, core, len(orders), order)
        at = len(data)
        parts.append(WeightPart(at, len(records), at + len(records), len(stream)))
        data += records + stream
    return Blob(bytes(data), tuple(parts))


def encoded_bytes(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    accelerator: Accelerator,
) -> int:
    """Return the size of the blob that `encode` makes; the same costs, the same cache."""
    return len(encode(operation, channels, block_depth, part_kernel, accelerator).data)


def _check(operation: Convolution, channels: tuple[int, int]) -> None:
    depth = len(operation.weights)
    if not 0 <= channels[0] < channels[1] <= depth:
        raise fail(
            "E282",
            f"channels must lie within 0..{depth}, and be one at least, "
            f"not {channels[0]}..{channels[1]}",
            origin=operation.origin,
        )
    part = operation.weights[slice(*channels)]
    largest = max(int(part.max(initial=0)), -int(part.min(initial=0)))
    if largest > LARGEST_WEIGHT:
        raise fail(
            "E280",
            f"weights must lie in -{LARGEST_WEIGHT}..{LARGEST_WEIGHT} once their zero point is "
            f"taken off, and one is of magnitude {largest}",
            origin=operation.origin,
            rule="compressed weight streams of Ethos-U: eight bits and a sign",
        )


def _orders(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    accelerator: Accelerator,
) -> tuple[StreamOrder, ...]:
    _, height, width, depth = operation.weights.shape
    kernel = operation.kernel
    return orders_of(
        (channels[1] - channels[0], height, width, depth),
        (kernel.dilation_y, kernel.dilation_x),
        block_depth,
        8 * operation.ifm.dtype.itemsize,
        operation.depthwise,
        part_kernel,
        accelerator,
    )


def _records(
    scales: ChannelScales, channels: tuple[int, int], core: int, cores: int, origin: Origin
) -> bytes:
    part = slice(channels[0] + core, channels[1], cores)
    return encode_scales(
        ChannelScales(scales.biases[part], scales.multipliers[part], scales.shifts[part]), origin
    )


def _stream(
    weights: npt.NDArray[np.int16],
    channels: tuple[int, int],
    core: int,
    cores: int,
    order: StreamOrder,
) -> bytes:
    kept = _streams.get(id(weights))
    if kept is None:
        kept = _streams[id(weights)] = {}
        weakref.finalize(weights, _streams.pop, id(weights), None)
    key = (*channels, core, order)
    if key not in kept:
        kept[key] = _encoded(weights[channels[0] + core : channels[1] : cores], order)
    return kept[key]


def _encoded(weights: npt.NDArray[np.int16], order: StreamOrder) -> bytes:
    if not len(weights):
        return b""
    stream, _ = import_module("ethosu.mlw_codec").reorder_encode(
        IFM_MICROBLOCK,
        order.microblock,
        np.ascontiguousarray(weights, np.int16),
        order.block_depth,
        order.depthwise,
        order.part_kernel,
        order.ifm_bits,
        WINDOW // order.dilation[0],
        WINDOW // order.dilation[1],
    )
    return bytes(stream)
