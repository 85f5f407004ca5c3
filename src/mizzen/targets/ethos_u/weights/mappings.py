"""Mappings that suit how often codes occur."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.weights.coding import (
    CODES,
    LARGEST_OFFSET,
    Mapping,
    bits_of,
)

Counts = npt.NDArray[np.int64]
PALETTE_SIZES = (0, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SMALLEST_BITS = 2


def suited(counts: Counts, zero_runs: bool, most: int) -> list[Mapping]:
    """Return the best mappings for how often each code occurs, the best first.

    They are ranked by what the best coding of all symbols at once takes.
    """
    first = 1 if zero_runs else 0
    used = np.flatnonzero(counts[first:]) + first
    if not len(used):
        return [Mapping((), 0, SMALLEST_BITS, zero_runs)]
    wanted = counts[used].astype(np.float32)
    ranked = sorted(
        (float((bits_of(each, used) @ wanted).min()) + each.header_bits, index, each)
        for index, each in enumerate(_mappings(used, wanted, zero_runs))
    )
    return [each for _, _, each in ranked[:most]]


def _mappings(used: Counts, wanted: npt.NDArray[np.float32], zero_runs: bool) -> Iterator[Mapping]:
    common: list[int] = used[np.argsort(-wanted, kind="stable")].tolist()
    codes: list[int] = used.tolist()
    palettes = [common[:size] for size in PALETTE_SIZES if size <= len(codes)]
    if len(codes) == 1:
        palettes.append(2 * codes)
    # Zeros leave code 1 unused: a palette of the two smallest closes the gap behind them.
    if not zero_runs and len(codes) > 1:
        palettes.append([code for code in common if code in codes[:2]])
    for palette in palettes:
        taken = set(palette)
        rest = [code for code in codes if code not in taken]
        if not rest or rest[-1] - min(LARGEST_OFFSET, rest[0]) + len(palette) < CODES:
            yield _mapping(palette, rest, zero_runs)


def _mapping(palette: list[int], rest: list[int], zero_runs: bool) -> Mapping:
    offset = min(LARGEST_OFFSET, rest[0]) if rest else 0
    largest = max(palette or rest)
    bits = max(SMALLEST_BITS, largest.bit_length())
    return Mapping(tuple(palette), offset, bits, zero_runs)
