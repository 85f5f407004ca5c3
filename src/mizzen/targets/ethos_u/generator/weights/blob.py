"""Blobs: scale records and weight streams of some channels of a convolution, core after core."""

from __future__ import annotations

import hashlib
import weakref

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.generator.operations import Blob, ChannelScales, Convolution, WeightPart
from mizzen.targets.ethos_u.generator.weights.compression import Compression, compress
from mizzen.targets.ethos_u.generator.weights.order import StreamOrder, orders_of
from mizzen.targets.ethos_u.generator.weights.records import encode_scales
from mizzen.targets.ethos_u.machine.config import Accelerator

LARGEST_WEIGHT = 255
"""Magnitude that a stream can hold: eight bits and a sign."""

_Key = tuple[int, int, int, StreamOrder, Compression]


class _Streams(dict[_Key, bytes]):
    """Encoded streams of some weights, by all else that decides them."""


_of_array: dict[int, _Streams] = {}
"""Streams by the array of weights, while it lives."""
_of_contents: weakref.WeakValueDictionary[bytes, _Streams] = weakref.WeakValueDictionary()
"""Streams by a digest of the weights, while an array with them lives."""


def encode(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    accelerator: Accelerator,
    compression: Compression = Compression.FAST,
) -> Blob:
    """Return the constants of output channels `channels[0] .. channels[1] - 1` of a convolution.

    The size hardly depends on the block depth (.1 % in the mean over 15 networks, 1.4 % at most),
    much on the traversal: kernels of few elements padded to four take up to twice the bytes, where
    the kernel is taken first. To compare blocks, one depth of each traversal is encoded with
    `Compression.QUICK`, whose streams are 2 % longer in the mean and 5 % at most.

    Of a convolution whose weights operations before write, the blob has the scale records only.
    Streams are kept as long as an array with the weights lives; it must not be written meanwhile.
    Raises E280 for weights beyond -255..255,
    E281 for scales that a record cannot hold, E282 for channels that the operation does not have,
    E284 for a block depth that the machine cannot have here.
    """
    _check(operation, channels)
    orders = _orders(operation, channels, block_depth, part_kernel, accelerator)
    data = bytearray()
    parts: list[WeightPart] = []
    for core, order in enumerate(orders):
        records = _records(operation.scales, channels, core, len(orders), operation.origin)
        stream = b""
        if operation.written is None:
            key = (*channels, core, order, compression)
            stream = _stream(operation.weights, key, len(orders))
        at = len(data)
        parts.append(WeightPart(at, len(records), at + len(records), len(stream)))
        data += records + stream
    return Blob(bytes(data), tuple(parts))


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


def _stream(weights: npt.NDArray[np.int16], key: _Key, cores: int) -> bytes:
    kept = _of_array.get(id(weights))
    if kept is None:
        kept = _of_array[id(weights)] = _of_contents.setdefault(_digest(weights), _Streams())
        weakref.finalize(weights, _of_array.pop, id(weights), None)
    if key not in kept:
        start, stop, core, order, compression = key
        part = weights[start + core : stop : cores]
        kept[key] = compress(part, order, compression) if len(part) else b""
    return kept[key]


def _digest(weights: npt.NDArray[np.int16]) -> bytes:
    digest = hashlib.blake2b(f"{weights.shape} {weights.dtype.str}".encode())
    digest.update(np.ascontiguousarray(weights).data)
    return digest.digest()
