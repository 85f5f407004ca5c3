"""Writes streams: the headers of an output feature map and the symbols of its weights.

The LENGTH field is left 0: it is known once the streams of an output generator are joined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.weights import format as form
from mizzen.targets.ethos_n.weights.bits import WORD, BitFields, Words
from mizzen.targets.ethos_n.weights.choose import Choice
from mizzen.targets.ethos_n.weights.coding import ChosenCodings, code, coded_runs
from mizzen.targets.ethos_n.weights.format import ChunkSizes
from mizzen.targets.ethos_n.weights.headers import OfmHeaders
from mizzen.targets.ethos_n.weights.payload import Payload, cut_apart
from mizzen.targets.ethos_n.weights.symbols import (
    Array,
    Flags,
    Numbers,
    Streams,
    exclusive_sum,
)


@dataclass(frozen=True, slots=True)
class EncodedStreams:
    """Streams as bits, each from the lowest bit of a word on.

    words        of all streams
    word_counts  words of each stream
    bits         bits of each stream
    """

    words: Words
    word_counts: Numbers
    bits: Numbers


def write_streams(
    symbols: Streams, runs: Streams, choices: list[Choice], headers: OfmHeaders, sizes: ChunkSizes
) -> EncodedStreams:
    """Write streams of symbols, with the runs of zeros in each, as chosen."""
    coding = ChosenCodings.of(choices)
    coded = code(symbols, coding)
    payload = Payload.of(cut_apart(coded, coded_runs(runs, coding), coding, sizes), sizes)
    header_bits = _header_bits(coding, headers)
    bits = header_bits + payload.bits
    word_counts = -(-bits // WORD)
    base = exclusive_sum(word_counts) * WORD
    fields = BitFields()
    _put_headers(fields, base, coded.counts, coding, headers)
    payload.put(fields, base + header_bits)
    return EncodedStreams(fields.words(int(word_counts.sum()) * WORD), word_counts, bits)


_SCALE = form.MULTIPLIER + form.SHIFT + form.ZERO_POINT
_PARAMETERS = (
    form.ZERO_DIVISOR + form.WEIGHT_DIVISOR + form.TRUNCATED + form.OFFSET + form.PALETTE_FOLLOWS
)
_PALETTE = form.PALETTE_SIZE_LESS_1 + form.PALETTE_BITS
_ALWAYS = form.LENGTH + form.BIAS + form.SCALE_FOLLOWS + form.SYMBOL_COUNT + form.PARAMETERS_FOLLOW


def _header_bits(coding: ChosenCodings, headers: OfmHeaders) -> Numbers:
    entries = coding.palette_size * (coding.palette_bits + form.LEAST_ENTRY_BITS)
    palette = (_PALETTE + entries) * coding.palette_follows
    return (
        _ALWAYS
        + _SCALE * headers.scale_follows
        + (_PARAMETERS + palette) * coding.parameters_follow
    )


def _put_headers(
    fields: BitFields, base: Numbers, symbols: Numbers, coding: ChosenCodings, headers: OfmHeaders
) -> None:
    """Put the fields one after another, those that follow conditionally where they do."""
    cursor = base + form.LENGTH

    def put(width: int, values: Array, where: Flags | None = None) -> None:
        chosen = np.arange(len(cursor)) if where is None else np.flatnonzero(where)
        fields.put(cursor[chosen], values[chosen])
        cursor[chosen] += width

    put(form.BIAS, headers.bias)
    put(form.SCALE_FOLLOWS, headers.scale_follows)
    put(form.MULTIPLIER, headers.multiplier, headers.scale_follows)
    put(form.SHIFT, headers.shift, headers.scale_follows)
    put(form.ZERO_POINT, headers.zero_point, headers.scale_follows)
    put(form.SYMBOL_COUNT, symbols)
    follows = coding.parameters_follow
    put(form.PARAMETERS_FOLLOW, follows)
    put(form.ZERO_DIVISOR, coding.zero_divisor, follows)
    put(form.WEIGHT_DIVISOR, coding.weight_divisor, follows)
    put(form.TRUNCATED, coding.truncated, follows)
    put(form.OFFSET, coding.offset, follows)
    put(form.PALETTE_FOLLOWS, coding.palette_follows, follows)
    follows = follows & coding.palette_follows
    put(form.PALETTE_SIZE_LESS_1, np.maximum(coding.palette_size - 1, 0), follows)
    put(form.PALETTE_BITS, coding.palette_bits, follows)
    _put_entries(fields, cursor, coding, follows)


def _put_entries(fields: BitFields, cursor: Numbers, coding: ChosenCodings, follows: Flags) -> None:
    sizes = coding.palette_size * follows
    row, rank = np.nonzero(np.arange(form.LARGEST_PALETTE) < sizes[:, None])
    symbol, bits = coding.palette[row, rank], coding.palette_bits[row]
    sign = (symbol & 1) << (bits + form.LEAST_ENTRY_BITS - 1)
    position = cursor[row] + rank * (bits + form.LEAST_ENTRY_BITS)
    fields.put(position, (symbol + 1) // 2 | sign)
