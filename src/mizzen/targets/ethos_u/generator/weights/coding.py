"""What a stream of compressed weights is made of: mappings to symbols, codings of symbols, slices.

A weight is a code: its sign in bit 0, its magnitude above. A mapping numbers codes: first those of
a palette, then from an offset on all others; with zero runs, zeros are no symbols but numbers
between them. Symbols and runs are written in Golomb-Rice codings, which may change from slice to
slice, or symbols as they are.

Ref: the decoder of `ethosu.mlw_codec`, Vela 5.2.0, whose limits these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CODES = 512
"""Codes there are: eight bits of magnitude, and the sign; 1 is a second zero, not used."""
LARGEST_OFFSET = 31
LARGEST_QUOTIENT = 31
"""Of a symbol by its divisor."""
LARGEST_SLICE = 32767
"""Symbols of one slice; the field would take one more, which no encoder is known to write."""
SLICE_BITS, MAPPING_BITS = 23, 13
"""Of the header of a slice, and of what a new mapping adds to it, but for its palette."""
RAW_DIVISOR, NO_ZERO_RUNS, END_OF_STREAM = 7, 6, 7
"""Numbers with a meaning of their own in the fields of divisors."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """How codes are numbered.

    palette    codes of the first symbols: none, or 2 to 32
    offset     code of the first symbol after the palette: 0 to 31
    bits       width of the palette's entries; without a palette, of symbols written as they are:
               2 to 9
    zero_runs  whether zeros are runs between symbols
    """

    palette: tuple[int, ...]
    offset: int
    bits: int
    zero_runs: bool

    @property
    def header_bits(self) -> int:
        """Bits of a slice's header that makes this the mapping."""
        return SLICE_BITS + MAPPING_BITS + self.bits * len(self.palette)

    @property
    def raw_bits(self) -> int:
        """Bits of a symbol that is written as it is."""
        return (len(self.palette) - 1).bit_length() if self.palette else self.bits

    def symbols(self) -> npt.NDArray[np.int32]:
        """Return the symbol of each code; `CODES` for one that has none."""
        size = len(self.palette)
        stop = min(CODES, CODES + self.offset - size)
        symbols = np.full(CODES, CODES, np.int32)
        symbols[self.offset : stop] = np.arange(size, size + stop - self.offset)
        symbols[list(self.palette)] = np.arange(size)
        return symbols


@dataclass(frozen=True, slots=True)
class Coding:
    """How symbols are written: a quotient in unary, and the remainder in `divisor` bits.

    truncated  whether quotients are of 0 to 2, and 2 one bit shorter
    raw        whether symbols are written as they are
    """

    divisor: int
    truncated: bool = False
    raw: bool = False


CODINGS = (
    *(Coding(divisor) for divisor in range(6)),
    *(Coding(divisor, truncated=True) for divisor in range(6)),
    Coding(RAW_DIVISOR, raw=True),
)
RUN_DIVISORS = (0, 1, 2, 3)
"""Of zero runs; their quotients are in unary without limit."""


@dataclass(frozen=True, slots=True)
class Slice:
    """So many symbols, all in one coding; `run_divisor` is of the zero runs after them."""

    symbols: int
    coding: Coding
    run_divisor: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """So many weights in one mapping, zeros included, as slices."""

    weights: int
    mapping: Mapping
    slices: tuple[Slice, ...]


def codes_of(values: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """Return the code of each weight (-255 .. 255)."""
    return (np.abs(values) << 1) | (values < 0)


def _bits_of_symbols() -> npt.NDArray[np.float32]:
    """Return the bits of each symbol, and of none, in each coding: [CODINGS, CODES + 1]."""
    symbols = np.arange(CODES + 1)
    table = np.full((len(CODINGS), CODES + 1), IMPOSSIBLE, np.float32)
    for bits, coding in zip(table, CODINGS, strict=True):
        if not coding.raw:
            quotients = symbols >> coding.divisor
            limit = 2 if coding.truncated else LARGEST_QUOTIENT
            unary = np.minimum(quotients + 1, 2) if coding.truncated else quotients + 1
            possible = (symbols < CODES) & (quotients <= limit)
            bits[possible] = unary[possible] + coding.divisor
    return table


IMPOSSIBLE = 1e6
"""Bits of what cannot be written: more than any slice saves."""
_BITS_OF_SYMBOLS = _bits_of_symbols()


def bits_of(mapping: Mapping, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return the bits that codes take in each coding: [CODINGS, codes].

    It is `IMPOSSIBLE` where a coding does not have the code; nothing for zeros in zero runs.
    """
    return bits_of_each([mapping], codes)[0]


def bits_of_each(
    mappings: Sequence[Mapping], codes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Return the bits that codes take in each mapping and coding: [mappings, CODINGS, codes]."""
    symbols = np.stack([each.symbols() for each in mappings])[:, codes]
    bits = _BITS_OF_SYMBOLS[:, symbols].transpose(1, 0, 2).copy()
    widths = np.array([[each.raw_bits] for each in mappings])
    np.copyto(bits[:, -1], widths, where=symbols < 1 << widths, casting="unsafe")
    runs = np.array([each.zero_runs for each in mappings])
    bits[np.broadcast_to(runs[:, None, None] & (codes == 0), bits.shape)] = 0
    return bits
