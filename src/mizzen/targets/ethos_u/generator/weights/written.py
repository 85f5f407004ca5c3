"""Streams with gaps: weights that are bytes at places known beforehand, for operations to write.

A slice of raw symbols of 8 bits holds one weight in each byte, if it begins at one. Its header does
not end there; so a few weights that are constant go before, in a coding that makes up for it. A
kernel of two elements, the first of them constant, has such weights at every 256 bytes or so.

With an offset of 1, the 256 symbols are the weights -127 .. 128, 0 among them as code 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.bitstream import CHUNK, write_codes
from mizzen.targets.ethos_u.generator.weights.coding import (
    CODINGS,
    LARGEST_QUOTIENT,
    LARGEST_SLICE,
    MAPPING_BITS,
    SLICE_BITS,
    Coding,
    Mapping,
    Section,
    Slice,
)
from mizzen.targets.ethos_u.generator.weights.order import StreamOrder

BYTES = Mapping(palette=(), offset=1, bits=8, zero_runs=False)
RAW = CODINGS[-1]
LEAST_BYTE, MOST_BYTE = -127, 128
"""Weights that a byte can hold."""
LONGEST_LEAD = 64
"""Constant weights before raw ones that are tried."""
SHORT_LEAD = 8
"""Those in the first of two slices."""


@dataclass(frozen=True, slots=True, eq=False)
class GappedStream:
    """A stream, zero where weights are to be written.

    data     the stream, a multiple of 16 bytes
    offsets  of the byte of each weight to be written: int64 [O, I]
    """

    data: bytes
    offsets: npt.NDArray[np.int64]


def byte_of(weights: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return the bytes to write for weights of `LEAST_BYTE` .. `MOST_BYTE`."""
    codes = np.where(weights == 0, 1, 2 * np.abs(weights) + (weights < 0))
    return (codes - BYTES.offset).astype(np.uint8)


def gapped_stream(order: StreamOrder, constant: int) -> GappedStream:
    """Return the stream of a kernel of 2 elements: the first `constant`, the second to be written.

    The kernel is 2 x 1 or 1 x 2, `constant` is -127 .. 128; input channels come first.
    """
    channels, height, width, depth = order.shape
    assert height * width == 2
    assert not order.part_kernel
    assert not order.depthwise
    index = order.places
    element = index // depth % 2
    is_gap = (index >= 0) & (element == 1)
    weights = np.where((index >= 0) & (element == 0), constant, 0)
    symbols = byte_of(weights.astype(np.int64)).astype(np.int64)
    symbols[is_gap] = 0
    slices: list[Slice] = []
    byte = np.zeros(len(index), np.int64)
    bits, at = MAPPING_BITS, 0
    while at < len(index):
        lead = _lead(symbols[at:], is_gap[at:], bits)
        bits += SLICE_BITS + sum(SLICE_BITS + each.bits for each in lead)
        at += sum(each.symbols for each in lead)
        stop = _end(is_gap, at)
        byte[at:stop] = bits // 8 + np.arange(stop - at)
        slices += [Slice(each.symbols, each.coding) for each in lead]
        slices.append(Slice(stop - at, RAW))
        bits += 8 * (stop - at)
        at = stop
    codes = (symbols + BYTES.offset).astype(np.int16)
    data = write_codes(codes, [Section(len(codes), BYTES, tuple(slices))])
    offsets = np.zeros(channels * depth, np.int64)
    offsets[index[is_gap] // (2 * depth) * depth + index[is_gap] % depth] = byte[is_gap]
    return GappedStream(data, offsets.reshape(channels, depth))


@dataclass(frozen=True, slots=True)
class _Lead:
    """A slice of constant weights: how many, how they are written, and in how many bits."""

    symbols: int
    coding: Coding
    bits: int


def _lead(
    symbols: npt.NDArray[np.int64], is_gap: npt.NDArray[np.bool_], bits: int
) -> tuple[_Lead, ...]:
    """Return the shortest slices after which, and after another header, a byte begins.

    One, or two where no coding of the weight alone makes up for the headers.
    """
    constant = symbols[:LONGEST_LEAD][: np.append(is_gap[:LONGEST_LEAD], True).argmax()]
    single = [(lead,) for lead in _leads(constant)]
    for leads in (single, _pairs(constant)):
        fitting = [each for each in leads if (bits + _size(each) + SLICE_BITS) % 8 == 0]
        if fitting:
            return min(fitting, key=lambda each: _size(each) - 8 * sum(one.symbols for one in each))
    raise AssertionError("some two slices always fit")


def _leads(constant: npt.NDArray[np.int64]) -> Iterator[_Lead]:
    """Return the slices that constant weights may begin with."""
    for count in range(1, len(constant) + 1):
        for coding in CODINGS[:-1]:
            size = _unary_bits(constant[:count], coding)
            if size is not None:
                yield _Lead(count, coding, size)


def _pairs(constant: npt.NDArray[np.int64]) -> Iterator[tuple[_Lead, _Lead]]:
    """Return two slices after each other, the first of them short."""
    for first in _leads(constant[:SHORT_LEAD]):
        for second in _leads(constant[first.symbols :]):
            yield first, second


def _size(leads: tuple[_Lead, ...]) -> int:
    """Return the bits of slices, with their headers."""
    return sum(SLICE_BITS + lead.bits for lead in leads)


def _unary_bits(symbols: npt.NDArray[np.int64], coding: Coding) -> int | None:
    """Return the bits of a slice of symbols but its header; None if the coding has not all."""
    quotients = symbols >> coding.divisor
    if quotients.max() > (2 if coding.truncated else LARGEST_QUOTIENT):
        return None
    twos = np.zeros_like(quotients) if coding.truncated else quotients >> 1
    chunks = -(-int((twos + 1).sum()) // CHUNK)
    seconds = int((twos + (quotients - 2 * twos > 0)).sum())
    return CHUNK * chunks + seconds + coding.divisor * len(symbols)


def _end(is_gap: npt.NDArray[np.bool_], start: int) -> int:
    """Return where a raw slice from `start` on ends: at the end, or before constant weights."""
    if len(is_gap) - start <= LARGEST_SLICE:
        return len(is_gap)
    borders = np.flatnonzero(is_gap[:-1] & ~is_gap[1:]) + 1
    return int(borders[(borders > start) & (borders - start <= LARGEST_SLICE)][-1])
