"""Where in a weight stream its slices and their chunks lie: the part that is read in order.

A stream is slices, bits from the lowest on. A slice has a header, and then turns. Each turn may
have the unary parts of a chunk of symbols, and of one of zero runs; and the remainders of those
chunks that the turn before had. How long a turn is, and whether symbols or runs are next, depends
on the unary bits of the turns before: that is walked here, chunk by chunk. What they say is decoded
afterwards, for all chunks at once (`numbers`).

Ref: the decoder of `ethosu.mlw_codec`, Vela 5.2.0, with which it agrees, damaged streams included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

NO_RUNS, END = 6, 7
"""In the field of the divisor of zero runs: zeros are symbols; a part of the stream ends."""
SHORT_RUN_DIVISOR = 3
"""Of runs from which on their chunks have `SHORT` unary bits. No encoder is known to write more,
nor symbols with more than 5; Arm's decoder takes both."""
RAW = 7
"""In the field of the divisor of symbols: they are written as they are."""
UNARY = 12
"""Unary bits of a chunk."""
SHORT = 8
WIDE_BITS = 5
"""Raw symbols of more bits come in chunks of `SHORT`."""
AHEAD = 8
"""Symbols before their runs from which on symbols wait."""
ONES = tuple(number.bit_count() for number in range(1 << UNARY))
MASKS = tuple((1 << count) - 1 for count in range(UNARY + 1))
UNARY_MASK = MASKS[UNARY]
ABSENT = -1
"""Of the symbols or runs of a turn that has none, not even some that end later."""
CUT = "ends within a slice"
WINDOW_BYTES = 4
"""Of a word that begins at each byte: its lowest 25 bits at least are those from any bit on."""


class DamagedError(Exception):
    """A stream is not one; the text says in which way, after "this one"."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """What symbols stand for: codes of a palette, and above them codes from an offset on."""

    palette: tuple[int, ...] = ()
    offset: int = 0
    bits: int = 0

    @property
    def raw_bits(self) -> int:
        """Bits of a symbol that is written as it is."""
        return (len(self.palette) - 1).bit_length() if self.palette else self.bits


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of numbers, symbols or runs, of a slice; all positions are bits.

    first       position of the unary bits of each chunk; none where numbers are raw
    second      position of the second bits, one for each unary bit that is set; none of runs
    remainders  position of the remainders of each chunk
    ended       numbers that end in each chunk
    """

    first: list[int] = field(default_factory=list[int])
    second: list[int] = field(default_factory=list[int])
    remainders: list[int] = field(default_factory=list[int])
    ended: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice.

    count        symbols; `runs` has as many, and one before them in the first of a mapping
    divisor      bits of the remainder of a symbol; `run_divisor` of a run, None without runs
    truncated    whether quotients of symbols are of 0 to 2, and 2 one bit shorter
    raw          whether symbols are remainders only
    begins       whether a mapping begins with it
    """

    count: int
    divisor: int
    truncated: bool
    raw: bool
    run_divisor: int | None
    begins: bool
    mapping: Mapping
    symbols: Chunks = field(default_factory=Chunks)
    runs: Chunks = field(default_factory=Chunks)

    @property
    def run_count(self) -> int:
        """Zero runs."""
        return 0 if self.run_divisor is None else self.count + self.begins


def windows(data: bytes) -> npt.NDArray[np.uint32]:
    """Return the word that begins at each byte, zeros after the end: uint32 [bytes + 4]."""
    padded = np.frombuffer(data + bytes(2 * WINDOW_BYTES), np.uint8).astype(np.uint32)
    count = len(data) + WINDOW_BYTES
    parts = [padded[at : at + count] << np.uint32(8 * at) for at in range(WINDOW_BYTES)]
    return parts[0] | parts[1] | parts[2] | parts[3]


class Walk:
    """A position in a stream that is read from its first bit on."""

    def __init__(self, words: Sequence[int], start: int, stop: int) -> None:
        """Begin at byte `start`, and end before byte `stop`, of the bytes that words begin at."""
        self._words = words
        self._at = 8 * start
        self._end = 8 * stop

    def slices(self) -> Iterator[Slice]:
        """Return the slices; positions are those of bits from the first byte's on.

        Raises DamagedError where the stream is cut, or no stream.
        """
        mapping = Mapping()
        while (run_divisor := self._run_divisor()) is not None:
            part = self._header(run_divisor, mapping)
            mapping = part.mapping
            self._walk(part)
            if self._at > self._end:
                raise DamagedError(CUT)
            yield part

    def _take(self, width: int) -> int:
        """Read a field of at most 25 bits."""
        at = self._at
        self._at += width
        if self._at > self._end:
            raise DamagedError("ends within the header of a slice")
        return self._words[at >> 3] >> (at & 7) & ((1 << width) - 1)

    def _run_divisor(self) -> int | None:
        """Read the first field of a header; None at the end of the stream.

        A stream may end with that field, whatever it is: Arm's decoder takes it so.
        """
        divisor = END
        while divisor == END:
            divisor = self._take(3)
            if divisor == END:
                self._at = (self._at + 7) // 8 * 8
            if self._at == self._end:
                return None
        return divisor

    def _header(self, run_divisor: int, mapping: Mapping) -> Slice:
        count = self._take(15) + 1
        divisor, truncated, begins = self._take(3), self._take(1), self._take(1)
        if begins:
            offset, size, bits = self._take(5), self._take(5), self._take(3) + 2
            entries = range(size + 1 if size else 0)
            mapping = Mapping(tuple(self._take(bits) for _ in entries), offset, bits)
        return Slice(
            count,
            mapping.raw_bits if divisor == RAW else divisor,
            bool(truncated),
            divisor == RAW,
            None if run_divisor == NO_RUNS else run_divisor,
            bool(begins),
            mapping,
        )

    def _walk(self, part: Slice) -> None:
        if part.run_divisor is not None:
            self._walk_turns(part, part.run_divisor)
        elif part.raw:
            part.symbols.remainders.append(self._at)
            part.symbols.ended.append(part.count)
            self._at += part.count * part.divisor
        else:
            self._walk_symbols(part)

    def _walk_symbols(self, part: Slice) -> None:
        """Walk a slice without runs: each turn is a chunk of symbols."""
        words, at, end, divisor = self._words, self._at, self._end, part.divisor
        first, ended, remainders = part.symbols.first, part.symbols.ended, part.symbols.remainders
        left, before = part.count, 0
        while left > 0 and at < end:
            word = words[at >> 3] >> (at & 7)
            ones = ONES[word & UNARY_MASK]
            first.append(at)
            at += UNARY + ones
            remainders.append(at)
            at += before * divisor
            before = UNARY if part.truncated else UNARY - ONES[word >> UNARY & MASKS[ones]]
            ended.append(before)
            left -= before
        if left > 0:
            raise DamagedError(CUT)
        ended[-1] += left
        # The remainders of each chunk come in the turn after it.
        remainders.append(at)
        del remainders[0]
        part.symbols.second.extend([start + UNARY for start in first])
        self._at = at + ended[-1] * divisor

    def _walk_turns(self, part: Slice, run_divisor: int) -> None:
        """Walk a slice with runs: a turn has symbols or runs, or both.

        It is one loop, and long, because it is most of the time that a stream takes.
        """
        words, at, end = self._words, self._at, self._end
        run_unary = SHORT if run_divisor >= SHORT_RUN_DIVISOR else UNARY
        raw_size = SHORT if part.divisor > WIDE_BITS else UNARY
        of_symbols, of_runs = part.symbols, part.runs
        symbols_left, runs_left, ahead = part.count, part.run_count, 0
        symbols_before = runs_before = ABSENT
        while symbols_left or runs_left:
            if at >= end:
                raise DamagedError(CUT)
            takes_symbols = symbols_left > 0 and ahead < AHEAD
            takes_runs = runs_left > 0 and ahead >= 0
            ones, symbols, runs = 0, ABSENT, ABSENT
            if takes_symbols and not part.raw:
                of_symbols.first.append(at)
                ones = ONES[words[at >> 3] >> (at & 7) & UNARY_MASK]
                at += UNARY
            if takes_runs:
                of_runs.first.append(at)
                unary = words[at >> 3] >> (at & 7) & MASKS[run_unary]
                at += run_unary
                runs = min(runs_left, run_unary - ONES[unary])
                of_runs.ended.append(runs)
                runs_left -= runs
                ahead -= runs
            if takes_symbols:
                symbols = raw_size
                if not part.raw:
                    of_symbols.second.append(at)
                    second = words[at >> 3] >> (at & 7) & MASKS[ones]
                    at += ones
                    symbols = UNARY if part.truncated else UNARY - ONES[second]
                symbols = min(symbols_left, symbols)
                of_symbols.ended.append(symbols)
                symbols_left -= symbols
                ahead += symbols
            at = _remainders(part, symbols_before, runs_before, run_divisor, at)
            symbols_before, runs_before = symbols, runs
        self._at = _remainders(part, symbols_before, runs_before, run_divisor, at)


def _remainders(part: Slice, symbols: int, runs: int, run_divisor: int, at: int) -> int:
    """Note where the remainders of a turn's symbols and runs are; return the position after."""
    if symbols != ABSENT:
        part.symbols.remainders.append(at)
        at += symbols * part.divisor
    if runs != ABSENT:
        part.runs.remainders.append(at)
        at += runs * run_divisor
    return at
