"""Blobs: scale records and weight streams of some channels of a convolution, one after another."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.generator.operations import (
    Blob,
    ChannelScales,
    Convolution,
    WeightPart,
    is_sparse,
)
from mizzen.targets.ethos_u.generator.shared_buffer import microblock_of
from mizzen.targets.ethos_u.generator.weights.compression import Compression, Order, compress
from mizzen.targets.ethos_u.generator.weights.fast import entry_bits
from mizzen.targets.ethos_u.generator.weights.order import orders_of
from mizzen.targets.ethos_u.generator.weights.order_u85 import orders_u85
from mizzen.targets.ethos_u.generator.weights.records import (
    LEAST_RECORDS,
    encode_scales,
    record_format,
)
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import Accelerator

LARGEST_WEIGHT = 255
"""Magnitude that a stream can hold: eight bits and a sign."""

_Key = tuple[int, int, int | None, Order, Compression]


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
    fast: bool = False,
) -> Blob:
    """Return the constants of output channels `channels[0] .. channels[1] - 1` of a convolution.

    The size hardly depends on the block depth (.1 % in the mean over 15 networks, 1.4 % at most),
    much on the traversal: kernels of few elements padded to four take up to twice the bytes, where
    the kernel is taken first. To compare blocks, one depth of each traversal is encoded with
    `Compression.QUICK`, whose streams are 2 % longer in the mean and 5 % at most.

    Of a convolution whose weights operations before write, the blob has the scale records only.
    Streams are kept as long as an array with the weights lives; it must not be written meanwhile.
    With `fast` the stream is one that U85 decodes fast. Raises E280 for weights beyond -255..255,
    E281 for scales that a record cannot hold, E282 for channels that the operation does not have,
    E283 for weights of which there is no fast stream, E284 for a block depth that the machine
    cannot have here.
    """
    _check(operation, channels)
    if fast and fast_bits(operation, accelerator) is None:
        raise fail(
            "E283",
            "weights of a fast stream must be dense, lie within 255, and be of no depthwise "
            "convolution",
            origin=operation.origin,
            rule="fast weight streams of Ethos-U85",
        )
    format_ = record_format(accelerator.arch, operation.accumulators)
    data = bytearray()
    parts: list[WeightPart] = []
    for share in _shares(operation, channels, block_depth, part_kernel, accelerator, fast):
        records = encode_scales(
            _scales(operation.scales, share.scales), format_, share.granule, operation.origin
        )
        stream = b""
        if operation.written is None:
            stream = _stream(operation.weights, share.weights, share.order, compression)
        at = len(data)
        parts.append(WeightPart(at, len(records), at + len(records), len(stream)))
        data += records + stream
    return Blob(bytes(data), tuple(parts), fast, is_sparse(operation, accelerator.arch))


def fast_bits(operation: Convolution, accelerator: Accelerator) -> int | None:
    """Return the bits that each weight of a fast stream takes: 2, 4 or 8; None if there is none."""
    arch = accelerator.arch
    if arch is not Arch.U85 or operation.depthwise or is_sparse(operation, arch):
        return None
    return entry_bits(operation.weights)


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


@dataclass(frozen=True, slots=True)
class _Share:
    """What a decoder gets: a stream, and scale records in multiples of `granule`.

    weights, scales  of which output channels
    """

    order: Order
    weights: slice
    scales: slice
    granule: int = 1


def _shares(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    accelerator: Accelerator,
    fast: bool,
) -> Iterator[_Share]:
    if accelerator.arch is Arch.U85:
        yield from _shares_u85(operation, channels, block_depth, part_kernel, accelerator, fast)
        return
    _, height, width, depth = operation.weights.shape
    kernel = operation.kernel
    orders = orders_of(
        (channels[1] - channels[0], height, width, depth),
        (kernel.dilation_y, kernel.dilation_x),
        block_depth,
        8 * operation.ifm.dtype.itemsize,
        operation.depthwise,
        part_kernel,
        accelerator,
    )
    for core, order in enumerate(orders):
        own = slice(channels[0] + core, channels[1], len(orders))
        yield _Share(order, own, own)


def _shares_u85(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    accelerator: Accelerator,
    fast: bool,
) -> Iterator[_Share]:
    """Yield a share for each stream; the first has all scale records."""
    microblock = microblock_of(operation, accelerator)[2]
    whole = slice(*channels)
    for order in orders_u85(
        operation, channels, block_depth, part_kernel, microblock, accelerator, fast
    ):
        scales = slice(0) if order.stream else whole
        yield _Share(order, whole, scales, max(LEAST_RECORDS, microblock))


def _scales(scales: ChannelScales, part: slice) -> ChannelScales:
    return ChannelScales(scales.biases[part], scales.multipliers[part], scales.shifts[part])


def _stream(
    weights: npt.NDArray[np.int16], channels: slice, order: Order, compression: Compression
) -> bytes:
    kept = _of_array.get(id(weights))
    if kept is None:
        kept = _of_array[id(weights)] = _of_contents.setdefault(_digest(weights), _Streams())
        weakref.finalize(weights, _of_array.pop, id(weights), None)
    key = channels.start, channels.stop, channels.step, order, compression
    if key not in kept:
        part = weights[channels]
        kept[key] = compress(part, order, compression) if len(part) else b""
    return kept[key]


def _digest(weights: npt.NDArray[np.int16]) -> bytes:
    digest = hashlib.blake2b(f"{weights.shape} {weights.dtype.str}".encode())
    digest.update(np.ascontiguousarray(weights).data)
    return digest.digest()
