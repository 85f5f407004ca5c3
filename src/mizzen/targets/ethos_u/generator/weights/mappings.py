"""Mappings that suit how often codes occur."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.coding import (
    CODES,
    LARGEST_OFFSET,
    Mapping,
    bits_of_each,
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
    mappings = list(_mappings(used, wanted, zero_runs))
    bits = bits_of_each(mappings, used) @ wanted
    costs = bits.min(axis=1).astype(np.float64) + [each.header_bits for each in mappings]
    return [mappings[index] for index in np.argsort(costs, kind="stable")[:most].tolist()]


def _mappings(used: Counts, wanted: npt.NDArray[np.float32], zero_runs: bool) -> Iterator[Mapping]:
    common = used[np.argsort(-wanted, kind="stable")]
    palettes = [common[:size] for size in PALETTE_SIZES if size <= len(used)]
    if len(used) == 1:
        palettes.append(np.append(used, used))
    # Zeros leave code 1 unused: a palette of the two smallest closes the gap after them.
    if not zero_runs and len(used) > 1:
        palettes.append(common[common <= used[1]])
    for palette in palettes:
        absent = np.ones(CODES, bool)
        absent[palette] = False
        rest = used[absent[used]]
        first, last = (int(rest[0]), int(rest[-1])) if len(rest) else (0, 0)
        offset = min(LARGEST_OFFSET, first)
        if last - offset + len(palette) < CODES:
            largest = int(palette.max() if len(palette) else last)
            bits = max(SMALLEST_BITS, largest.bit_length())
            yield Mapping(tuple(palette.tolist()), offset, bits, zero_runs)
